"""Rows and schemas that users hand over, in whatever form, become Arrow batches and Arrow schemas. Knows no table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fuse_index.errors import InputError
from fuse_index.expressions import types
from fuse_index.sql.ddl import parse_schema

_BATCH_ROWS = 65_536


def to_record_batches(data: Any, schema: pa.Schema | None = None) -> Iterator[pa.RecordBatch]:
    """Yield rows, in whatever form they are given, as record batches. Raises InputError.

    ``data``: a pa.Table, RecordBatch or RecordBatchReader, a pandas DataFrame, Parquet path(s), a list of dicts, or
    anything with the Arrow C stream interface. ``schema``: what types columns are to have where the data itself leaves
    that open, as in pandas (where NaN, None and NaT all mean NULL) and dicts. Columns are neither renamed nor left out:
    whoever writes them checks that they fit.
    """
    match data:
        case pa.Table():
            yield from data.to_batches(max_chunksize=_BATCH_ROWS)
        case pa.RecordBatch():
            yield data
        case pa.RecordBatchReader():
            yield from data
        case str() | PathLike():
            yield from _read_parquet([data])
        case list() | tuple() if data and all(isinstance(item, str | PathLike) for item in data):
            yield from _read_parquet(data)
        case list() | tuple() if all(isinstance(item, dict) for item in data):
            yield from _table_from_dicts(data, schema or pa.schema([])).to_batches(max_chunksize=_BATCH_ROWS)
        case _ if type(data).__module__.startswith("pandas.") and hasattr(data, "columns"):
            yield from _table_from_pandas(data, schema or pa.schema([])).to_batches(max_chunksize=_BATCH_ROWS)
        case _ if hasattr(data, "__arrow_c_stream__"):
            yield from pa.RecordBatchReader.from_stream(data)
        case _:
            raise InputError(
                f"rows cannot be read from {type(data).__name__}: give a pa.Table, a RecordBatchReader, a pandas "
                f"DataFrame, a list of dicts or Parquet paths"
            )


def _table_from_dicts(data: Sequence[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    names = list(dict.fromkeys(name for row in data for name in row))
    return pa.table({name: _column_array([row.get(name) for row in data], name, schema, pa.array) for name in names})


def _table_from_pandas(data: Any, schema: pa.Schema) -> pa.Table:
    if other_names := [name for name in data.columns if not isinstance(name, str)]:
        raise InputError(f"the DataFrame has a column {other_names[0]!r}, whose name is no text: rename it")
    if not data.columns.is_unique:
        raise InputError(
            f"the DataFrame has more than one column {data.columns[data.columns.duplicated()][0]!r}: rename one"
        )
    return pa.table({name: _column_array(data[name], name, schema, pa.Array.from_pandas) for name in data.columns})


def _column_array(values: Any, name: str, schema: pa.Schema, make: Callable[..., pa.Array]) -> pa.Array:
    """Make values a column of its type in the schema, or of the type that they suggest where it has none."""
    data_type = schema.field(name).type if name in schema.names else None
    try:
        return make(values, type=data_type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError) as refusal:
        raise InputError(
            f"column {name!r} holds values that are no {data_type or 'values of one type'}: {refusal}"
        ) from refusal


def _read_parquet(paths: Sequence[str | PathLike[str]]) -> Iterator[pa.RecordBatch]:
    for path in paths:
        for file in _parquet_files(Path(path)):
            try:
                with pq.ParquetFile(file) as parquet:
                    yield from parquet.iter_batches(batch_size=_BATCH_ROWS)
            except (OSError, pa.ArrowException) as problem:
                raise InputError(f"{file} cannot be read as Parquet: {problem}") from problem


def _parquet_files(path: Path) -> list[Path]:
    if not path.exists():
        raise InputError(f"no file {str(path)!r}")
    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise InputError(f"no Parquet file in folder {str(path)!r}")
    return files


def resolve_arrow_schema(schema: Any) -> pa.Schema:
    """Make an Arrow schema of one, of Spark's StructType, or of DDL text. Raises InputError or WhereError."""
    match schema:
        case pa.Schema():
            return schema
        case str():
            return parse_schema(schema)
        case _ if hasattr(schema, "fieldNames") and hasattr(schema, "json"):
            return _schema_from_spark(json.loads(schema.json()))
        case _:
            raise InputError(
                f"a schema cannot be read from {type(schema).__name__}: give a pa.Schema, a StructType or DDL text"
            )


def _schema_from_spark(described: dict[str, Any]) -> pa.Schema:
    fields = []
    for field in described["fields"]:
        data_type = types.type_from_spark_json(field["type"])
        if data_type is None:
            raise InputError(
                f"column {field['name']!r} has Spark type {field['type']!r}, which a table cannot hold: cast it first"
            )
        fields.append(pa.field(field["name"], data_type, field["nullable"]))
    return pa.schema(fields)
