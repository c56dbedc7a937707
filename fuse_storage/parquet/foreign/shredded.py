"""VARIANTs that a file has shredded, made whole: what lies in typed columns is put back into the two binaries.

A group is a ``value``, what of a variant is in the binary encoding, and a ``typed_value``: a scalar, a list of groups,
or a struct of groups, one for each member of an object. Both being NULL, a member is missing; elsewhere that is JSON's
null. Of an object, ``value`` has the members that have no group. Source: Parquet's VariantShredding.md.

Types stay what they are: a 32-bit integer is one, though a smaller one would hold it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from fuse_storage.parquet.foreign.thrift_footer import DOT
from fuse_storage.schema.types import is_list_type
from fuse_storage.schema.variant import METADATA, VALUE, VARIANT_STORAGE, is_variant_struct
from fuse_storage.schema.variant_bytes import (
    VARIANT_OBJECT,
    MalformedVariant,
    array_bytes,
    binary_bytes,
    metadata_of_names,
    name_order,
    names_of_metadata,
    object_bytes,
    object_parts,
    text_bytes,
)

TYPED_VALUE = "typed_value"
_JSON_NULL = b"\0"
_TRUE, _FALSE = b"\x04", b"\x08"
_BASIC_TYPE_BITS = 3
"""The lowest two bits of a value, which say whether it is an object."""
_INTEGERS = {pa.int8(): 3, pa.int16(): 4, pa.int32(): 5, pa.int64(): 6}
_TIMES = {
    pa.date32(): 11,
    pa.timestamp("us", "UTC"): 12,
    pa.timestamp("us"): 13,
    pa.time64("us"): 17,
    pa.timestamp("ns", "UTC"): 18,
    pa.timestamp("ns"): 19,
}
_FIXED_TYPES = {**_INTEGERS, pa.float64(): 7, pa.float32(): 14, **_TIMES, pa.binary(16): 20}
"""The numbers of primitive types whose bytes are those that Arrow has."""

_Encoded = list[bytes | None]


def put_together(variants: pa.StructArray) -> pa.StructArray:
    """The variants as the two binaries; NULL where they are. Raises MalformedVariant for what contradicts itself.

    >>> parts = {"metadata": [b"\\x01\\0\\0"] * 2, "value": [None, b"\\x0c\\x07"], "typed_value": ["x", None]}
    >>> shredded = pa.StructArray.from_arrays([pa.array(each) for each in parts.values()], list(parts))
    >>> put_together(shredded).field("value").to_pylist()
    [b'\\x05x', b'\\x0c\\x07']
    """
    if is_variant_struct(variants.type) and _parts_of(variants)[VALUE].null_count == variants.null_count:
        return variants
    is_present = variants.is_valid()
    present = variants.filter(is_present) if variants.null_count else variants
    books = dict[bytes, _Names]()
    metadata = present.field(METADATA).to_pylist()
    if None in metadata:
        raise MalformedVariant("a variant without metadata")
    for each in metadata:
        if each not in books:
            books[each] = _Names.of(each)
    values = [_JSON_NULL if each is None else each for each in _encoded(present, [books[each] for each in metadata])]
    told = {each: names.metadata(each) for each, names in books.items()}
    arrays = [pa.array(values, pa.binary()), pa.array([told[each] for each in metadata], pa.binary())]
    if not variants.null_count:
        return pa.StructArray.from_arrays(arrays, fields=list(VARIANT_STORAGE))
    places = pc.if_else(is_present, pc.subtract(pc.cumulative_sum(is_present.cast(pa.int64())), 1), None)
    spread = [pc.fill_null(each.take(places), b"") for each in arrays]
    return pa.StructArray.from_arrays(spread, fields=list(VARIANT_STORAGE), mask=variants.is_null())


@dataclass(slots=True)
class _Names:
    """The names in a metadata by their ids; those that members of objects have, and it lacks, are added to it."""

    ids: dict[str, int]
    names: list[str]
    known: int

    @staticmethod
    def of(metadata: bytes) -> _Names:
        names = names_of_metadata(metadata)
        ids = {name: number for number, name in reversed(list(enumerate(names)))}
        return _Names(ids, list(names), len(names))

    def id_of(self, name: str) -> int:
        if name not in self.ids:
            self.ids[name] = len(self.names)
            self.names.append(name)
        return self.ids[name]

    def metadata(self, before: bytes) -> bytes:
        return before if len(self.names) == self.known else metadata_of_names(self.names)


def _encoded(group: pa.StructArray, names: Sequence[_Names]) -> _Encoded:
    """The value of each row of a group, None where it is missing. ``names``: those of each row's variant."""
    parts = _parts_of(group)
    values: _Encoded = parts[VALUE].to_pylist() if VALUE in parts else [None] * len(group)
    typed = parts.get(TYPED_VALUE)
    if typed is None or typed.null_count == len(typed):
        return values
    if is_.is_struct(typed.type):
        return _objects(typed, values, names)
    found = _arrays(typed, names) if is_list_type(typed.type) else _scalars(typed)
    if any(value is not None and other is not None for value, other in zip(found, values, strict=True)):
        raise MalformedVariant("a value is there twice, shredded and not")
    return [value if other is None else other for value, other in zip(found, values, strict=True)]


def _parts_of(group: pa.StructArray) -> dict[str, pa.Array]:
    return {part.name: column for part, column in zip(group.type, group.flatten(), strict=True)}


def _arrays(typed: pa.ListArray, names: Sequence[_Names]) -> _Encoded:
    counts = pc.fill_null(pc.list_value_length(typed), 0).to_numpy()
    owners = np.repeat(np.arange(len(counts)), counts).tolist()
    elements = _encoded(typed.flatten(), [names[owner] for owner in owners])
    whole = [_JSON_NULL if each is None else each for each in elements]
    ends = np.cumsum(counts).tolist()
    return [
        array_bytes(whole[end - count : end]) if is_there else None
        for is_there, count, end in zip(typed.is_valid().to_pylist(), counts.tolist(), ends, strict=True)
    ]


def _objects(typed: pa.StructArray, values: _Encoded, names: Sequence[_Names]) -> _Encoded:
    """``values``: what lies beside each: the other members of an object, or what is no object at all."""
    members = sorted(
        ((part.name.replace(DOT, "."), column) for part, column in zip(typed.type, typed.flatten(), strict=True)),
        key=lambda member: name_order(member[0]),
    )
    shredded = [name for name, _ in members]
    rows: Iterable[tuple[bytes | None, ...]] = zip(*(_encoded(column, names) for _, column in members), strict=True)
    found: _Encoded = []
    for is_there, row, rest, known in zip(typed.is_valid().to_pylist(), rows, values, names, strict=True):
        if not is_there:
            found.append(rest)
            continue
        there = [(name, value) for name, value in zip(shredded, row, strict=True) if value is not None]
        found.append(_object(there, known) if rest is None else _joined(there, rest, frozenset(shredded), known))
    return found


def _object(members: Sequence[tuple[str, bytes]], names: _Names) -> bytes:
    offsets, end = [], 0
    for _, value in members:
        offsets.append(end)
        end += len(value)
    return object_bytes([names.id_of(name) for name, _ in members], offsets, [value for _, value in members])


def _joined(members: Sequence[tuple[str, bytes]], rest: bytes, shredded: frozenset[str], names: _Names) -> bytes:
    """An object of these members and those of another one, but for its members that have a group.

    The other's values are kept as they lie, with whatever is between them.
    """
    if not rest or rest[0] & _BASIC_TYPE_BITS != VARIANT_OBJECT:
        raise MalformedVariant("members of an object beside a value that is none")
    try:
        others = object_parts(rest, 0)
        kept = rest[others.start :]
        found = [
            (names.names[number], number, offset)
            for number, offset in zip(others.ids, others.offsets, strict=True)
            if names.names[number] not in shredded
        ]
    except IndexError as problem:
        raise MalformedVariant(f"a variant of {len(rest)} bytes: {problem}") from None
    end = len(kept)
    for name, value in members:
        found.append((name, names.id_of(name), end))
        end += len(value)
    found.sort(key=lambda member: name_order(member[0]))
    values = [kept, *(value for _, value in members)]
    return object_bytes([number for _, number, _ in found], [offset for *_, offset in found], values)


def _scalars(typed: pa.Array) -> _Encoded:
    typed = typed.storage if isinstance(typed, pa.ExtensionArray) else typed  # of UUIDs
    kind = typed.type
    if is_.is_boolean(kind):
        return [None if each is None else _TRUE if each else _FALSE for each in typed.to_pylist()]
    if is_.is_string(kind) or is_.is_binary(kind):
        encode = text_bytes if is_.is_string(kind) else binary_bytes
        return [None if each is None else encode(each) for each in typed.cast(pa.binary()).to_pylist()]
    if is_.is_decimal128(kind):
        number, width = (8, 4) if kind.precision <= 9 else (9, 8) if kind.precision <= 18 else (10, 16)
        return _with_heads(bytes([number << 2, kind.scale]), _bytes_of(typed, 16)[:, :width], typed)
    if kind not in _FIXED_TYPES:
        raise MalformedVariant(f"a shredded value of type {kind}")
    return _with_heads(bytes([_FIXED_TYPES[kind] << 2]), _bytes_of(typed, kind.bit_width // 8), typed)


def _bytes_of(values: pa.Array, width: int) -> npt.NDArray[np.uint8]:
    """The bytes of each value: uint8, shape (values, width)."""
    data = np.frombuffer(values.buffers()[1], np.uint8, len(values) * width, values.offset * width)
    return data.reshape(len(values), width)


def _with_heads(head: bytes, data: npt.NDArray[np.uint8], values: pa.Array) -> _Encoded:
    """Values with what comes before each. ``data``: uint8, shape (values, bytes of each)."""
    heads = np.broadcast_to(np.frombuffer(head, np.uint8), (len(data), len(head)))
    whole = pa.py_buffer(np.concatenate([heads, data], axis=1).tobytes())
    fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(len(head) + data.shape[1]), len(data), [None, whole])
    found: _Encoded = pc.if_else(values.is_valid(), fixed, None).to_pylist()
    return found
