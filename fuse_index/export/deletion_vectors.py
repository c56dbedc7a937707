"""Deletion vectors as Delta and Iceberg have them: Roaring bitmaps of the rows that do not count.

Both frame a vector alike: its length, a magic number, the bitmap in 64 bits, and a CRC-32. Delta puts them one after
another into a file, and Iceberg into a Puffin file, whose footer says of which data file each is.

Sources: "Deletion Vector Format" in Delta's protocol; the blob ``deletion-vector-v1`` in Iceberg's Puffin spec.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from fuse_index.errors import InputError
from fuse_storage import RowMask

_MAGIC = b"\xd1\xd3\x39\x64"
_DELTA_VERSION = b"\x01"
PUFFIN_HEAD = b"PFA1"
"""The magic number with which a Puffin file begins and ends, as does its footer."""
_PUFFIN_FLAGS = bytes(4)
_LENGTH_BYTES = 4
_BASE85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


@dataclass(frozen=True)
class StoredVector:
    """Where a framed vector lies in its file. ``offset``: of its length; ``size``: bytes from there to its end.

    ``cardinality``: how many rows it deletes.
    """

    offset: int
    size: int
    cardinality: int

    @property
    def bitmap_size(self) -> int:
        """Bytes of the magic number and the bitmap, without length and checksum."""
        return self.size - 2 * _LENGTH_BYTES


def delta_vectors(deleted: Iterable[RowMask]) -> tuple[bytes, list[StoredVector]]:
    """A file of vectors for Delta. ``deleted``: of each data file, bool, shape (rows,), True for deleted rows.

    Raises InputError where pyroaring is not installed.
    """
    return _concatenate(_DELTA_VERSION, deleted)


def puffin_vectors(deleted: Sequence[RowMask], data_files: Sequence[str]) -> tuple[bytes, list[StoredVector]]:
    """A Puffin file of the vectors of these data files. ``deleted``: of each, bool, shape (rows,), True if deleted.

    Raises as ``delta_vectors``.
    """
    data, vectors = _concatenate(PUFFIN_HEAD, deleted)
    blobs = [
        {
            "type": "deletion-vector-v1",
            "fields": [],
            "snapshot-id": -1,  # the snapshot that commits the vector gives it its numbers, says the spec
            "sequence-number": -1,
            "offset": vector.offset,
            "length": vector.size,
            "properties": {"referenced-data-file": data_file, "cardinality": str(vector.cardinality)},
        }
        for vector, data_file in zip(vectors, data_files, strict=True)
    ]
    footer = json.dumps({"blobs": blobs, "properties": {"created-by": "fuse-index"}}).encode()
    length = len(footer).to_bytes(_LENGTH_BYTES, "little")
    return b"".join([data, PUFFIN_HEAD, footer, length, _PUFFIN_FLAGS, PUFFIN_HEAD]), vectors


def z85(data: bytes) -> str:
    """Bytes, a multiple of four, as Delta writes them into paths and logs: ZeroMQ's base 85.

    >>> z85(bytes.fromhex("d2c639aa8816431aaaf6d3fe2512ff61"))
    '^-aqEH.-t@S}K{vb[*k^'
    """
    return base64.b85encode(data).translate(bytes.maketrans(_BASE85, _Z85)).decode()


def unz85(text: str) -> bytes:
    """The bytes that a text of ZeroMQ's base 85 stands for.

    >>> unz85("^-aqEH.-t@S}K{vb[*k^").hex()
    'd2c639aa8816431aaaf6d3fe2512ff61'
    """
    return base64.b85decode(text.encode().translate(bytes.maketrans(_Z85, _BASE85)))


def _concatenate(head: bytes, deleted: Iterable[RowMask]) -> tuple[bytes, list[StoredVector]]:
    data, vectors = bytearray(head), []
    for mask in deleted:
        framed = _framed(mask)
        vectors.append(StoredVector(len(data), len(framed), int(np.count_nonzero(mask))))
        data += framed
    return bytes(data), vectors


def _framed(deleted: RowMask) -> bytes:
    try:
        from pyroaring import BitMap
    except ImportError as missing:
        raise InputError("deleted rows are exported with pyroaring: pip install pyroaring") from missing
    rows = BitMap(np.flatnonzero(deleted).astype(np.uint32))
    rows.run_optimize()
    # A block has fewer than 2^32 rows: one bitmap of 32 bits, for all numbers whose upper half is 0.
    vector = b"".join([_MAGIC, (1).to_bytes(8, "little"), (0).to_bytes(4, "little"), rows.serialize()])
    return b"".join([len(vector).to_bytes(_LENGTH_BYTES), vector, zlib.crc32(vector).to_bytes(_LENGTH_BYTES)])
