"""One bloom filter: pybloom-live's, filled from hashes a whole array at a time, and the sizes that filters come in.

There are few sizes, so that many filters of one size can be stored as one matrix. Knows no Arrow and no files.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, log
from typing import Any

import numpy as np
import numpy.typing as npt
from pybloom_live import BloomFilter
from xxhash import xxh3_64_intdigest

from fuse_plugins.bloom.hashing import Hashes

_Positions = npt.NDArray[np.int64]

_MIN_CAPACITY = 16
MIN_STEPPED_CAPACITY = 4096
"""Capacity from which there are 16 sizes to an octave, 3 % too large on average; below, they are powers of two."""


def filter_capacity(distinct: int) -> int:
    """Choose the capacity of a filter for so many distinct values: the least of the sizes that hold them."""
    power = 1 << (max(distinct, _MIN_CAPACITY) - 1).bit_length()
    step = power if power <= MIN_STEPPED_CAPACITY else power // 32
    return -(-max(distinct, _MIN_CAPACITY) // step) * step


def filter_shape(capacity: int, fpp: float) -> tuple[int, int]:
    """Return how many slices a filter has, and bits in each: as pybloom-live computes them, but making no filter."""
    slices = ceil(log(1.0 / fpp, 2))
    return slices, ceil(capacity * abs(log(fpp)) / (slices * log(2) ** 2))


class HashFilter(BloomFilter):  # type: ignore[misc]
    """A bloom filter of pybloom-live whose keys are bytes, hashed by XXH3-64, and which is filled in bulk from hashes.

    The filter has ``num_slices`` slices of ``bits_per_slice`` bits; each key has one bit in each slice.
    """

    def _setup(self, *sizes: Any) -> None:
        super()._setup(*sizes)
        self._use_own_hash()

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._use_own_hash()

    def copy(self) -> HashFilter:
        twin = HashFilter(self.capacity, self.error_rate)
        twin.bitarray, twin.count = self.bitarray.copy(), self.count
        return twin

    def _use_own_hash(self) -> None:
        self.make_hashes, self.hashfn = self._key_bits, xxh3_64_intdigest

    def _key_bits(self, key: bytes) -> Iterator[int]:
        """Yield the bit of a key in each slice."""
        hashed = np.array([xxh3_64_intdigest(key)], np.uint64)
        return (int(bits[0]) for bits in bit_positions(hashed, self.num_slices, self.bits_per_slice))

    def fill(self, hashes: Hashes) -> None:
        """Add keys by their hashes: ``hashes`` is uint64 of shape (n,), each hash once."""
        flags = np.zeros((self.num_slices, self.bits_per_slice), np.uint8)
        positions = bit_positions(hashes, self.num_slices, self.bits_per_slice)
        for slice_flags, slice_bits in zip(flags, positions, strict=True):
            slice_flags[slice_bits] = 1
        filter_bytes = np.frombuffer(self.bitarray, np.uint8)
        filter_bytes |= np.packbits(flags.ravel(), bitorder="little")
        self.count += len(hashes)

    def tobytes(self) -> bytes:
        """The filter's bits, the first bit lowest; slice s begins at bit ``s * bits_per_slice``."""
        return bytes(self.bitarray.tobytes())


def bit_positions(hashes: Hashes, slices: int, bits_per_slice: int) -> Iterator[_Positions]:
    """Yield, for each slice in turn, the bit of each key in it.

    ``hashes`` is uint64 of shape (n,); each of the ``slices`` results is int64 of shape (n,), from 0 to before
    ``bits_per_slice``. Double hashing on 32 bits: the halves of a hash say where to begin and how far to step; the
    upper half of a product brings a number to the range without a division.
    """
    position = hashes.astype(np.uint32)
    step = (hashes >> np.uint64(32)).astype(np.uint32) | np.uint32(1)
    for _ in range(slices):
        scaled = position.astype(np.uint64)
        scaled *= np.uint64(bits_per_slice)
        scaled >>= np.uint64(32)
        yield scaled.view(np.int64)
        position += step
