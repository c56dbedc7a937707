"""Spark's answers, written down once: rows, predicates, and what each predicate is on each row."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fuse_index.predicate import Context
from fuse_storage import Schema

ANALYSIS = ("DATATYPE_MISMATCH", "PARSE_SYNTAX_ERROR", "UNRESOLVED_COLUMN", "INVALID_FORMAT")

REWRITTEN = [
    (
        r"i(32|64) (<|<=|>|>=) (99999999999999999999|9223372036854775808)$",
        "a decimal beyond every long makes TRUE or FALSE, on NULL too",
    ),
    (
        r"(TRY_)?CAST\(i32 AS FLOAT\) = 16777216$",
        "a cast to FLOAT and on to DOUBLE becomes one to DOUBLE, and rounds no more",
    ),
    (
        r"(ntz|(TRY_)?CAST\(ntz AS TIMESTAMP\)) (=|<=>|<>|<|>=) TIMESTAMP'2024-03-10 03:(15|30):00'$",
        "a skipped hour is compared as it is",
    ),
]
"""Where Spark's optimizer gives an expression another meaning than the expression has; here it keeps its own."""

LETTERS = {"t": True, "f": False, "n": None}
TYPES = {
    "row": pa.int32(),
    "b": pa.bool_(),
    "i8": pa.int8(),
    "i16": pa.int16(),
    "i32": pa.int32(),
    "i64": pa.int64(),
    "f": pa.float32(),
    "d": pa.float64(),
    "dec": pa.decimal128(10, 2),
    "wide": pa.decimal128(38, 10),
    "da": pa.date32(),
    "ts": pa.timestamp("us", "UTC"),
    "ntz": pa.timestamp("us"),
    "s": pa.string(),
    "n": pa.string(),
    "w": pa.string(),
    "bin": pa.binary(),
    "st": pa.struct([("x", pa.int32()), ("Y", pa.struct([("z", pa.string())]))]),
}


@dataclass(frozen=True)
class Case:
    """One predicate in one session. ``answers`` is None where Spark refused it, or raised an error on some row."""

    sql: str
    context: Context
    answers: list[bool | None] | None
    analyzed: list[dict[str, Any]] | None
    optimized: list[dict[str, Any]] | None
    refused: str | None

    @property
    def unreadable(self) -> bool:
        """Spark refused the text itself, rather than some row."""
        return self.refused is not None and self.refused.startswith(ANALYSIS)

    def __str__(self) -> str:
        return f"{self.sql}   [{self.context.time_zone}, {'ANSI' if self.context.ansi else 'legacy'}]"


@dataclass(frozen=True)
class Golden:
    rows: pa.Table
    schema: Schema
    cases: list[Case]
    coercion: dict[str, dict[str, str | None]]

    @property
    def plain(self) -> Iterator[tuple[Case, list[bool | None]]]:
        """What Spark answered, but for expressions that it takes for others."""
        for case, answers in self.answered:
            if not any(re.match(pattern, case.sql) for pattern, _ in REWRITTEN):
                yield case, answers

    @property
    def answered(self) -> Iterator[tuple[Case, list[bool | None]]]:
        for case in self.cases:
            if case.answers is not None:
                yield case, case.answers


@cache
def read() -> Golden:
    found = json.loads((Path(__file__).parents[1] / "golden" / "predicates.json").read_text("utf-8"))
    columns = {name: [_value(value, TYPES[name]) for value in values] for name, values in found["columns"].items()}
    rows = pa.table({name: pa.array(values, TYPES[name]) for name, values in columns.items()})
    cases = [
        Case(
            case["sql"],
            Context(case.get("zone", "UTC"), case.get("ansi", True)),
            [LETTERS[letter] for letter in case["answers"]] if "answers" in case else None,
            case.get("analyzed"),
            case.get("optimized"),
            case.get("refused"),
        )
        for case in found["cases"]
    ]
    return Golden(rows, Schema.create(rows.schema), cases, found["coercion"])


def _value(value: Any, kind: pa.DataType) -> Any:
    if value is None or pa.types.is_nested(kind):
        return value
    if pa.types.is_floating(kind):
        return float(value)
    if pa.types.is_decimal(kind):
        return Decimal(value)
    if pa.types.is_date(kind):
        return date.fromisoformat(value)
    if pa.types.is_timestamp(kind):
        found = datetime.fromisoformat(value)
        return found.astimezone(UTC) if kind.tz else found
    return bytes.fromhex(value) if pa.types.is_binary(kind) else value


@pytest.fixture(scope="session")
def golden() -> Golden:
    return read()
