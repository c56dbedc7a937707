"""Rows are hashed to 128 bits each, equal where rows are, to compare many blocks without holding them in memory.

A row's bytes are those of its columns in a layout of fixed width, texts and lists by digests of their own, and its
fingerprint is the xxh3-128 of them. Two different rows share one with a probability of 2^-128; among 10^10 rows some
two do with one of 10^-18. Equal is what has the same bits: -0.0 differs from 0.0, and NULL from everything but NULL.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as is_
from xxhash import xxh3_128_digest

from fuse_storage import chunked_to_array, is_variant

_ByteRows = npt.NDArray[np.uint8]
"""One row of bytes for each value."""

_HASH_BYTES = 16
ROW_HASH_TYPE = pa.binary(_HASH_BYTES)


def row_hashes(rows: pa.Table) -> pa.Array:
    """Hash rows: ``fixed_size_binary[16]``, one for each row.

    Rows are comparable where their columns have the same types, in the same order. NULL is a value of its own:

    >>> hashes = row_hashes(pa.table({"x": [1, None, 0, 1]}))
    >>> hashes[0] == hashes[3], hashes[1] == hashes[2]
    (True, False)
    """
    cells = [_value_bytes(chunked_to_array(column)) for column in rows.columns]
    return _as_array(_digests(_concat_columns(cells, rows.num_rows)))


def _as_array(digests: _ByteRows) -> pa.Array:
    return pa.Array.from_buffers(ROW_HASH_TYPE, len(digests), [None, pa.py_buffer(np.ascontiguousarray(digests))])


def _concat_columns(parts: Sequence[_ByteRows], count: int) -> _ByteRows:
    return np.concatenate(parts, axis=1) if parts else np.zeros((count, 0), np.uint8)


def _digests(cells: _ByteRows) -> _ByteRows:
    """Hash each row of bytes: uint8, shape (rows, width), to shape (rows, 16)."""
    width, data = cells.shape[1], memoryview(cells.tobytes())
    if not width:
        return np.zeros((len(cells), _HASH_BYTES), np.uint8)
    return _stacked([xxh3_128_digest(data[start : start + width]) for start in range(0, len(data), width)])


def _stacked(digests: Sequence[bytes]) -> _ByteRows:
    return np.frombuffer(b"".join(digests), np.uint8).reshape(-1, _HASH_BYTES)


def _value_bytes(values: pa.Array) -> _ByteRows:
    """Lay out values in bytes: uint8, shape (values, 1 + width of the type).

    The first byte is 1, and for NULL 0 as all others, so that no value looks like NULL.
    """
    valid = np.asarray(values.is_valid())
    cells = _non_null_bytes(values)
    cells = np.where(valid[:, None], cells, np.uint8(0)) if values.null_count else cells
    return np.concatenate([valid.astype(np.uint8)[:, None], cells], axis=1)


def _non_null_bytes(values: pa.Array) -> _ByteRows:
    """Lay out values in bytes of one width: what varies in length (texts, lists) as a digest of it.

    So neighbours cannot run into each other: ("ab", "c") and ("a", "bc") differ.
    """
    data_type = values.type
    if is_.is_null(data_type):
        return np.zeros((len(values), 0), np.uint8)
    if is_variant(data_type):
        return _non_null_bytes(values.storage)  # two ways to encode one value are two values
    if is_.is_struct(data_type):
        return _concat_columns([_value_bytes(part) for part in values.flatten()], len(values))
    if is_.is_map(data_type):
        return _list_digests(
            values, _concat_columns([_value_bytes(values.keys), _value_bytes(values.items)], len(values.keys))
        )
    if is_.is_nested(data_type):
        return _list_digests(values, _value_bytes(values.values))
    if is_.is_string(data_type) or is_.is_binary(data_type):
        return _text_digests(values)
    if is_.is_boolean(data_type):
        return np.asarray(values.cast(pa.uint8()).fill_null(0)).reshape(-1, 1)
    return _fixed_width_bytes(values, data_type.bit_width // 8)


def _fixed_width_bytes(values: pa.Array, width: int) -> _ByteRows:
    """Take values as they lie in memory; what lies where there is NULL means nothing."""
    start, buffer = values.offset * width, values.buffers()[1]
    if buffer is None:
        return np.zeros((len(values), width), np.uint8)
    return np.frombuffer(buffer, np.uint8)[start : start + len(values) * width].reshape(-1, width)


def _text_digests(values: pa.Array) -> _ByteRows:
    """Hash texts, each different one once; what stands for NULL means nothing."""
    encoded = values.dictionary_encode()
    digests = [xxh3_128_digest(text) for text in encoded.dictionary.cast(pa.binary()).to_pylist()]
    codes = np.asarray(encoded.indices.fill_null(len(digests)))
    rows: _ByteRows = _stacked([*digests, bytes(_HASH_BYTES)])[codes]
    return rows


def _list_digests(values: pa.Array, elements: _ByteRows) -> _ByteRows:
    """Hash lists or maps by the bytes of their elements, one after the other."""
    width, data = elements.shape[1], memoryview(elements.tobytes())
    edges = (np.asarray(values.offsets, np.int64) * width).tolist()
    return _stacked([xxh3_128_digest(data[start:end]) for start, end in pairwise(edges)])
