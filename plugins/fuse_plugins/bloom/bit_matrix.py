"""Many filters of one size as one matrix of bits: row = bit of the filter, column = filter.

So a key reads a few short rows, however many filters there are. Rows follow each other without gaps, bit after bit: bit
``row * columns + column``, lowest bit of a byte first. Knows no values and no files, only payloads to read from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fuse_index.plugin import Payload
from fuse_plugins.bloom.filters import bit_positions
from fuse_plugins.bloom.hashing import Hashes

_Bytes = npt.NDArray[np.uint8]
_Numbers = npt.NDArray[np.int64]
_Mask = npt.NDArray[np.bool_]

PADDING_BYTES = 2
"""Bytes after a matrix, so that the last row can be read with as many bytes as any."""
TILE_BYTES = 1024
"""Bytes of each filter that are turned over at once: they fit in a processor's cache (ten times faster than all)."""
MAX_ROW_GAP_BYTES = 4096
"""Bytes between two rows below which it is cheaper to read all than to read apart."""
MAX_BUFFERED_ROW_BYTES = 1 << 24
"""Bytes of rows that are held in memory at once."""


def transpose_filters(filters: Sequence[_Bytes]) -> bytes:
    """The matrix of these filters, which are of one length."""
    parts: list[bytes | _Bytes] = []
    for start in range(0, len(filters[0]), TILE_BYTES):
        tile = np.stack([filter[start : start + TILE_BYTES] for filter in filters])
        bits = np.unpackbits(tile, axis=1, bitorder="little")
        parts.append(np.packbits(bits.T.ravel(), bitorder="little"))
    return b"".join([*parts, bytes(PADDING_BYTES)])  # type: ignore[list-item]  # arrays are buffers


@dataclass(frozen=True, slots=True)
class BitMatrix:
    """Where a matrix lies in its pack, and of which filters it is made."""

    start: int
    columns: int
    slices: int
    bits_per_slice: int

    @property
    def size(self) -> int:
        rows = -(-self.slices * self.bits_per_slice // 8) * 8
        return rows * self.columns // 8 + PADDING_BYTES

    def may_contain(self, hashes: Hashes, payload: Payload, firsts: _Numbers, lasts: _Numbers) -> _Mask:
        """Which filters may hold any of the keys that they are asked for. Raises StorageError.

        ``hashes`` are those of all keys; filter c is asked for ``hashes[firsts[c]:lasts[c]]``.
        """
        hit = np.zeros(self.columns, np.bool_)
        start, end = int(firsts.min(initial=len(hashes))), int(lasts.max(initial=0))
        if start >= end:
            return hit
        read = self._reader(end - start, payload)
        step = max(1, MAX_BUFFERED_ROW_BYTES // (self.slices * self._row_bytes + 5 * self.columns))
        every = np.arange(self.columns)
        for first in range(start, end, step):
            some = hashes[first : min(first + step, end)]
            found = [
                i * self.bits_per_slice + place
                for i, place in enumerate(bit_positions(some, self.slices, self.bits_per_slice))
            ]
            rows = np.bitwise_and.reduce(read(np.stack(found)), axis=0)  # a key is held where all its bits are set
            held = np.zeros((len(some) + 1, self.columns), np.int32)
            np.cumsum(np.unpackbits(rows, axis=1, count=self.columns, bitorder="little"), axis=0, out=held[1:])
            hit |= (
                held[np.clip(lasts - first, 0, len(some)), every] > held[np.clip(firsts - first, 0, len(some)), every]
            )
        return hit

    @property
    def _row_bytes(self) -> int:
        """Bytes that hold a row, wherever in a byte it begins."""
        return -(-self.columns // 8) + 1

    def _reader(self, keys: int, payload: Payload) -> Callable[[_Numbers], _Bytes]:
        """From row numbers, of any shape, to the rows, as bytes that begin with column 0."""
        whole = None
        if keys * self.slices * MAX_ROW_GAP_BYTES >= self.size:
            whole = np.frombuffer(payload.read([(self.start, self.size)])[0], np.uint8)

        def read(rows: _Numbers) -> _Bytes:
            bits = rows * self.columns
            places = bits >> 3
            raw: _Bytes
            if whole is not None:
                raw = whole[places[..., None] + np.arange(self._row_bytes)]
            else:
                ranges = [(self.start + place, self._row_bytes) for place in places.ravel().tolist()]
                raw = np.frombuffer(b"".join(payload.read(ranges)), np.uint8).reshape(*rows.shape, self._row_bytes)
            shift = (bits & 7).astype(np.uint16)[..., None]
            return np.asarray((raw[..., :-1] | raw[..., 1:].astype(np.uint16) << 8) >> shift, np.uint8)

        return read
