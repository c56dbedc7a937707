"""Files of each format, opened: their columns, and their rows as Arrow batches. Knows nothing of other files."""

from __future__ import annotations

import io
import json
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from fuse_index.ingest.input_files import InputFile, InputFileError, InputFormat
from fuse_index.ingest.json_documents import DocumentLines
from fuse_index.ingest.json_values import MapLines, from_json, has_maps, type_in_json
from fuse_index.ingest.lent_input import LentInput
from fuse_storage import StorageError

_BATCH_ROWS = 65_536
_BLOCK_BYTES = 4 << 20
"""Bytes of text that are parsed at a time, and looked into for the types of columns. No line may be longer."""
_ARROW_VALUE = re.compile(r"In CSV column #(\d+):.*?conversion error to (\S+): invalid value '(.*?)'")
_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}


@dataclass
class OpenFile:
    """A file that is being read. ``position``: bytes of it that were read."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    position: Callable[[], int]
    close: Callable[[], None]


@contextmanager
def naming(file: InputFile) -> Iterator[None]:
    """Turn what goes wrong within into InputFileError that names the file."""
    try:
        yield
    except InputFileError:
        raise
    except (pa.ArrowException, OSError, StorageError, ValueError) as problem:
        hint = " (one JSON object a line)" if file.format is InputFormat.jsonl else ""
        said = _in_words_of_columns(str(problem).strip().split("\n")[0], file)
        raise InputFileError(f"{file.name} is not readable as {file.format}{hint}: {said}") from problem


def _in_words_of_columns(said: str, file: InputFile) -> str:
    """What Arrow says of a value of a text file, with the column's name, and how a word is said to be NULL."""
    if (found := _ARROW_VALUE.search(said)) is None:
        return said
    name = f"#{found[1]}"
    with suppress(pa.ArrowException, OSError, StorageError, ValueError, IndexError), file.open() as raw:
        name = repr(_open_csv(_decompressed(raw, file), file, pa.schema([])).schema.names[int(found[1])])
    value = f"{found[3]!r}"
    return (
        f"column {name} holds {value}, which is no {found[2]}: if it means NULL say so (--null {found[3] or value}, or "
        f"nulls=[{value}] of read_files in Python), else mend the file or widen the column"
    )


def open_input_file(file: InputFile, schema: pa.Schema) -> OpenFile:
    """Open a file. ``schema``: the types of columns of text files, as far as it has them. Raises InputFileError."""
    with naming(file):
        raw = file.open()
        if file.format is InputFormat.parquet:
            return _open_parquet(raw, file)
        text = _decompressed(raw, file)
        if not text.peek(1):
            return OpenFile(pa.schema([]), iter(()), lambda: 0, raw.close)
        types = pa.schema([each for each in schema if not pa.types.is_null(each.type)])
        if file.format is InputFormat.json and not _is_lines(text):
            text = io.BufferedReader(DocumentLines(text), _BLOCK_BYTES)
            if not text.peek(1):  # an array of nothing
                return OpenFile(pa.schema([]), iter(()), lambda: 0, raw.close)
        if "json" in file.format and any(has_maps(each.type) for each in types):
            text = io.BufferedReader(MapLines(text, types), _BLOCK_BYTES)
        source = LentInput(text)
        try:
            reader = _open_json(source, types) if "json" in file.format else _open_csv(source, file, types)
        except BaseException:
            source.stop()
            raise

        def close() -> None:
            source.stop()
            with suppress(pa.ArrowException, OSError, StorageError, ValueError):
                for _ in reader:  # what Arrow has read ahead, until it finds the end
                    pass
            raw.close()

        if "json" not in file.format:
            return OpenFile(reader.schema, iter(reader), lambda: _position(raw), close)
        found = pa.schema([each.with_type(_json_type(each, types)) for each in reader.schema])
        batches = (_from_json(batch, found) for batch in reader)
        return OpenFile(found, batches, lambda: _position(raw), close)


def _json_type(read: pa.Field, types: pa.Schema) -> pa.DataType:
    """The type of a column of JSON that Arrow reads as ``read``."""
    wanted = types.field(read.name).type if read.name in types.names else read.type
    return from_json(pa.array([], read.type), wanted).type


def _from_json(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = []
    for field, values in zip(schema, batch.columns, strict=True):
        try:
            columns.append(from_json(values, field.type))
        except pa.ArrowException as problem:
            raise ValueError(f"column {field.name!r}: {problem}") from problem
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _open_parquet(raw: Any, file: InputFile) -> OpenFile:
    if file.compression is not None or not raw.seekable():  # Parquet begins at its end
        raw = _spooled(_decompressed(raw, file))
    parquet = pq.ParquetFile(raw, pre_buffer=False)
    done = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal done
        for batch in parquet.iter_batches(_BATCH_ROWS):
            done += batch.num_rows
            yield batch

    def position() -> int:
        return int((file.size or 0) * done // max(parquet.metadata.num_rows, 1))

    return OpenFile(parquet.schema_arrow, batches(), position, raw.close)


def _spooled(file: Any) -> Any:
    """A copy on disk of what can only be read once."""
    copy = tempfile.TemporaryFile()  # noqa: SIM115  # closed by whoever reads it
    while data := file.read(_BLOCK_BYTES):
        copy.write(data)
    copy.seek(0)
    return copy


def _open_csv(text: Any, file: InputFile, types: pa.Schema) -> Any:
    return pa.csv.open_csv(
        text,
        read_options=pa.csv.ReadOptions(block_size=_BLOCK_BYTES),
        parse_options=pa.csv.ParseOptions(
            delimiter="\t" if file.format is InputFormat.tsv else ",", newlines_in_values=True
        ),
        convert_options=pa.csv.ConvertOptions(
            column_types=types,
            null_values=list(file.nulls),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _open_json(text: Any, types: pa.Schema) -> Any:
    # "infer" keeps fields that the schema does not have, so that the writer can refuse them by name
    known = pa.schema([each.with_type(type_in_json(each.type)) for each in types])
    parse = pa.json.ParseOptions(explicit_schema=known, unexpected_field_behavior="infer")
    return pa.json.open_json(text, pa.json.ReadOptions(block_size=_BLOCK_BYTES), parse)


def _is_lines(text: io.BufferedReader) -> bool:
    """Whether the first line is an object by itself, as all are then: they need not be cut out."""
    first, newline, _ = text.peek(1 << 16).partition(b"\n")
    try:
        return bool(newline) and isinstance(json.loads(first), dict)
    except ValueError:
        return False


def _position(raw: Any) -> int:
    with suppress(OSError, ValueError):
        return int(raw.tell())
    return 0


def _decompressed(raw: Any, file: InputFile) -> io.BufferedReader:
    """What is in a file that is compressed, as its first bytes or its name say."""
    if raw.seekable():
        first = raw.read(4)
        raw.seek(0)
    else:
        raw = raw if hasattr(raw, "peek") else io.BufferedReader(raw)
        first = raw.peek(4)[:4]
    kind = next((name for magic, name in _MAGIC.items() if first.startswith(magic)), None)
    kind = kind or ("brotli" if file.compression == "brotli" else None)
    if kind is None and hasattr(raw, "peek"):
        return raw  # type: ignore[no-any-return]
    return io.BufferedReader(raw if kind is None else pa.CompressedInputStream(raw, kind), _BLOCK_BYTES)
