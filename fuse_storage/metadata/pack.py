"""Packs: what indexes keep of many blocks, in one file, every read of it verified.

Logical bytes are cut into chunks, and in the file each chunk is followed by its own 4-byte checksum (of xxh3-64, seeded
with the file's name and the chunk's number, so that no other file and no other chunk passes for it). So a few short
ranges can be read and trusted without reading the whole. Offsets are logical: they do not count the checksums. Nothing
here knows what an index is.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import xxhash

from fuse_storage.errors import Corrupt, StorageError
from fuse_storage.store.cache import Cache, cache_of
from fuse_storage.store.store import Store

_DEFAULT_CHUNK_BYTES = 16 << 10
"""Default bytes between two checksums: small enough for needles, large enough that checksums cost 0.03 %."""

_MAX_CHUNKS_READ = 1 << 18
"""Chunks of one read: 4 GiB of the default size. Each takes some 200 bytes of memory before the store is asked."""

_MANY_BYTES = 1 << 20
"""So many bytes are not kept beside what is decoded of them: of a large index, they drove each other out."""

_CHECKSUM_FORMAT = struct.Struct("<I")
_ByteSpan = tuple[int, int]
_Decoded = TypeVar("_Decoded")


@dataclass(frozen=True, slots=True)
class Sidecar:
    """What one index knows of one block.

    ``summary``: a small value of the index's summary type, kept beside the segment. ``payload``: bytes of any size,
    kept in a pack. ``details``: anything for the one who lays out the pack; never stored.
    """

    summary: Any
    payload: bytes | None = None
    details: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Pack:
    """The payloads of several blocks, laid out as one file.

    ``data``: the logical bytes. ``chunk``: how many of them go between two checksums. For each sidecar, in order:
    ``summaries`` (of the index's summary type) and ``spans`` ((offset, length) within ``data``, None without payload).
    """

    data: bytes
    chunk: int
    summaries: list[Any]
    spans: list[_ByteSpan | None]

    @staticmethod
    def concatenate(sidecars: Sequence[Sidecar], chunk: int = _DEFAULT_CHUNK_BYTES) -> Pack:
        """The payloads one after the other, summaries as they are."""
        spans: list[_ByteSpan | None] = []
        end = 0
        for sidecar in sidecars:
            size = None if sidecar.payload is None else len(sidecar.payload)
            spans.append(None if size is None else (end, size))
            end += size or 0
        data = b"".join(sidecar.payload for sidecar in sidecars if sidecar.payload is not None)
        return Pack(data, chunk, [sidecar.summary for sidecar in sidecars], spans)


def add_checksums(data: bytes, chunk: int, key: str | None = None) -> bytes:
    """The bytes of the file at ``key`` that holds ``data``: each chunk, and after it its checksum.

    Without ``key`` the checksums do not depend on the file's name, as in packs of former versions.
    """
    if chunk < 1:
        raise ValueError(f"a chunk of {chunk} bytes is too small: choose at least 1")
    view, seed = memoryview(data), 0 if key is None else _seed(key)
    parts: list[bytes | memoryview] = []
    for number, start in enumerate(range(0, len(view), chunk)):
        piece = view[start : start + chunk]
        parts += (piece, _CHECKSUM_FORMAT.pack(_checksum(piece, seed + number)))
    return b"".join(parts)


def checksummed_size(size: int, chunk: int) -> int:
    """The length of the file that holds ``size`` logical bytes."""
    return size + _CHECKSUM_FORMAT.size * -(-size // chunk)


def _identity(decode: Callable[..., object]) -> Hashable:
    """What a function is kept under: a partial one is made anew for each call, and is equal to none."""
    if isinstance(decode, partial):
        return decode.func, decode.args, tuple(sorted(decode.keywords.items()))
    return decode


def logical_size(length: int, chunk: int) -> int:
    """How many logical bytes a file of ``length`` bytes holds."""
    return length - _CHECKSUM_FORMAT.size * -(-length // (chunk + _CHECKSUM_FORMAT.size))


def _checksum(piece: bytes | memoryview, seed: int) -> int:
    return xxhash.xxh3_64_intdigest(piece, seed & 0xFFFFFFFFFFFFFFFF) & 0xFFFFFFFF


def _seed(key: str) -> int:
    """Seed the checksums of a pack by the last part of its key, which a clone of its table calls it by too."""
    return int(xxhash.xxh3_64_intdigest(key.rpartition("/")[2].encode()))


class PackSlice:
    """Part of a pack, as if it were a file of its own: what ``fuse_index.plugin.Payload`` asks for.

    ``length`` is that of the whole file; ``span`` the (offset, length) of this part, by default all of it.
    """

    def __init__(
        self,
        store: Store,
        key: str,
        chunk: int,
        length: int,
        span: _ByteSpan | None = None,
        cache: Cache | None = None,
    ) -> None:
        whole = logical_size(length, chunk) if chunk > 0 else -1
        self.store, self.key, self.chunk, self.length = store, key, chunk, length
        self.cache = cache_of(store) if cache is None else cache
        self.offset, self.size = (0, whole) if span is None else span
        if whole < 0 or self.offset < 0 or self.size < 0 or self.offset + self.size > whole:
            raise Corrupt(
                f"{store.url}/{key}: bytes {self.offset} to {self.offset + self.size} do not lie in its {length}"
            )

    def read(self, ranges: Sequence[_ByteSpan]) -> list[bytes]:
        """The bytes of each (offset, length), verified. Raises ValueError, NotFound, Corrupt or StorageError."""
        return self._read(ranges, keep=True)

    def _read(self, ranges: Sequence[_ByteSpan], keep: bool) -> list[bytes]:
        for offset, length in ranges:
            if offset < 0 or length < 0 or offset + length > self.size:
                raise ValueError(f"bytes {offset} to {offset + length} of {self.key}: it has {self.size}")
        if sum(length for _, length in ranges) > _MAX_CHUNKS_READ * self.chunk:
            raise Corrupt(f"{self.store.url}/{self.key}: more than {_MAX_CHUNKS_READ:,} chunks are no payload")
        absolute = [(self.offset + offset, length) for offset, length in ranges]
        chunks = self._chunks({number for r in absolute for number in self._chunk_numbers(r)}, keep)
        return [self._slice_chunks(r, chunks) for r in absolute]

    def read_spans(self, offsets: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> list[bytes]:
        """What ``read`` gives for very many small ranges: two of int64, shape (n,). Raises as ``read``."""
        first, last = (offsets + self.offset) // self.chunk, (offsets + self.offset + lengths - 1) // self.chunk
        plain = (offsets >= 0) & (lengths > 0) & (offsets + lengths <= self.size) & (first == last)
        if not plain.all():
            return self.read(list(zip(offsets.tolist(), lengths.tolist(), strict=True)))
        chunks = self._chunks(np.unique(first).tolist())
        starts = offsets + self.offset - first * self.chunk
        places = zip(first.tolist(), starts.tolist(), (starts + lengths).tolist(), strict=True)
        return [chunks[number][start:end] for number, start, end in places]

    def decoded(
        self, span: _ByteSpan, decode: Callable[[bytes], _Decoded], size: Callable[[_Decoded], int]
    ) -> _Decoded:
        """Decode the bytes of one (offset, length), and keep the result in memory as long as there is room.

        Raises as ``read``. ``decode``: the same function each time, since what it made is kept under it. ``size``:
        bytes of what it made.
        """
        name = ("decoded", self.store.url, self.key, self.offset + span[0], span[1], _identity(decode))
        keep = not _MANY_BYTES <= span[1] <= self.cache.max_bytes // 4  # what is larger may not be kept decoded, either
        return self.cache.get_or_load(name, lambda: decode(self._read([span], keep)[0]), size)

    def _chunk_numbers(self, span: _ByteSpan) -> range:
        offset, length = span
        return range(offset // self.chunk, -(-(offset + length) // self.chunk)) if length else range(0)

    def _slice_chunks(self, span: _ByteSpan, chunks: Mapping[int, bytes]) -> bytes:
        numbers = self._chunk_numbers(span)
        if not numbers:
            return b""
        joined = chunks[numbers[0]] if len(numbers) == 1 else b"".join(chunks[number] for number in numbers)
        start = span[0] - numbers[0] * self.chunk
        return joined[start : start + span[1]]

    def _chunks(self, numbers: Iterable[int], keep: bool = True) -> dict[int, bytes]:
        chunks: dict[int, bytes] = {}
        missing = []
        for number in sorted(numbers):
            if (cached := self.cache.find(self._cache_key(number))) is None:
                missing.append(number)
            else:
                chunks[number] = cached
        if missing:
            stored_ranges = [self._stored_range(number) for number in missing]
            for number, sealed in zip(missing, self.store.read_ranges(self.key, stored_ranges), strict=True):
                chunks[number] = self._verify_chunk(number, sealed)
                if keep:
                    self.cache.put(self._cache_key(number), chunks[number], len(chunks[number]) + 200)
        return chunks

    def _cache_key(self, number: int) -> tuple[str, str, str, int, int]:
        return ("chunk", self.store.url, self.key, self.chunk, number)

    def _stored_range(self, number: int) -> _ByteSpan:
        stride = self.chunk + _CHECKSUM_FORMAT.size
        return (number * stride, min(stride, self.length - number * stride))

    def _verify_chunk(self, number: int, sealed: bytes) -> bytes:
        piece, checksum = sealed[: -_CHECKSUM_FORMAT.size], sealed[-_CHECKSUM_FORMAT.size :]
        if len(sealed) == self._stored_range(number)[1]:
            # those of former versions were seeded with the number alone
            for seed in (_seed(self.key) + number, number):
                if checksum == _CHECKSUM_FORMAT.pack(_checksum(piece, seed)):
                    return piece
        raise Corrupt(
            f"{self.store.url}/{self.key}: chunk {number} fails its checksum; rebuild the index it belongs to"
        )


class UnreadablePack(PackSlice):
    """A pack of which it is known beforehand that it cannot be read, and why: reading any of it raises that."""

    def __init__(self, store: Store, problem: StorageError) -> None:
        super().__init__(store, "_i/unreadable", 1, checksummed_size(1, 1))
        self.problem = problem

    def _read(self, ranges: Sequence[_ByteSpan], keep: bool) -> list[bytes]:
        raise self.problem

    def read_spans(self, offsets: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> list[bytes]:
        """Raise what is wrong, whatever is asked for: two of int64, shape (n,)."""
        raise self.problem
