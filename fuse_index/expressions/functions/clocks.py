"""Days and instants as numbers: what clocks of the session show, and back; and months, which are not all as long."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone, tzinfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fuse_index.expressions import datetimes
from fuse_index.expressions.errors import NotReproducible
from fuse_index.expressions.functions.signature import DATE, TIMESTAMP
from fuse_index.predicate import Context

MICROSECONDS_PER_SECOND = 1_000_000
MICROSECONDS_PER_DAY = 86_400 * MICROSECONDS_PER_SECOND
MAX_SAFE_MICROSECONDS = 8_000_000_000_000_000_000
"""Some 250,000 years before and after 1970: what is added here to instants within them does not overflow."""

_Numbers = npt.NDArray[np.int64]


def numbers(column: pa.Array) -> tuple[_Numbers, npt.NDArray[np.bool_]]:
    """Days or microseconds since 1970: int64, shape (n,), 0 for NULL; and where it is NULL: bool, shape (n,)."""
    width = pa.int32() if column.type == DATE else pa.int64()
    filled = pc.fill_null(column.cast(width), 0)
    return np.asarray(filled).astype(np.int64), np.asarray(pc.is_null(column))


def from_numbers(values: _Numbers, is_null: npt.NDArray[np.bool_], data_type: pa.DataType) -> pa.Array:
    """Days or microseconds, int64 and bool, shape (n,) both, as a column. Raises NotReproducible for too many days."""
    width = np.int32 if data_type in (DATE, pa.int32()) else np.int64
    known = values[~is_null]
    if width is np.int32 and len(known) and (known.min() < -(2**31) or known.max() >= 2**31):
        raise NotReproducible("a date beyond what Spark holds")
    return pa.array(np.where(is_null, 0, values).astype(width), mask=is_null).view(data_type)


def check_safe(values: _Numbers) -> None:
    """Raises NotReproducible for microseconds, int64, shape (n,), to which nothing can be added safely."""
    if len(values) and not -MAX_SAFE_MICROSECONDS < values.min() <= values.max() < MAX_SAFE_MICROSECONDS:
        raise NotReproducible("an instant beyond the year 250,000")


def session_zone(context: Context) -> tzinfo:
    """The zone of the session. Raises NotReproducible."""
    return datetimes.parse_time_zone(context.time_zone)


def clocks(column: pa.Array, context: Context) -> tuple[_Numbers, npt.NDArray[np.bool_]]:
    """What clocks show: int64 microseconds since 1970 by those clocks, shape (n,), and where it is NULL: bool (n,).

    The column is of dates, of instants, which are read in the session's zone, or of clocks as they are.
    """
    values, is_null = numbers(column)
    if column.type == DATE:
        return values * MICROSECONDS_PER_DAY, is_null
    check_safe(values)
    if column.type != TIMESTAMP:
        return values, is_null
    zone = session_zone(context)
    if datetimes.has_fixed_offset(zone):
        return values + fixed_offset(zone), is_null
    try:
        return datetimes.wall_clocks(values, zone), is_null
    except OverflowError:
        raise NotReproducible(f"an instant beyond Python's years, in {zone}") from None


def fixed_offset(zone: tzinfo) -> int:
    """Microseconds by which clocks of a zone are ahead that are never changed."""
    return (zone.utcoffset(None) or timedelta()) // datetimes.MICROSECOND


def moved_instants(
    column: pa.Array, context: Context, move: Callable[[_Numbers], _Numbers]
) -> tuple[_Numbers, npt.NDArray[np.bool_]]:
    """Instants or clocks whose clock is moved: int64 microseconds, shape (n,), and where it is NULL: bool, shape (n,).

    ``move``: from microseconds by the clocks to others, int64, shape (n,). An instant keeps its offset from UTC where
    the clocks at its new place may show that, too.
    """
    shown, is_null = clocks(column, context)
    moved = move(shown)
    if column.type != TIMESTAMP:
        return moved, is_null
    zone = session_zone(context)
    if datetimes.has_fixed_offset(zone):
        return moved - fixed_offset(zone), is_null
    before, _ = numbers(column)
    try:
        made = [_instant(int(clock), int(offset), zone) for clock, offset in zip(moved, shown - before, strict=True)]
    except OverflowError:
        raise NotReproducible(f"an instant beyond Python's years, in {zone}") from None
    return np.array(made, np.int64), is_null


def _instant(clock: int, offset: int, zone: tzinfo) -> int:
    wall = datetimes.EPOCH + clock * datetimes.MICROSECOND
    kept = wall.replace(tzinfo=timezone(offset * datetimes.MICROSECOND))
    if kept.astimezone(zone).replace(tzinfo=None) == wall:
        return clock - offset
    return (datetimes.instant(wall, zone) - datetimes.EPOCH_UTC) // datetimes.MICROSECOND


def add_months(days: _Numbers, months: _Numbers | int) -> _Numbers:
    """Days since 1970, so many months later, the last of a month where it has no such day: int64, shape (n,)."""
    dates = days.astype("datetime64[D]")
    month = dates.astype("datetime64[M]")
    day_of_month = (dates - month.astype("datetime64[D]")).astype(np.int64)
    target = month + np.asarray(months, np.int64).astype("timedelta64[M]")
    last = ((target + 1).astype("datetime64[D]") - target.astype("datetime64[D]")).astype(np.int64) - 1
    found: _Numbers = target.astype("datetime64[D]").astype(np.int64) + np.minimum(day_of_month, last)
    return found


def wall_time(clock: int) -> datetime:
    """The clock as Python has it. Raises NotReproducible beyond its years."""
    try:
        return datetimes.EPOCH + clock * datetimes.MICROSECOND
    except OverflowError:
        raise NotReproducible("a year beyond Python's") from None
