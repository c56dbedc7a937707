"""The files of a snapshot, packed for the JVM: one array of bytes, since each py4j call costs milliseconds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def packed(paths: Sequence[str], sizes: npt.NDArray[np.int64]) -> bytes:
    """What ``Listing.java`` reads. ``paths`` are what Hadoop opens, ``sizes`` their bytes, in the order of votes."""
    if not paths:
        return bytes(8)
    first, last = min(paths), max(paths)
    same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    prefix = first[:same].encode()
    names = [path[same:].encode() for path in paths]
    ends = np.cumsum([len(name) for name in names])
    counts = np.array([len(paths), len(prefix)])
    return b"".join([counts.astype(">i4").tobytes(), prefix, sizes.astype(">i8").tobytes(), ends.astype(">i4").tobytes(), *names])
