"""Arrays of numbers as compressed bytes: each split into planes of bytes before zstd sees them.

::

    uint32        how many arrays there are: a
    uint32 × a    the length of each: numbers, or bytes where it is bytes
    uint32        bytes of the body before compression
    zstd          the body: array after array; of numbers first all lowest bytes, then all second bytes, and so on

Numbers that are alike differ in their lowest byte only, and planes of equal bytes cost next to nothing: of the gaps of
like terms zstd makes nearly as few bits as there can be.

>>> blob = compress_arrays(np.array([3, 70000]), b"late refund")
>>> numbers, text = decompress_arrays(blob, limit=100, texts=1)
>>> numbers.tolist(), text
([3, 70000], b'late refund')
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fuse_index.plugin import Corrupt, decompress

_ZSTD_LEVEL = 3


def compress_arrays(*arrays: npt.NDArray[Any] | bytes) -> bytes:
    """Compress arrays together: numbers from 0 to before 2³², 1-D of any integer dtype and shape (n,), or bytes."""
    bodies = [array if isinstance(array, bytes) else _byte_planes(array) for array in arrays]
    header = np.array([len(bodies), *(len(array) for array in arrays), sum(map(len, bodies))], np.uint32)
    packed = pa.Codec("zstd", _ZSTD_LEVEL).compress(b"".join(bodies), asbytes=True)
    return header.tobytes() + bytes(packed)


def decompress_arrays(data: bytes, limit: int, numbers: int = 1, texts: int = 0) -> list[Any]:
    """Return what ``compress_arrays`` was given: int64 arrays of shape (n,), as many as ``numbers``, then ``texts``.

    ``limit``: the most bytes of the body before compression. Raises Corrupt for more, and for what is no such blob.
    """
    count, head = numbers + texts, 4 * (numbers + texts + 2)
    header = np.frombuffer(data, np.uint32, count + 2).tolist() if len(data) >= head else [0]
    lengths, size = header[1:-1], header[-1]
    if header[0] != count or 4 * sum(lengths[:numbers]) + sum(lengths[numbers:]) != size:
        raise Corrupt(f"{len(data)} bytes are not {numbers} arrays of numbers and {texts} texts")
    body = decompress(memoryview(data)[head:], "zstd", size, limit)
    arrays: list[Any] = []
    start = 0
    for length in lengths[:numbers]:
        planes = np.frombuffer(body, np.uint8, 4 * length, start).reshape(4, length)
        arrays.append(np.ascontiguousarray(planes.T).view("<u4").ravel().astype(np.int64))
        start += 4 * length
    for length in lengths[numbers:]:
        arrays.append(body[start : start + length])
        start += length
    return arrays


def _byte_planes(numbers: npt.NDArray[Any]) -> bytes:
    return np.ascontiguousarray(numbers.astype("<u4").view(np.uint8).reshape(-1, 4).T).tobytes()
