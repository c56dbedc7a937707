"""Files that people bring: Parquet, CSV and JSON lines as one stream of Arrow batches. Knows no table."""

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


class InputFileError(FuseIndexError):
    """A source file cannot be read as what it is said to be."""


class InputFormat(StrEnum):
    parquet = "parquet"
    csv = "csv"
    jsonl = "jsonl"


_FORMAT_BY_SUFFIX = {
    ".parquet": InputFormat.parquet,
    ".pq": InputFormat.parquet,
    ".csv": InputFormat.csv,
    ".jsonl": InputFormat.jsonl,
    ".ndjson": InputFormat.jsonl,
    ".json": InputFormat.jsonl,
}

ByteProgress = Callable[[int], None]
"""Called after each batch with the number of bytes of the files that were worked through since the last call."""

_BatchStream = Iterator[tuple[pa.Schema, pa.RecordBatch | None, int]]
"""First the schema alone, then (schema, batch, bytes of the file worked through)."""


@dataclass(frozen=True, slots=True)
class InputFile:
    """One file. ``nulls`` are the unquoted texts that mean NULL in a CSV file."""

    path: Path
    format: InputFormat
    nulls: tuple[str, ...] = ("",)

    @property
    def size(self) -> int:
        return self.path.stat().st_size


def find_input_files(paths: Sequence[Path], format_: InputFormat | None, nulls: Sequence[str] = ()) -> list[InputFile]:
    """The files at these paths, those of a folder in the order of their names. Raises InputFileError."""
    input_files = []
    for path in paths:
        if not path.exists():
            raise InputFileError(f"no file {str(path)!r}")
        files = sorted(p for p in path.rglob("*") if p.suffix in _FORMAT_BY_SUFFIX) if path.is_dir() else [path]
        input_files += [InputFile(file, format_ or _by_suffix(file), tuple(nulls) or ("",)) for file in files]
    if not input_files:
        raise InputFileError(f"no Parquet, CSV or JSON lines file in {', '.join(repr(str(p)) for p in paths)}")
    return input_files


def infer_file_schema(source: InputFile) -> pa.Schema:
    """The schema that the file has, or that its first rows suggest. Raises InputFileError."""
    return next(_read_file(source, None))[0]


def read_input_files(sources: Sequence[InputFile], schema: pa.Schema, advance: ByteProgress) -> pa.RecordBatchReader:
    """All rows of all files. Text files are read as ``schema`` says; Parquet files keep their own types."""
    streams = [_read_file(source, schema) for source in sources]
    first = next(streams[0])[0]
    return pa.RecordBatchReader.from_batches(first, _batches(sources, streams, first, advance))


def _batches(
    sources: Sequence[InputFile], streams: Sequence[_BatchStream], schema: pa.Schema, advance: ByteProgress
) -> Iterator[pa.RecordBatch]:
    for source, stream in zip(sources, streams, strict=True):
        bytes_done = 0
        for _, batch, position in stream:
            if batch is not None:
                yield _conform(batch, schema, source)
            advance(position - bytes_done)
            bytes_done = position
        advance(source.size - bytes_done)


def _conform(batch: pa.RecordBatch, schema: pa.Schema, source: InputFile) -> pa.RecordBatch:
    """A later file's batch in the first file's schema: columns by name, types where the cast loses nothing."""
    if batch.schema.equals(schema):
        return batch
    if sorted(batch.schema.names) != sorted(schema.names):
        unshared = sorted(set(batch.schema.names) ^ set(schema.names))
        raise InputFileError(
            f"{source.path} and the file before it differ in columns {unshared}: ingest them one by one"
        )
    try:
        return pa.Table.from_batches([batch]).select(schema.names).cast(schema).combine_chunks().to_batches()[0]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputFileError(f"{source.path}: {error}") from error


def _read_file(source: InputFile, schema: pa.Schema | None) -> _BatchStream:
    try:
        match source.format:
            case InputFormat.parquet:
                yield from _read_parquet(source)
            case InputFormat.csv:
                yield from _read_text(source, lambda file: _open_csv(file, source.nulls, schema))
            case InputFormat.jsonl:
                yield from _read_text(source, lambda file: _open_json(file, schema))
    except (pa.ArrowException, OSError) as error:
        hint = " (one JSON object a line)" if source.format is InputFormat.jsonl else ""
        raise InputFileError(f"{source.path} is not readable as {source.format}{hint}: {_first_line(error)}") from error


def _read_parquet(source: InputFile) -> _BatchStream:
    with pq.ParquetFile(source.path) as file:
        yield file.schema_arrow, None, 0
        rows_done = 0
        for batch in file.iter_batches(batch_size=65_536):
            rows_done += batch.num_rows
            yield batch.schema, batch, source.size * rows_done // file.metadata.num_rows


def _read_text(source: InputFile, opener: Callable[[pa.NativeFile], pa.csv.CSVStreamingReader]) -> _BatchStream:
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


def _by_suffix(path: Path) -> InputFormat:
    if path.suffix not in _FORMAT_BY_SUFFIX:
        raise InputFileError(f"{str(path)!r} ends in none of {sorted(_FORMAT_BY_SUFFIX)}: say --format")
    return _FORMAT_BY_SUFFIX[path.suffix]


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]
