"""The formats of files that people bring: the command line names them before anything that reads one is loaded."""

from enum import StrEnum


class InputFormat(StrEnum):
    parquet = "parquet"
    csv = "csv"
    tsv = "tsv"
    jsonl = "jsonl"
    json = "json"
