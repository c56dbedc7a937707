"""A column's default as the SQL text that Spark's readers take it from: what rows hold that are older than the column."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

from fuse_index.spark_types import name_of
from fuse_storage import Field


def sql_default(field: Field) -> str:
    """A constant of the column's own type, whatever the session's time zone and ANSI mode."""
    value = field.default_scalar.as_py()
    return f"CAST({_constant(value)} AS {name_of(field.type)})"


def _constant(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int() | Decimal():
            return f"'{value}'"
        case float():
            return f"'{value!r}'"  # Spark reads "nan" and "inf" too
        case bytes():
            return f"X'{value.hex()}'"
        case datetime():
            return f"'{value.isoformat(' ')}'"  # with its offset where the type is an instant
        case str():
            return f"X'{value.encode().hex()}'"  # quotes and backslashes mean different things to different sessions
        case _:  # a date
            return f"'{value.isoformat()}'"

