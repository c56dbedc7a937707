"""pybloom-live's filter, filled from hashes a whole array at a time, and the sizes that filters come in.

Few sizes, so that many filters of one size can be stored as one matrix. Knows no Arrow and no files.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from pybloom_live import BloomFilter
from xxhash import xxh3_64_intdigest

from fuse_plugins.bloom.hashing import Hashes

_Positions = npt.NDArray[np.int64]

MIN_CAPACITY = 16
MIN_STEPPED_CAPACITY = 4096
"""Below, capacities are powers of two: such filters are small. From here, 16 to an octave: 3 % too large on average."""


def filter_capacity(distinct: int) -> int:
    """The capacity of a filter for so many distinct values: the least of the sizes that filters come in."""
    power = 1 << (max(distinct, MIN_CAPACITY) - 1).bit_length()
    step = power if power <= MIN_STEPPED_CAPACITY else power // 32
    return -(-max(distinct, MIN_CAPACITY) // step) * step


class HashFilter(BloomFilter):  # type: ignore[misc]
    """A ``BloomFilter`` whose keys are bytes, hashed by XXH3-64 and double hashing; filled in bulk from such hashes.

    The filter has ``num_slices`` slices of ``bits_per_slice`` bits; each key has one bit in each slice.
    """

    def _setup(self, *sizes: Any) -> None:
        super()._setup(*sizes)
        self._hash_as_we_do()

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._hash_as_we_do()

    def copy(self) -> HashFilter:
        twin = HashFilter(self.capacity, self.error_rate)
        twin.bitarray, twin.count = self.bitarray.copy(), self.count
        return twin

    def _hash_as_we_do(self) -> None:
        self.make_hashes, self.hashfn = self._slots, xxh3_64_intdigest

    def _slots(self, key: bytes) -> Iterator[int]:
        hashed = np.array([xxh3_64_intdigest(key)], np.uint64)
        return (int(found[0]) for found in bit_positions(hashed, self.num_slices, self.bits_per_slice))

    def fill(self, hashes: Hashes) -> None:
        """Add the keys with these hashes, each once."""
        flags = np.zeros((self.num_slices, self.bits_per_slice), np.uint8)
        for flagged, found in zip(flags, bit_positions(hashes, self.num_slices, self.bits_per_slice), strict=True):
            flagged[found] = 1
        bits = np.frombuffer(self.bitarray, np.uint8)
        bits |= np.packbits(flags.ravel(), bitorder="little")
        self.count += len(hashes)

    def tobytes(self) -> bytes:
        """The bits, first bit lowest."""
        return bytes(self.bitarray.tobytes())


def bit_positions(hashes: Hashes, slices: int, bits_per_slice: int) -> Iterator[_Positions]:
    """For each slice in turn, the bit of each hash in it.

    Double hashing on 32 bits: the halves of a hash say where to begin and how far to step; the upper half of a product
    brings a number to the range without a division.
    """
    place = hashes.astype(np.uint32)
    step = (hashes >> np.uint64(32)).astype(np.uint32) | np.uint32(1)
    for _ in range(slices):
        found = place.astype(np.uint64)
        found *= np.uint64(bits_per_slice)
        found >>= np.uint64(32)
        yield found.view(np.int64)
        place += step
