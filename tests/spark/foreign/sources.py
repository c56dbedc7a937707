"""Rows, files and conditions of sources that indexes vote on."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark

FILES, ROWS = 8, 200
"""Of a source: file n holds the ids from n * ROWS."""

ZONE = 50
"""Rows of a row group."""

MISSING = "a50000x"
"""A value of ``a`` and ``b`` that no row has, and that lies within all bounds."""


def a_of(number: int) -> str:
    """The value of ``a`` in the row of an id: no order of ids is one of values."""
    return f"a{number * 7919 % 100_000:05d}"


def b_of(number: int) -> str:
    return f"a{(number * 104_729 + 1) % 100_000:05d}"


def rows(number: int) -> pa.Table:
    """Of a file."""
    ids = range(number * ROWS, (number + 1) * ROWS)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "a": [a_of(i) for i in ids],
            "b": [None if i % 50 == 7 else b_of(i) for i in ids],
            "n": pa.array([i * 31 % 1000 for i in ids], pa.int32()),
        }
    )


def write_file(table: pa.Table, path: Path) -> None:
    """Write a file whose size depends on the lengths of its values alone."""
    pq.write_table(table, path, row_group_size=ZONE, compression="none")


def write_folder(folder: Path, files: int = FILES) -> Path:
    folder.mkdir(parents=True)
    for number in range(files):
        write_file(rows(number), folder / f"part-{number}.parquet")
    return folder


def use_index(
    spark: SparkSession,
    source: str | Path,
    place: str | Path,
    format_: str = "parquet",
    columns: Sequence[str] = ("a", "b"),
    options: Mapping[str, str] | None = None,
) -> fuse.Table:
    """Attach a table to a source, with a bloom index on each column, and have queries of the source ask it."""
    table = fuse.attach(source, place, format=format_, options=options)
    for column in columns:
        table.create_index(f"by_{column}", "bloom", [column])
    fuse_spark.use(spark, place, options=options)
    return table


def condition(chosen: random.Random) -> str:
    """A condition on columns of ``rows``; of some constants in it there is no row."""
    i = chosen.randrange(FILES * ROWS + 100)
    leaves = [
        f"a = '{a_of(i)}'",
        f"a IN ('{a_of(i)}', '{a_of(i + 1)}', NULL)",
        f"a <=> '{a_of(i)}'",
        f"id = {i}",
        f"id BETWEEN {i} AND {i + chosen.randrange(2 * ROWS)}",
        f"id < {i} AND n = {i % 1000}",
        f"b = '{b_of(i)}'",
        f"b LIKE '{b_of(i)[:4]}%'",
        f"upper(a) = '{a_of(i).upper()}'",
        f"n < {chosen.randrange(40)}",
        "b IS NULL",
        f"concat(a, b) LIKE '%{a_of(i)}%'",
        f"a = '{a_of(i)}' AND b IS NOT NULL",
        f"CASE WHEN a = '{a_of(i)}' THEN n > 3 ELSE false END",
        f"coalesce(b, 'x') IN ('x', '{b_of(i)}')",
        f"a COLLATE UTF8_LCASE = '{a_of(i).upper()}'",
        f"CAST(n AS STRING) = '{i % 1000}'",
    ]
    text = chosen.choice(leaves)
    for _ in range(chosen.randrange(3)):
        text = f"({text}) {chosen.choice(['AND', 'OR'])} ({chosen.choice(leaves)})"
        if chosen.random() < 0.15:
            text = f"NOT ({text})"
    return text
