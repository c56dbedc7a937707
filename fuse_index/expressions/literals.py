"""Constants as Spark keeps them, written as text.

Days for a date, microseconds for a timestamp, ``{"hex": …}`` for bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as is_

from fuse_index.expressions import datetimes
from fuse_index.expressions.casts import to_float32


def decode_literal(written: Any, data_type: pa.DataType) -> Any:
    """The value as Python has it.

    Raises ValueError, OverflowError or InvalidOperation for what Python has no value for.
    """
    if written is None:
        return None
    if is_.is_integer(data_type) and isinstance(written, str):  # first, as joins tell thousands of keys
        return int(written)
    if is_.is_binary(data_type):
        return bytes.fromhex(written["hex"])
    if is_.is_list(data_type) and isinstance(written, list):
        return [decode_literal(each, data_type.value_type) for each in written]
    if not isinstance(written, str):
        raise ValueError(written)
    if is_.is_string(data_type):
        return written
    if is_.is_boolean(data_type):
        return {"true": True, "false": False}[written]
    if is_.is_floating(data_type):
        exact = written in ("NaN", "Infinity", "-Infinity") or is_.is_float64(data_type)
        return float(written) if exact else to_float32(Decimal(written))
    if is_.is_decimal(data_type):
        number = Decimal(f"{Decimal(written):.{data_type.scale}f}")
        if number != Decimal(written):
            raise ValueError(written)
        return number
    if is_.is_date(data_type):
        return date.fromordinal(datetimes.EPOCH.toordinal() + int(written))
    if is_.is_timestamp(data_type):
        return _epoch(data_type) + int(written) * datetimes.MICROSECOND
    return int(written)


def encode_literal(value: Any, data_type: pa.DataType) -> str | Mapping[str, str] | Sequence[Any] | None:
    """The text that ``decode_literal`` gives the value for."""
    match value:
        case None:
            return None
        case bytes():
            return {"hex": value.hex()}
        case list():
            return [encode_literal(each, data_type.value_type) for each in value]
        case bool():
            return str(value).lower()
        case float():
            return repr(value).replace("inf", "Infinity").replace("nan", "NaN")
        case datetime():
            return str((value - _epoch(data_type)) // datetimes.MICROSECOND)
        case date():
            return str(value.toordinal() - datetimes.EPOCH.toordinal())
        case _:
            return str(value)


def _epoch(data_type: pa.DataType) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC if data_type.tz else None)
