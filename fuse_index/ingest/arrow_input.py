"""Rows and schemas that users hand over, in whatever form, become Arrow batches and Arrow schemas. Knows no table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any

import pyarrow as pa

from fuse_index.errors import InputError
from fuse_index.expressions import types
from fuse_index.expressions.variant.columns import encode_parts, encode_values, parse_variants, text_schema
from fuse_index.ingest.read_files import read_files
from fuse_index.sql.ddl import parse_schema
from fuse_storage import VARIANT_STORAGE, holds_variant, is_variant, type_without_variants

_BATCH_ROWS = 65_536


def to_record_batches(data: Any, schema: pa.Schema | None = None) -> Iterator[pa.RecordBatch]:
    """Yield rows, in whatever form they are given, as record batches; text is VARIANT where the schema says so.

    Raises InputError. See ``_record_batches``.
    """
    known = schema or pa.schema([])
    batches = _record_batches(data, known)
    if any(map(holds_variant, known.types)):
        return (parse_variants(batch, known) for batch in batches)
    return batches


def _record_batches(data: Any, known: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield rows as they are given.

    ``data``: a pa.Table, RecordBatch or RecordBatchReader, anything with an Arrow C stream, a pandas DataFrame, a
    pyarrow dataset, paths of files as for ``read_files``, a dict of columns, a list of dicts, or an iterable of any of
    these, which is read as it is used. ``known``: what types columns are to have where the data itself leaves that
    open, as in pandas (where NaN, None and NaT all mean NULL), dicts and text files. Columns are neither renamed nor
    left out: whoever writes them checks that they fit.
    """
    match data:
        case pa.Table():
            yield from data.to_batches(max_chunksize=_BATCH_ROWS)
        case pa.RecordBatch():
            yield data
        case pa.RecordBatchReader():
            yield from data
        case _ if are_paths(data):
            yield from read_files(data, schema=text_schema(known))
        case Mapping():
            yield from _table_from_columns(data, known).to_batches(max_chunksize=_BATCH_ROWS)
        case list() | tuple() if all(isinstance(item, dict) for item in data):
            yield from _table_from_dicts(data, known).to_batches(max_chunksize=_BATCH_ROWS)
        case _ if type(data).__module__.startswith("pandas.") and hasattr(data, "columns"):
            yield from _table_from_pandas(data, known).to_batches(max_chunksize=_BATCH_ROWS)
        case pa.Array() | pa.ChunkedArray() if not pa.types.is_struct(data.type):
            raise _refusal(data, f" of {data.type}")
        case _ if hasattr(data, "__arrow_c_stream__"):
            yield from pa.RecordBatchReader.from_stream(data)
        case _ if hasattr(data, "__arrow_c_array__"):
            yield pa.record_batch(data)
        case _ if hasattr(data, "scanner") or hasattr(data, "dataset_schema"):
            yield from data.to_batches()
        case Iterable() if not isinstance(data, bytes | bytearray):
            yield from _batches_of_items(data, known)
        case _:
            raise _refusal(data)


def are_paths(data: Any) -> bool:
    """Whether rows are given by where files of them are."""
    several = data if isinstance(data, list | tuple) else [data]
    return len(several) > 0 and all(isinstance(item, str | PathLike) for item in several)


def _refusal(data: Any, of: str = "") -> InputError:
    return InputError(
        f"rows cannot be read from {type(data).__name__}{of}: give a pa.Table, a RecordBatchReader, a pandas "
        f"DataFrame, a dict of columns, a list of dicts, paths of files, or an iterable of such"
    )


def _batches_of_items(data: Iterable[Any], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows of an iterable: of dicts, one for each row, a batch at a time; or of what else holds rows."""
    rows: list[dict[str, Any]] = []
    for item in data:
        if isinstance(item, dict):
            rows.append(item)
        elif isinstance(item, str | PathLike) or not holds_rows(item):
            raise _refusal(data, f" of {type(item).__name__}")
        if rows and (not isinstance(item, dict) or len(rows) >= _BATCH_ROWS):
            yield from _table_from_dicts(rows, schema).to_batches()
            rows = []
        if not isinstance(item, dict):
            yield from _record_batches(item, schema)
    yield from _table_from_dicts(rows, schema).to_batches()


def holds_rows(item: Any) -> bool:
    """Whether this is several rows, and neither a value nor one row."""
    names = ("__arrow_c_stream__", "__arrow_c_array__", "columns", "scanner")
    return any(hasattr(item, name) for name in names) or (
        isinstance(item, list | tuple) and all(isinstance(row, dict) for row in item)
    )


def _table_from_columns(data: Mapping[Any, Any], schema: pa.Schema) -> pa.Table:
    if other_names := [name for name in data if not isinstance(name, str)]:
        raise InputError(f"the dict has a column {other_names[0]!r}, whose name is no text: rename it")
    for name, values in data.items():
        if isinstance(values, str | bytes | Mapping) or not hasattr(values, "__len__"):
            raise InputError(f"column {name!r} is {values!r}: give a list of its values; one row is a list of one dict")
    if len(lengths := {name: len(values) for name, values in data.items()}) and len(set(lengths.values())) > 1:
        raise InputError(f"the columns of the dict have different numbers of rows: {lengths}")
    make = {name: pa.Array.from_pandas if hasattr(values, "dtype") else pa.array for name, values in data.items()}
    return pa.table({name: _column_array(values, name, schema, make[name]) for name, values in data.items()})


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
    from fuse_index.ingest.python_values import REFUSALS, array_of_type, describe_refused

    data_type = schema.field(name).type if name in schema.names else None
    try:
        if isinstance(values, pa.Array | pa.ChunkedArray):
            return values
        if data_type is not None and is_variant(data_type):
            return encode_values(_python_values(values, make), name)
        if data_type is not None and holds_variant(data_type):
            told = encode_parts(_python_values(values, make), data_type, name)
            return array_of_type(told, type_without_variants(data_type, VARIANT_STORAGE), pa.array)
        return array_of_type(values, data_type, make)
    except REFUSALS as refusal:
        said = describe_refused(values, data_type, make) if data_type is not None else ""
        raise InputError(
            f"column {name!r} holds values that are no {data_type or 'values of one type'}: {said or refusal}"
        ) from refusal


def _python_values(values: Any, make: Callable[..., pa.Array]) -> list[Any]:
    """Values as Python has them, those that are none to pandas as None."""
    if make is pa.array:
        return list(values)
    return [value if isinstance(value, dict | list) else pa.scalar(value, from_pandas=True).as_py() for value in values]


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
            hint = "; the place of a table comes before its columns" if isinstance(schema, PathLike) else ""
            raise InputError(
                f"a schema cannot be read from {type(schema).__name__}: give a pa.Schema, a StructType or DDL text "
                f"such as 'id BIGINT, name STRING'{hint}"
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
