"""Rows and schemas that users hand over, in whatever form, become Arrow batches and Arrow schemas. Knows no table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from os import PathLike
from typing import Any

import pyarrow as pa
import pyarrow.types as is_

from fuse_index.errors import InputError
from fuse_index.expressions import types
from fuse_index.expressions.variant.columns import encode_values, parse_variants, text_schema
from fuse_index.ingest.read_files import read_files
from fuse_index.sql.ddl import parse_schema
from fuse_storage import is_variant

_BATCH_ROWS = 65_536


def to_record_batches(data: Any, schema: pa.Schema | None = None) -> Iterator[pa.RecordBatch]:
    """Yield rows, in whatever form they are given, as record batches; text is VARIANT where the schema says so.

    Raises InputError. See ``_record_batches``.
    """
    known = schema or pa.schema([])
    batches = _record_batches(data, known)
    if any(is_variant(field.type) for field in known):
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
    data_type = schema.field(name).type if name in schema.names else None
    try:
        if isinstance(values, pa.Array | pa.ChunkedArray):
            return values
        if data_type is not None and is_variant(data_type):
            return encode_values(_python_values(values, make), name)
        if data_type is not None and _would_be_cut(values, data_type):
            return _fit_whole(pa.array(values, from_pandas=make is not pa.array), data_type)
        return make(values, type=data_type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, UnicodeError) as refusal:
        raise InputError(
            f"column {name!r} holds values that are no {data_type or 'values of one type'}: {refusal}"
        ) from refusal


def _python_values(values: Any, make: Callable[..., pa.Array]) -> list[Any]:
    """Values as Python has them, those that are none to pandas as None."""
    if make is pa.array:
        return list(values)
    return [value if isinstance(value, dict | list) else pa.scalar(value, from_pandas=True).as_py() for value in values]


def _fit_whole(values: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Values in another type, as long as nothing of them is lost. Raises ArrowInvalid."""
    fitted = values.cast(data_type)
    if not fitted.cast(values.type).equals(values):  # Arrow's cast of times to days loses the time in silence
        raise pa.ArrowInvalid(f"some {values.type} have a time of day")
    return fitted


def _would_be_cut(values: Any, data_type: pa.DataType) -> bool:
    """Whether Arrow would make Python values fit by cutting what is behind a point, or the time of a day."""
    is_pandas = hasattr(values, "dtype")
    if is_pandas and values.dtype != object:
        return False
    with suppress(pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):  # of several types: that is another question
        return _cuts(pa.infer_type(list(values) if is_pandas else values, from_pandas=is_pandas), data_type)
    return False


def _cuts(found: pa.DataType, data_type: pa.DataType) -> bool:
    """Whether values of the one type have parts that are lost in the other."""
    if is_.is_struct(data_type) and is_.is_struct(found):
        known = [part for part in found if data_type.get_field_index(part.name) >= 0]
        return any(_cuts(part.type, data_type.field(part.name).type) for part in known)
    if is_.is_list(data_type) and is_.is_list(found):
        return _cuts(found.value_type, data_type.value_type)
    if is_.is_date(data_type):
        return bool(is_.is_timestamp(found))
    return bool(is_.is_integer(data_type) and (is_.is_floating(found) or is_.is_decimal(found)))


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
