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
    """Make the sketch of integers or texts; None is passed over."""
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
    """The bytes that tell a sketch's values, without what it remembers of their order."""
    compact = bytes(datasketches_module().hll_sketch.deserialize(sketch).serialize_compact())
    known = compact[4 * compact[0] :]  # the first byte is the number of ints in front
    few = compact[7] & 3 != 2  # a list, or a set, in an order of its own
    return b"".join(sorted(known[at : at + 4] for at in range(0, len(known), 4))) if few else known


_LIST_MODE, _SET_MODE, _HLL_MODE = 0, 1, 2
_HEADER_BYTES = {_LIST_MODE: 8, _SET_MODE: 12, _HLL_MODE: 40}
_HLL_8 = 2
_COMPACT_FLAG = 8
_LG_LIST_ENTRIES, _MIN_LG_SET_ENTRIES = 3, 5
_MAX_REGISTER = 63


def _check_layout(sketch: bytes) -> None:
    """Raise ValueError for bytes over which the library reads and writes beyond them, or runs for ever.

    The layout is Apache DataSketches' own: the number of 4-byte ints in front, version, family, lg_k, the log of a
    table's size, flags, a count, and mode and type; then of few values their coupons, of many the registers.
    """
    ints, version, family, lg_k, lg_table, flags, count, kind = sketch[:8] if len(sketch) >= 8 else bytes(8)
    mode, head = kind & 3, _HEADER_BYTES.get(kind & 3, 0)
    if (4 * ints, version, family) != (head, 1, 7) or lg_k not in LG_K_RANGE or len(sketch) < head:
        raise ValueError("they do not begin like one")
    if kind >> 2 & 3 != _HLL_8:
        raise ValueError("its registers are not of 8 bits, as Spark makes them")
    if mode == _HLL_MODE:
        registers = sketch[head : head + (1 << lg_k)]
        zeros, exceptions = (int.from_bytes(sketch[at : at + 4], "little") for at in (32, 36))
        if len(registers) < 1 << lg_k or max(registers) > _MAX_REGISTER or zeros > 1 << lg_k or exceptions or count:
            raise ValueError(f"they hold no 2^{lg_k} registers")
        return
    entries = count if mode == _LIST_MODE else int.from_bytes(sketch[8:12], "little")
    if lg_table not in range(_MIN_LG_SET_ENTRIES, lg_k) if mode == _SET_MODE else lg_table != _LG_LIST_ENTRIES:
        raise ValueError(f"they hold a table of 2^{lg_table} values")
    stored = entries if flags & _COMPACT_FLAG else 1 << lg_table
    body = sketch[head : head + 4 * stored]
    coupons = {body[at : at + 4] for at in range(0, len(body), 4)} - {bytes(4)}
    limit = 1 << lg_table if mode == _LIST_MODE else 3 << lg_table - 2  # a table that is full is searched for ever
    if entries > limit or len(body) < 4 * stored or len(coupons) != entries:
        raise ValueError(f"they hold {len(coupons)} values, not {entries}")


def _read(sketch: bytes, lg_k: int) -> Any:
    try:
        _check_layout(sketch)
        found = datasketches_module().hll_sketch.deserialize(sketch)
    except Exception as damage:  # of the library's own
        raise ValueError(f"{len(sketch)} bytes are no HLL sketch: {damage}") from damage
    if lg_k and found.lg_config_k != lg_k:
        raise ValueError(f"a sketch has 2^{found.lg_config_k} registers, not 2^{lg_k}")
    return found
