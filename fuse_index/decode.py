"""Bytes of a payload, decoded within bounds: for authors of index kinds, as ``fuse_index.plugin`` has it.

A checksum says that bytes are as they were written, not that the writer meant well. So no number from a payload or a
summary is believed before it is compared with what the engine knows: the rows of the block, and the payload's length.
All of these raise ``Corrupt``, and the index is passed over.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fuse_storage import Corrupt

_FREE_EXPANDED_BYTES = 8 << 20
_EXPANDED_BYTES_PER_BYTE = 100


def expanded_limit(length: int) -> int:
    """The most bytes that so many compressed ones are expanded to, where nothing better is known: 8 MiB, and 100 each.

    >>> expanded_limit(27_000)
    11088608
    """
    return _FREE_EXPANDED_BYTES + _EXPANDED_BYTES_PER_BYTE * length


def decompress(data: bytes | memoryview, codec: str, size: int, limit: int) -> bytes:
    """Expand bytes to ``size`` of them, exactly; refused before memory is taken if that is more than ``limit``."""
    if not 0 <= size <= limit:
        raise Corrupt(f"{len(data)} bytes say that they are {size} once expanded, and {limit} is the most")
    try:
        return bytes(pa.Codec(codec).decompress(data, size, asbytes=True))
    except (OSError, ValueError) as problem:
        raise Corrupt(f"{len(data)} bytes are not {size} of {codec}: {problem}") from problem


def texts_from_lengths(lengths: npt.NDArray[np.int64], data: bytes) -> pa.StringArray:
    """Cut bytes into texts: int64 ``lengths`` of shape (n,), of which the sum is what there is.

    >>> texts_from_lengths(np.array([4, 0, 6]), b"laterefund").to_pylist()
    ['late', '', 'refund']
    """
    if len(data) > np.iinfo(np.int32).max or lengths.min(initial=0) < 0 or lengths.sum() != len(data):
        raise Corrupt(f"{len(lengths)} texts of {lengths.sum()} bytes are said to lie in {len(data)}")
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    texts = pa.Array.from_buffers(pa.string(), len(lengths), [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    try:
        texts.validate(full=True)  # Arrow's kernels take UTF-8 on trust
    except pa.ArrowInvalid as problem:
        raise Corrupt(f"bytes of texts are damaged: {problem}") from problem
    return texts
