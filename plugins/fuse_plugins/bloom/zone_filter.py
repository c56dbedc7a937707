"""From the values of a zone to its filter, if it needs one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from fuse_index.plugin import Sidecar
from fuse_plugins.bloom.filters import HashFilter, filter_capacity
from fuse_plugins.bloom.hashing import canonical_bytes, hash_values, unique_hashes

MAX_AVERAGE_TEXT_BYTES = 256
"""Average bytes of text beyond which a filter is not worth making, unless asked for."""
MAX_CONSTANT_BYTES = 64
"""Bytes of a value that is kept in a summary; a longer one gets a filter."""


def is_long_text(values: pa.Array) -> bool:
    if not (is_.is_string(values.type) or is_.is_binary(values.type)):
        return False
    return bool((pc.mean(pc.binary_length(values)).as_py() or 0) > MAX_AVERAGE_TEXT_BYTES)


def summarize_zone(values: pa.Array, fpp: float) -> tuple[dict[str, Any], bytes | None]:
    """What the summary says of a zone, and its filter if it needs one."""
    distinct = unique_hashes(hash_values(values))
    if len(distinct) == 0:
        return {"capacity": 0}, None
    if len(distinct) == 1:
        found = set(canonical_bytes(values.unique()))  # different texts may have one hash
        if len(found) == 1 and len(value := found.pop()) <= MAX_CONSTANT_BYTES:
            return {"capacity": 0, "constant": value}, None
    capacity = filter_capacity(len(distinct))
    filter = HashFilter(capacity, fpp)
    filter.fill(distinct)
    return {"capacity": capacity}, filter.tobytes()


def sidecar_filters(sidecar: Sidecar) -> Iterator[tuple[dict[str, Any], npt.NDArray[np.uint8]]]:
    """Each zone that has a filter, with its bits."""
    if sidecar.payload is None or sidecar.details is None:
        return
    end = 0
    for zone, length in zip(
        (zone for zone in sidecar.summary["zones"] if zone.get("capacity")), sidecar.details["lengths"], strict=True
    ):
        yield zone, np.frombuffer(sidecar.payload, np.uint8, length, end)
        end += length


def checksum_chunk_bytes(size: int) -> int:
    """Bytes between checksums: a needle reads at least so many a row, a long list reads all of them: some 2,000 to a
    pack.
    """
    return min(4096, max(256, 1 << (size // 2048).bit_length()))
