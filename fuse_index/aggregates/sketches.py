"""Sketches of distinct values, as Spark's ``hll_sketch_agg`` makes them.

The bytes are the same for the same values in the same order.

A sketch is one of Apache DataSketches' HLL sketches with 2^``lg_k`` registers of 8 bits. What its registers hold
depends on the values alone; what it estimates also on how they were divided before sketches were united, and in Spark
just as here.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import pyarrow as pa

LG_K_RANGE = range(4, 22)
"""What Spark takes."""
DEFAULT_LG_K = 12


@cache
def datasketches_module() -> Any:
    """``datasketches``; None where it is not installed."""
    try:
        import datasketches
    except ImportError:
        return None
    return datasketches


def build_sketch(values: Iterable[Any], lg_k: int) -> bytes:
    """Of integers or texts; None is passed over."""
    found = datasketches_module().hll_sketch(lg_k, datasketches_module().tgt_hll_type.HLL_8)
    for value in values:
        if value is not None:
            found.update(value)
    return bytes(found.serialize_compact())


def union_sketches(sketches: Iterable[bytes | None], lg_k: int = 0) -> bytes | None:
    """The sketch of all values of these, all of one size: of any, if none is given. None if there is no sketch.

    Raises ValueError for what is no sketch of that size.
    """
    whole = None
    for sketch in sketches:
        if sketch is not None:
            found = _read(sketch, lg_k)
            lg_k = found.lg_config_k
            whole = whole or datasketches_module().hll_union(lg_k)
            whole.update(found)
    if whole is None:
        return build_sketch((), lg_k) if lg_k else None
    return bytes(whole.get_result(datasketches_module().tgt_hll_type.HLL_8).serialize_compact())


def to_spark_sketches(sketches: pa.ChunkedArray) -> pa.ChunkedArray:
    """The sketches of a state, with the room that Spark leaves for further values; of none, the empty one."""
    read, empty = datasketches_module().hll_sketch.deserialize, build_sketch((), DEFAULT_LG_K)
    return pa.chunked_array(
        [pa.array([read(sketch or empty).serialize_updatable() for sketch in sketches.to_pylist()], pa.binary())]
    )


def sketch_registers(sketch: bytes) -> bytes:
    """What it knows of its values, without what it remembers of their order."""
    compact = bytes(datasketches_module().hll_sketch.deserialize(sketch).serialize_compact())
    known = compact[4 * compact[0] :]  # the first byte is the number of ints in front
    few = compact[7] & 3 != 2  # a list, or a set, in an order of its own
    return b"".join(sorted(known[at : at + 4] for at in range(0, len(known), 4))) if few else known


def _read(sketch: bytes, lg_k: int) -> Any:
    try:
        found = datasketches_module().hll_sketch.deserialize(sketch)
    except Exception as damage:  # of the library's own
        raise ValueError(f"{len(sketch)} bytes are no HLL sketch: {damage}") from damage
    if lg_k and found.lg_config_k != lg_k:
        raise ValueError(f"a sketch has 2^{found.lg_config_k} registers, not 2^{lg_k}")
    return found
