"""Files that people bring: Parquet, CSV and JSON lines as one stream of Arrow batches, with progress. Knows no
table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from fuse_index.errors import FuseIndexError


class SourceError(FuseIndexError):
    """A source file cannot be read as what it is said to be."""


class Format(StrEnum):
    parquet = "parquet"
    csv = "csv"
    jsonl = "jsonl"


SUFFIXES = {
    ".parquet": Format.parquet,
    ".pq": Format.parquet,
    ".csv": Format.csv,
    ".jsonl": Format.jsonl,
    ".ndjson": Format.jsonl,
    ".json": Format.jsonl,
}

Advance = Callable[[int], None]
"""Told after each batch how many bytes of the sources were worked through since."""

Stream = Iterator[tuple[pa.Schema, pa.RecordBatch | None, int]]
"""First the schema alone, then (schema, batch, bytes of the file worked through)."""


@dataclass(frozen=True, slots=True)
class Source:
    """One file. ``nulls`` are the unquoted texts that mean NULL in a CSV file."""

    path: Path
    format: Format
    nulls: tuple[str, ...] = ("",)

    @property
    def size(self) -> int:
        return self.path.stat().st_size


def find(paths: Sequence[Path], format_: Format | None, nulls: Sequence[str] = ()) -> list[Source]:
    """The files at these paths, those of a folder in the order of their names. Raises SourceError."""
    found = []
    for path in paths:
        if not path.exists():
            raise SourceError(f"no file {str(path)!r}")
        files = sorted(p for p in path.rglob("*") if p.suffix in SUFFIXES) if path.is_dir() else [path]
        found += [Source(file, format_ or _by_suffix(file), tuple(nulls) or ("",)) for file in files]
    if not found:
        raise SourceError(f"no Parquet, CSV or JSON lines file in {', '.join(repr(str(p)) for p in paths)}")
    return found


def schema_of(source: Source) -> pa.Schema:
    """The schema that the file has, or that its first rows suggest. Raises SourceError."""
    return next(_opened(source, None))[0]


def read(sources: Sequence[Source], schema: pa.Schema, advance: Advance) -> pa.RecordBatchReader:
    """All rows of all files. Text files are read as ``schema`` says; Parquet files keep their own types."""
    streams = [_opened(source, schema) for source in sources]
    first = next(streams[0])[0]
    return pa.RecordBatchReader.from_batches(first, _batches(sources, streams, first, advance))


def _batches(
    sources: Sequence[Source], streams: Sequence[Stream], schema: pa.Schema, advance: Advance
) -> Iterator[pa.RecordBatch]:
    for source, stream in zip(sources, streams, strict=True):
        done = 0
        for _, batch, position in stream:
            if batch is not None:
                yield _fitted(batch, schema, source)
            advance(position - done)
            done = position
        advance(source.size - done)


def _fitted(batch: pa.RecordBatch, schema: pa.Schema, source: Source) -> pa.RecordBatch:
    """A later file's batch in the first file's schema: columns by name, types where the cast loses nothing."""
    if batch.schema.equals(schema):
        return batch
    if sorted(batch.schema.names) != sorted(schema.names):
        odd = sorted(set(batch.schema.names) ^ set(schema.names))
        raise SourceError(f"{source.path} and the file before it differ in columns {odd}: ingest them one by one")
    try:
        return pa.Table.from_batches([batch]).select(schema.names).cast(schema).combine_chunks().to_batches()[0]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SourceError(f"{source.path}: {error}") from error


def _opened(source: Source, schema: pa.Schema | None) -> Stream:
    try:
        match source.format:
            case Format.parquet:
                yield from _parquet(source)
            case Format.csv:
                yield from _text(source, lambda file: _open_csv(file, source.nulls, schema))
            case Format.jsonl:
                yield from _text(source, lambda file: _open_json(file, schema))
    except pa.ArrowException as error:
        raise SourceError(f"{source.path} is not readable as {source.format}: {_first_line(error)}") from error


def _parquet(source: Source) -> Stream:
    with pq.ParquetFile(source.path) as file:
        yield file.schema_arrow, None, 0
        done = 0
        for batch in file.iter_batches(batch_size=65_536):
            done += batch.num_rows
            yield batch.schema, batch, source.size * done // file.metadata.num_rows


def _text(source: Source, opener: Callable[[pa.NativeFile], pa.csv.CSVStreamingReader]) -> Stream:
    with pa.OSFile(str(source.path)) as file:
        reader = opener(file)
        yield reader.schema, None, 0
        for batch in reader:
            yield batch.schema, batch, file.tell()


def _open_csv(file: pa.NativeFile, nulls: Sequence[str], schema: pa.Schema | None) -> pa.csv.CSVStreamingReader:
    options = pa.csv.ConvertOptions(
        column_types=schema, null_values=list(nulls), strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    return pa.csv.open_csv(file, convert_options=options)


def _open_json(file: pa.NativeFile, schema: pa.Schema | None) -> pa.csv.CSVStreamingReader:
    # "infer" keeps fields that the table does not have, so that the writer can refuse them by name
    return pa.json.open_json(
        file, parse_options=pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="infer")
    )


def _by_suffix(path: Path) -> Format:
    if path.suffix not in SUFFIXES:
        raise SourceError(f"{str(path)!r} ends in none of {sorted(SUFFIXES)}: say --format")
    return SUFFIXES[path.suffix]


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]
