"""Columns of VARIANT: as JSON text for whoever reads them, and made of JSON text and of values of Python."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as is_

from fuse_index.errors import InputError
from fuse_index.expressions.errors import NotReproducible
from fuse_index.expressions.traversal import columns_of, predicate_terms
from fuse_index.expressions.variant.decode import Exotic, Float32, decode
from fuse_index.expressions.variant.encode import NoVariant, encode, encode_json
from fuse_index.expressions.variant.text import variant_json
from fuse_index.predicate import Predicate
from fuse_storage import (
    VARIANT,
    VARIANT_STORAGE,
    Corrupt,
    MalformedVariant,
    holds_variant,
    is_variant,
    map_variants,
    type_without_variants,
)


def text_schema(schema: pa.Schema, wanted: bool = True) -> pa.Schema:
    """The schema with text in the place of VARIANT, also within other columns, where that is wanted."""
    if not wanted or not any(holds_variant(field.type) for field in schema):
        return schema
    return pa.schema([field.with_type(type_without_variants(field.type, pa.string())) for field in schema])


def is_about_variants(predicate: Predicate, schema: pa.Schema) -> bool:
    """Whether a condition is on a VARIANT: as that is shown as text, one of somebody else means the text."""
    columns = (column for term in predicate_terms(predicate) for column in columns_of(term))
    return any(holds_variant(_type_at(schema, column.path)) for column in columns)


def _type_at(schema: pa.Schema, path: Sequence[str]) -> pa.DataType:
    kind = schema.field(path[0]).type
    for name in path[1:]:
        kind = kind.field(name).type
    return kind


def with_texts(rows: pa.Table) -> pa.Table:
    """The rows with JSON text in the place of VARIANT, at any depth. Raises Corrupt for bytes that are none."""
    for number, field in enumerate(rows.schema):
        if holds_variant(field.type):
            kind = type_without_variants(field.type, pa.string())
            chunks = rows.column(number).chunks
            texts = [map_variants(chunk, field.type, variant_texts, field.name) for chunk in chunks]
            rows = rows.set_column(number, field.with_type(kind), pa.chunked_array(texts, kind))
    return rows


def variant_texts(values: pa.ExtensionArray, where: str) -> pa.StringArray:
    """Each value as JSON text, as of a session in UTC. Raises Corrupt naming ``where`` for bytes that are none."""
    try:
        return pa.array([None if tree is NULL else variant_json(tree) for tree in trees(values)], pa.string())
    except (MalformedVariant, NotReproducible) as problem:
        raise Corrupt(f"column {where!r} holds what cannot be read here: {problem}; leave it out by columns=") from None


NULL = object()
"""A row without a variant, which is another thing than a variant that is JSON's null."""


def trees(values: pa.ExtensionArray) -> Iterable[Any]:
    """Each value as Python has it, NULL for none. Raises MalformedVariant, NotReproducible."""
    return map_values(values, decode, NULL)


def map_values(values: pa.ExtensionArray, function: Callable[[bytes, bytes], Any], null: Any) -> Iterable[Any]:
    """What a function makes of the value and the metadata of each row, ``null`` of rows that have none."""
    storage = values.storage
    pairs = zip(storage.field(0).to_pylist(), storage.field(1).to_pylist(), storage.is_valid().to_pylist(), strict=True)
    return (function(value, metadata) if valid else null for value, metadata, valid in pairs)


def encode_texts(texts: pa.Array | pa.ChunkedArray, where: str) -> pa.ExtensionArray:
    """JSON texts as VARIANT. Raises InputError naming ``where`` for what is no JSON."""
    return _made(texts.to_pylist(), encode_json, where)


def encode_values(values: Sequence[Any], where: str) -> pa.ExtensionArray:
    """Values of Python as VARIANT: a text is JSON text, None is NULL. Raises InputError naming ``where``."""
    return _made(values, encode_value, where)


def _made(values: Sequence[Any], make: Callable[[Any], tuple[bytes, bytes]], where: str) -> pa.ExtensionArray:
    made = [_binaries(value, make, row, where) for row, value in enumerate(values)]
    return pa.ExtensionArray.from_storage(VARIANT, pa.array(made, VARIANT_STORAGE))


def encode_parts(values: Sequence[Any], kind: pa.DataType, where: str) -> list[Any]:
    """Values of Python of a type with VARIANTs in it, with the two binaries of each of these. Raises InputError."""

    def told(row: int, value: Any, kind: pa.DataType, where: str) -> Any:
        if value is None or not holds_variant(kind):
            return value
        if is_variant(kind):
            return _binaries(value, encode_value, row, where)
        if is_.is_struct(kind) and isinstance(value, Mapping):
            known = {part.name: part.type for part in kind}
            return {
                name: told(row, part, known[name], f"{where}.{name}") if name in known else part
                for name, part in value.items()
            }
        if is_.is_map(kind):
            pairs = value.items() if isinstance(value, Mapping) else value
            return [(key, told(row, part, kind.item_type, f"{where}.value")) for key, part in pairs]
        if is_.is_list(kind) and not isinstance(value, str | bytes | Mapping):
            return [told(row, part, kind.value_type, f"{where}.element") for part in value]
        return value

    return [told(row, value, kind, where) for row, value in enumerate(values)]


def encode_value(value: Any) -> tuple[bytes, bytes]:
    """A value of Python as VARIANT, text as JSON text. Raises NoVariant."""
    return encode_json(value) if isinstance(value, str) else encode(value)


def _binaries(value: Any, make: Callable[[Any], tuple[bytes, bytes]], row: int, where: str) -> dict[str, bytes] | None:
    try:
        return None if value is None else dict(zip(("value", "metadata"), make(value), strict=True))
    except NoVariant as refusal:
        shown = repr(value) if len(repr(value)) < 100 else f"{repr(value)[:100]}…"
        raise InputError(f"column {where!r} is VARIANT, and row {row} has {shown}: {refusal}") from None


def parse_variants(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The rows with text made VARIANT in columns, and parts of them, that are so in the schema. Raises InputError."""
    for number, field in enumerate(rows.schema):
        if field.name in schema.names and holds_variant(schema.field(field.name).type):
            made = map_variants(rows.column(number), schema.field(field.name).type, _parsed, field.name)
            rows = rows.set_column(number, field.with_type(made.type), made)
    return rows


def _parsed(values: pa.Array, where: str) -> pa.Array:
    return encode_texts(values, where) if _is_text(values.type) else values


def _is_text(data_type: pa.DataType) -> bool:
    if is_.is_dictionary(data_type):
        return _is_text(data_type.value_type)
    return bool(is_.is_string(data_type) or is_.is_large_string(data_type) or is_.is_string_view(data_type))


def variant_documents(values: pa.ExtensionArray) -> tuple[pa.StringArray, npt.NDArray[np.bool_]]:
    """Each value as a JSON document; and whether it is more than that: bool, shape (values,).

    It is where it has dates, bytes, infinity and other values that JSON lacks, or cannot be read at all.

    >>> variant_documents(encode_texts(pa.array(['{"a": 1}', None]), "v"))[0].to_pylist()
    ['{"a":1}', None]
    """
    found = list(map_values(values, _document, (None, False)))
    return pa.array([text for text, _ in found], pa.string()), np.array([odd for _, odd in found], np.bool_)


def _document(value: bytes, metadata: bytes) -> tuple[str, bool]:
    try:
        tree = decode(value, metadata)
    except (MalformedVariant, NotReproducible):
        return "null", True
    return variant_json(tree), _is_beyond_json(tree)


def _is_beyond_json(tree: Any) -> bool:
    match tree:
        case dict() | list():
            return any(map(_is_beyond_json, tree.values() if isinstance(tree, dict) else tree))
        case Float32() | Exotic():
            return True
        case float():
            return not math.isfinite(tree)
        case _:
            return not (tree is None or isinstance(tree, str | int | Decimal))
