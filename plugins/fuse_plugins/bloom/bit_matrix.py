"""Bit-sliced storage: many bloom filters of one size as one matrix of bits, a row per bit and a column per filter.

::

                      bit 0 1 2 3             filter A B C
    filters  A            1 0 1 1    matrix  bit 0   1 0 1     bytes: 1 0 1 0 1 0 1 1 | 1 1 0 0 …
             B            0 1 1 0            bit 1   0 1 0            bit 0 of all filters, then bit 1 of all …
             C            1 0 1 0            bit 2   1 1 1
                                             bit 3   1 0 0

A key sets one bit in each slice of a filter. To ask all filters for a key, only those rows are read (some ten of many
thousand), and a filter may hold the key where all of them have a 1. So a key costs a few short reads, however many
filters there are. Rows follow each other without gaps: bit ``row * columns + column``, lowest bit of a byte first.

Three filters, and which of them may contain the number 7:

>>> import pyarrow as pa
>>> from fuse_plugins.bloom.filters import HashFilter
>>> from fuse_plugins.bloom.hashing import hash_values
>>> filters = [HashFilter(16, 0.001) for _ in range(3)]
>>> for bloom_filter, numbers in zip(filters, ([7, 8], [9], [6, 7])):
...     bloom_filter.fill(hash_values(pa.array(numbers)))
>>> pack = transpose_filters([np.frombuffer(bloom_filter.tobytes(), np.uint8) for bloom_filter in filters])
>>> class PackInMemory:
...     def read(self, ranges):
...         return [pack[start : start + length] for start, length in ranges]
>>> matrix = BitMatrix(0, len(filters), filters[0].num_slices, filters[0].bits_per_slice)
>>> key = hash_values(pa.array([7]))
>>> matrix.may_contain(key, PackInMemory(), firsts=np.array([0, 0, 0]), lasts=np.array([1, 1, 1])).tolist()
[True, False, True]

The module knows no values and no files, only hashes and payloads to read from.
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

_PADDING_BYTES = 2
"""Bytes after a matrix, so that the last row can be read with as many bytes as any."""
_TILE_BYTES = 1 << 17
"""Bytes of all filters that are transposed at once: they fit in a processor's cache, and numpy has enough to do."""
_MIN_RUN_BYTES = 1024
"""Bytes of each filter that are transposed at once: with fewer, numpy takes longer to begin than to go on."""
_EACH_BYTE = 0x0101010101010101
_MAX_ROW_GAP_BYTES = 4096
"""Bytes between two rows below which it is cheaper to read all than to read apart."""
_MAX_BUFFERED_ROW_BYTES = 1 << 24
"""Bytes of rows that are held in memory at once."""


def transpose_filters(filters: Sequence[_Bytes]) -> bytes:
    """Transpose filters into the bytes of one matrix, padding included.

    ``filters``: one uint8 array per column, all of shape (n,): a filter's bits, lowest bit of a byte first.
    """
    tiles: list[bytes | _Bytes] = []
    length = max(_TILE_BYTES // len(filters), _MIN_RUN_BYTES)
    for start in range(0, len(filters[0]), length):
        tiles.append(_transpose_tile([bloom_filter[start : start + length] for bloom_filter in filters]))
    return b"".join([*tiles, bytes(_PADDING_BYTES)])  # type: ignore[list-item]  # arrays are buffers


def _transpose_tile(columns: Sequence[_Bytes]) -> _Bytes:
    """Transpose bits: row r of the result, bit after bit, has bit r of each column.

    ``columns``: c arrays, uint8 of shape (n,). Returns uint8 of shape (n, c): each byte of the columns becomes 8 rows
    of c bits, which begin wherever in a byte the row before ends.

    >>> columns = [np.array([0b00000011], np.uint8), np.array([0b00000001], np.uint8), np.array([0], np.uint8)]
    >>> [format(byte, "08b") for byte in _transpose_tile(columns).ravel()]  # the lowest bit first: 110 100 000 ...
    ['00001011', '00000000', '00000000']
    """
    count, length = len(columns), len(columns[0])
    blocks, words = -(-count // 8), -(-length // 8)  # columns and bytes that are missing are 0
    padded = np.zeros((8 * blocks, 8 * words), np.uint8)
    np.stack(columns, out=padded[:count, :length])
    rows = _transpose_8_by_8(padded.view(np.uint64).reshape(blocks, 8, words))
    packed = np.zeros((count + 2, words), np.uint64)  # on its side: numpy is fast where it runs along many bytes
    for row in range(8):
        start, shift = divmod(row * count, 8)
        fits = np.uint64(_EACH_BYTE * (0xFF >> shift))
        packed[start : start + blocks] |= (rows[:, row] & fits) << np.uint64(shift)
        if shift:  # what does not fit into the byte in which the row begins
            packed[start + 1 : start + 1 + blocks] |= (rows[:, row] & ~fits) >> np.uint64(8 - shift)
    return packed[:count].view(np.uint8)[:, :length].T.copy()


def _transpose_8_by_8(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Transpose bits, in place: bit j of each byte of row i changes places with bit i of that byte of row j.

    ``words``: 8 bytes each, shape (any, 8, any), the rows along the second axis. By halves: 1 by 1 within 2 by 2,
    these within 4 by 4, these within 8 by 8 (Hacker's Delight, 7-3).
    """
    for distance, mask in ((1, 0x55 * _EACH_BYTE), (2, 0x33 * _EACH_BYTE), (4, 0x0F * _EACH_BYTE)):
        pairs = words.reshape(len(words), 4 // distance, 2, distance, -1)
        low, high = pairs[:, :, 0], pairs[:, :, 1]
        moved = (low >> np.uint64(distance) ^ high) & np.uint64(mask)
        high ^= moved
        low ^= moved << np.uint64(distance)
    return words


@dataclass(frozen=True, slots=True)
class BitMatrix:
    """The place of one matrix in its pack, and the shape of its filters."""

    start: int
    """Byte of the pack at which the matrix begins."""
    columns: int
    """The number of filters."""
    slices: int
    """Slices of each filter: as many bits does a key set."""
    bits_per_slice: int

    @property
    def size(self) -> int:
        """Bytes of the matrix, padding included; a filter's bits are filled up to whole bytes."""
        rows = -(-self.slices * self.bits_per_slice // 8) * 8
        return rows * self.columns // 8 + _PADDING_BYTES

    def may_contain(self, hashes: Hashes, payload: Payload, firsts: _Numbers, lasts: _Numbers) -> _Mask:
        """Return which filters may contain any of the keys that they are asked for. Raises StorageError.

        ``hashes``: those of all keys, uint64 of shape (k,). Filter c is asked for ``hashes[firsts[c]:lasts[c]]``:
        ``firsts`` and ``lasts`` are int64 of shape (columns,). The result is bool, of the same shape.
        """
        may_contain = np.zeros(self.columns, np.bool_)
        start, end = int(firsts.min(initial=len(hashes))), int(lasts.max(initial=0))
        if start >= end:
            return may_contain
        read_rows = self._row_reader(end - start, payload)
        step = max(1, _MAX_BUFFERED_ROW_BYTES // (self.slices * self._row_bytes + 5 * self.columns))
        columns = np.arange(self.columns)
        for chunk_start in range(start, end, step):
            chunk = hashes[chunk_start : min(chunk_start + step, end)]
            row_numbers = [
                slice_number * self.bits_per_slice + bit
                for slice_number, bit in enumerate(bit_positions(chunk, self.slices, self.bits_per_slice))
            ]
            # A filter contains a key where all the key's bits are set: AND over the slices, one row a key is left.
            key_rows = np.bitwise_and.reduce(read_rows(np.stack(row_numbers)), axis=0)
            # contained[i, c]: how many of the chunk's first i keys filter c contains, so that a range is a difference.
            contained = np.zeros((len(chunk) + 1, self.columns), np.int32)
            key_bits = np.unpackbits(key_rows, axis=1, count=self.columns, bitorder="little")
            np.cumsum(key_bits, axis=0, out=contained[1:])
            lower, upper = (np.clip(ends - chunk_start, 0, len(chunk)) for ends in (firsts, lasts))
            may_contain |= contained[upper, columns] > contained[lower, columns]
        return may_contain

    @property
    def _row_bytes(self) -> int:
        """Bytes that hold a row, wherever in a byte it begins."""
        return -(-self.columns // 8) + 1

    def _row_reader(self, keys: int, payload: Payload) -> Callable[[_Numbers], _Bytes]:
        """Return a function from row numbers, int64 of any shape s, to rows, uint8 of shape s + (row bytes - 1,).

        Column 0 is the lowest bit of a row's first byte, wherever in a byte the row begins in the matrix.
        """
        whole = None
        if keys * self.slices * _MAX_ROW_GAP_BYTES >= self.size:
            whole = np.frombuffer(payload.read([(self.start, self.size)])[0], np.uint8)

        def read_rows(rows: _Numbers) -> _Bytes:
            first_bits = rows * self.columns
            first_bytes = first_bits >> 3
            raw: _Bytes
            if whole is not None:
                raw = whole[first_bytes[..., None] + np.arange(self._row_bytes)]
            else:
                ranges = [(self.start + first, self._row_bytes) for first in first_bytes.ravel().tolist()]
                raw = np.frombuffer(b"".join(payload.read(ranges)), np.uint8).reshape(*rows.shape, self._row_bytes)
            # Each byte and the one after it as 16 bits, moved down by the bits of the row before.
            shift = (first_bits & 7).astype(np.uint16)[..., None]
            return np.asarray((raw[..., :-1] | raw[..., 1:].astype(np.uint16) << 8) >> shift, np.uint8)

        return read_rows
