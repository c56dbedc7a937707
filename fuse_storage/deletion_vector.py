"""Deletion vectors: one bit for each row of a block's file, 1 where it does not count, in packs that many share.

A reference says in which pack, and where in it, a block's vector lies. Every byte is verified, and none is decompressed
to more than the block has rows for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from fuse_storage.errors import RESTORE_HINT, Corrupt, NotFound, TableUrl
from fuse_storage.metadata.file_ref import new_id
from fuse_storage.metadata.pack import PackSlice, add_checksums, checksummed_size
from fuse_storage.parquet.pages import RowMask
from fuse_storage.store.shared_files import absolute_key, resolve_store
from fuse_storage.store.store import Store

VECTOR_FOLDER = "_d"
_CHUNK_BYTES = 1 << 10
"""Bytes between two checksums of a pack: a vector of a few rows is a hundred bytes, and packs have whole chunks."""
_CODEC = "zstd"
_MAX_OVERHEAD = 1 << 10
"""Bytes that a vector may take, compressed, beyond what it has for rows: zstd stores as it is what it cannot shrink."""
_MAX_BYTES = 1 << 27
"""Bytes of a vector: a block of a billion rows is none of ours."""
_REFERENCE = re.compile(r"(?P<key>.+):(?P<offset>[0-9]{1,15}):(?P<length>[0-9]{1,15})", re.DOTALL)


@dataclass(frozen=True, slots=True)
class VectorRef:
    """Where a vector lies: the key of a pack, and which of its logical bytes are the vector's."""

    key: str
    offset: int
    length: int

    def __str__(self) -> str:
        return f"{self.key}:{self.offset}:{self.length}"

    @staticmethod
    def parse(text: str) -> VectorRef:
        """Raises Corrupt for what no writer wrote."""
        if (found := _REFERENCE.fullmatch(text)) is None:
            raise Corrupt(f"{text!r} is no place of a deletion vector: {RESTORE_HINT}")
        return VectorRef(found["key"], int(found["offset"]), int(found["length"]))

    def absolute(self, store: Store) -> VectorRef:
        """Refer to the vector as other tables do."""
        return replace(self, key=absolute_key(store, self.key))


def vector_pack_path(pack_id: str) -> str:
    return f"{VECTOR_FOLDER}/{pack_id}"


def write_vectors(store: Store, masks: Sequence[RowMask]) -> list[VectorRef]:
    """Write one pack of vectors. ``masks``: of each block, bool, shape (rows,), True where a row does not count."""
    vectors = [
        pa.Codec(_CODEC).compress(np.packbits(mask, bitorder="little").tobytes(), asbytes=True) for mask in masks
    ]
    key = vector_pack_path(new_id())
    ends = np.cumsum([len(vector) for vector in vectors]).tolist()
    data = b"".join(vectors)
    data += bytes(-len(data) % _CHUNK_BYTES)
    store.create(key, add_checksums(data, _CHUNK_BYTES, key))
    return [VectorRef(key, end - len(vector), len(vector)) for end, vector in zip(ends, vectors, strict=True)]


def read_vector(store: Store, reference: VectorRef, row_count: int, live_count: int, shares_files: bool) -> RowMask:
    """Read a vector: bool, shape (rows,), True where a row does not count.

    ``shares_files``: packs may lie in other tables. Raises Corrupt for one that is missing or damaged, or not of so
    many rows, or does not leave so many; StorageError.
    """
    byte_count = -(-row_count // 8)
    if byte_count > _MAX_BYTES:
        raise Corrupt(TableUrl(store.url) + f": a block of {row_count} rows has no deletion vector: {RESTORE_HINT}")
    if reference.length > byte_count + byte_count // 64 + _MAX_OVERHEAD:
        raise Corrupt(
            TableUrl(store.url) + f": {reference} is longer than a deletion vector of {row_count} rows: {RESTORE_HINT}"
        )
    place, key = resolve_store(store, reference.key, shares_files)
    chunk_count = -(-(reference.offset + reference.length) // _CHUNK_BYTES)
    pack_bytes = checksummed_size(chunk_count * _CHUNK_BYTES, _CHUNK_BYTES)
    try:
        pack = PackSlice(place, key, _CHUNK_BYTES, pack_bytes, (reference.offset, reference.length))
        bits = pack.decoded((0, reference.length), _Decoder(byte_count), len)
    except NotFound as missing:
        raise Corrupt(f"{place.url}/{key}, which says what rows were deleted, is missing: {RESTORE_HINT}") from missing
    except (Corrupt, ValueError, OSError) as problem:
        raise Corrupt(
            TableUrl(place.url) + f": the deletion vector {reference} is damaged: {RESTORE_HINT}"
        ) from problem
    deleted = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little").view(np.bool_)
    if deleted[row_count:].any() or int(np.count_nonzero(deleted)) != row_count - live_count:
        raise Corrupt(
            TableUrl(place.url)
            + f": the deletion vector {reference} does not leave {live_count} of {row_count} rows: it is "
            f"another block's, or damaged: {RESTORE_HINT}"
        )
    return deleted[:row_count]


@dataclass(frozen=True)
class _Decoder:
    """Decompresses a vector, to so many bytes and no more. Raises OSError and ValueError. Equal ones do the same."""

    byte_count: int

    def __call__(self, data: bytes) -> bytes:
        bits: bytes = pa.Codec(_CODEC).decompress(data, decompressed_size=self.byte_count, asbytes=True)
        if len(bits) != self.byte_count:
            raise ValueError(f"it has {len(bits)} bytes instead of {self.byte_count}")
        return bits
