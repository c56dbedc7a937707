"""Deletion vectors of Delta and Iceberg: Roaring bitmaps of the rows that do not count, in one frame for both.

Sources: "Deletion Vector Format" in Delta's protocol; the blob ``deletion-vector-v1`` in Iceberg's Puffin spec.
"""

from __future__ import annotations

import zlib

import numpy as np

from fuse_index.errors import InputError
from fuse_storage import Corrupt, RowMask

_MAGIC = b"\xd1\xd3\x39\x64"
_LENGTH_BYTES = 4
_MAX_ROWS = 1 << 40
"""Rows that a file may have: a bitmap with a greater number would need more memory than there is."""


def framed_rows(data: bytes, where: str) -> RowMask:
    """The rows of a vector with its length before it and its checksum behind it, as files have them.

    Returns bool, shape (last deleted row + 1,), True where a row does not count. Raises as ``bitmap_rows``.
    """
    length = int.from_bytes(data[:_LENGTH_BYTES], "big")
    vector, checksum = data[_LENGTH_BYTES : _LENGTH_BYTES + length], data[_LENGTH_BYTES + length :]
    if len(vector) != length or int.from_bytes(checksum[:_LENGTH_BYTES], "big") != zlib.crc32(vector):
        raise Corrupt(f"{where} has a deletion vector that is damaged: its checksum is another; restore the file")
    return bitmap_rows(vector, where)


def bitmap_rows(vector: bytes, where: str) -> RowMask:
    """The rows of a vector without its frame, as Delta has it in a log: bool, shape (last deleted row + 1,).

    Raises Corrupt for one that is damaged, InputError where pyroaring is not installed.
    """
    try:
        from pyroaring import BitMap64
    except ImportError as missing:
        raise InputError("deletion vectors are read with pyroaring: pip install pyroaring") from missing
    if vector[: len(_MAGIC)] != _MAGIC:
        raise Corrupt(f"{where} has a deletion vector in a format that is not known: it is damaged, or newer than this")
    try:
        rows = np.array(BitMap64.deserialize(vector[len(_MAGIC) :]).to_array(), np.uint64)
    except ValueError as problem:
        raise Corrupt(f"{where} has a deletion vector that is damaged ({problem}): restore the file") from problem
    if len(rows) and rows[-1] >= _MAX_ROWS:
        raise Corrupt(f"{where} has a deletion vector of row {rows[-1]}, which no file has: restore the file")
    mask = np.zeros(int(rows[-1]) + 1 if len(rows) else 0, np.bool_)
    mask[rows.astype(np.int64)] = True
    return mask
