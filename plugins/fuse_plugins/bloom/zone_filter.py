"""The bloom filter of one zone, if it needs one: none is kept of zones with one value or none."""

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
_MAX_CONSTANT_BYTES = 64
"""Bytes of a value that is kept in a summary; a longer one gets a filter."""


def is_long_text(values: pa.Array) -> bool:
    """Return whether these are texts of more than MAX_AVERAGE_TEXT_BYTES on average."""
    if not (is_.is_string(values.type) or is_.is_binary(values.type)):
        return False
    return bool((pc.mean(pc.binary_length(values)).as_py() or 0) > MAX_AVERAGE_TEXT_BYTES)


def summarize_zone(values: pa.Array, fpp: float) -> tuple[dict[str, Any], bytes | None]:
    """Summarize a zone: what its ``ZONE_SUMMARY_TYPE`` says so far, and the bits of its filter if it needs one."""
    distinct = unique_hashes(hash_values(values))
    if len(distinct) == 0:
        return {"capacity": 0}, None
    if len(distinct) == 1:
        constants = set(canonical_bytes(values.unique()))  # different texts may have one hash
        if len(constants) == 1 and len(value := constants.pop()) <= _MAX_CONSTANT_BYTES:
            return {"capacity": 0, "constant": value}, None
    capacity = filter_capacity(len(distinct))
    bloom_filter = HashFilter(capacity, fpp)
    bloom_filter.fill(distinct)
    return {"capacity": capacity}, bloom_filter.tobytes()


def sidecar_filters(sidecar: Sidecar) -> Iterator[tuple[dict[str, Any], npt.NDArray[np.uint8]]]:
    """Yield each zone of a sidecar that has a filter: its summary, and the filter's bits, uint8 of shape (n,)."""
    if sidecar.payload is None or sidecar.details is None:
        return
    start = 0
    zones = (zone for zone in sidecar.summary["zones"] if zone.get("capacity"))
    for zone, length in zip(zones, sidecar.details["lengths"], strict=True):
        yield zone, np.frombuffer(sidecar.payload, np.uint8, length, start)
        start += length


def checksum_chunk_bytes(size: int) -> int:
    """Choose the bytes between checksums of a pack of ``size`` bytes, so that it has some 2,000 of them.

    A single value reads at least so many bytes for each row of a matrix; a long list reads all checksums.
    """
    return min(4096, max(256, 1 << (size // 2048).bit_length()))
