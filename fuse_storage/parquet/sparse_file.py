"""A file of which only some bytes are here."""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Sequence

import pyarrow as pa

from fuse_storage.store.ranges import ByteRange


class SparseFile(io.RawIOBase):
    """A file to read from, of which only some spans were fetched; they lie at the offsets that they had."""

    def __init__(self, spans: Sequence[ByteRange], fetched: Sequence[bytes]) -> None:
        self.starts = [offset for offset, _ in spans]
        self.fetched = fetched
        self.position = 0

    def view(self, offset: int, length: int) -> memoryview:
        """Read bytes, or as many of them as are here."""
        span = max(bisect_right(self.starts, offset) - 1, 0)
        start = offset - self.starts[span]
        return memoryview(self.fetched[span])[start : start + length]

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_CUR:
            offset += self.position
        elif whence == io.SEEK_END:
            offset += self.size()
        self.position = offset
        return offset

    def size(self) -> int:
        return self.starts[-1] + len(self.fetched[-1])

    def read_buffer(self, size: int) -> pa.Buffer:
        """Arrow asks for this in place of ``read``, and copies nothing then."""
        data = self.view(self.position, size)
        self.position += len(data)
        return pa.py_buffer(data)

    def read(self, size: int = -1) -> bytes:
        return bytes(self.read_buffer(size))
