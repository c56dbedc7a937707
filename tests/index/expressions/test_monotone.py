"""What is implied by comparisons of monotone functions: TRUE wherever these are, on whole small worlds of values."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

from fuse_index.expressions.evaluate import evaluate
from fuse_index.expressions.monotone import implied_leaves
from fuse_index.expressions.to_sql import predicate_sql
from fuse_index.expressions.traversal import predicate_leaves
from fuse_index.predicate import Context
from fuse_index.sql.parse import parse_predicate
from fuse_storage import Schema

DAYS = [date(1, 1, 1), date(9999, 12, 31), *(date(2023, 12, 25) + timedelta(days) for days in range(0, 430, 3))]
INSTANTS = [
    datetime.combine(day, datetime.min.time(), UTC) + timedelta(hours=hour, microseconds=micros)
    for day in [date(1969, 12, 31), date(1970, 1, 1), *DAYS[2::29], date(2024, 3, 10), date(2024, 11, 3)]
    for hour, micros in [(0, 0), (0, -1), (5, 0), (6, 30), (7, 0), (23, 59)]
]
WORLDS = {
    "i8": pa.array([None, *range(-128, 128)], pa.int8()),
    "n": pa.array([None, -(2**31), -(2**31) + 1, *range(-40, 40), 2**31 - 2, 2**31 - 1], pa.int32()),
    "price": pa.array([None, *(Decimal(cents).scaleb(-2) for cents in range(-350, 350))], pa.decimal128(5, 2)),
    "day": pa.array([None, *DAYS], pa.date32()),
    "ts": pa.array([None, *INSTANTS], pa.timestamp("us", "UTC")),
    "wall": pa.array([None, *(each.replace(tzinfo=None) for each in INSTANTS)], pa.timestamp("us")),
    "s": pa.array([None, "", "a", "ab", "abc", "abcd", "abd", "aé", "aéz", "é", "b", "\0", "\U0001f600"]),
}
SCHEMA = Schema.create(pa.schema([(name, values.type) for name, values in WORLDS.items()]))
CONTEXTS = [Context(), Context(ansi=False), Context("America/New_York")]
TERMS = {
    "n": ("n + 3", "3 - n", "n * -2", "2 * n - 7", "-(n + 1)"),
    "i8": ("i8 * 3Y", "- i8", "100Y - i8", "CAST(i8 AS INT) + 1"),
    "price": ("1.5 - price", "price * 2", "floor(price)", "round(price, 1)"),
    "day": ("year(day)", "last_day(day)", "trunc(day, 'week')", "add_months(day, 1)", "day + 30"),
    "ts": ("year(ts)", "ts + INTERVAL 1 MONTH", "unix_timestamp(ts)"),
    "wall": ("date(wall)", "wall - INTERVAL 2 DAYS"),
    "s": ("substr(s, 1, 1)", "left(s, 2)"),
}
VALUES = {
    "n": ("0", "5", "2147483647"),
    "i8": ("-128", "-7", "127"),
    "price": ("-0.05", "1.5", "99"),
    "s": ("'a'", "''", "'abcd'"),
}
DATES = ("DATE'2024-02-29'", "DATE'0003-01-01'", "DATE'9997-12-31'")
OPERATORS = ("=", "<", "<=", ">", ">=")


def values_of(term: str, column: str) -> tuple[str, ...]:
    if term.startswith("year"):
        return ("2024", "1969")
    return ("0", "-1", "1704067200") if term.startswith("unix") else VALUES.get(column, DATES)


def conditions() -> Iterator[tuple[str, str]]:
    for column, terms in TERMS.items():
        for term in terms:
            values = values_of(term, column)
            yield from ((column, f"{term} {operator} {value}") for operator in OPERATORS for value in values)
            yield column, f"{term} IN ({', '.join(values)})"
            yield column, f"{term} NOT IN ({values[0]}, NULL)"


@pytest.mark.parametrize("context", CONTEXTS, ids=str)
def test_what_is_implied_is_true_wherever_the_condition_is(context: Context) -> None:
    wrong, implied = [], 0
    for column, text in conditions():
        rows = pa.table({column: WORLDS[column]})
        for leaf in predicate_leaves(parse_predicate(text, SCHEMA, context)):
            is_true = evaluate(leaf, rows, context).fill_null(False)
            for bound in implied_leaves(leaf, context):
                implied += 1
                if evaluate(bound, rows.filter(is_true), context).true_count != is_true.true_count:
                    wrong.append(f"{text}: {predicate_sql(bound)}")

    assert wrong == []
    assert implied > 200


@pytest.mark.parametrize(
    ("text", "implied"),
    [
        ("n + 1 = 4", ["n = 3"]),
        ("5 - n > 3", ["n <= 1"]),
        ("n * 2 = 5", ["n >= 3", "n <= 2"]),
        ("year(ts) = 2026", ["ts >= TIMESTAMP'2026-01-01 00:00:00Z'", "ts < TIMESTAMP'2027-01-01 00:00:00Z'"]),
        ("date_trunc('day', ts) < DATE'2024-02-01'", ["ts <= TIMESTAMP'2024-01-31 23:59:59.999999Z'"]),
        ("substr(s, 1, 3) = 'abc'", ["s >= 'abc'", "startswith(s, 'abc')"]),
        ("trunc(day, 'MM') = DATE'2024-02-01'", ["day >= DATE'2024-02-01'", "day <= DATE'2024-02-29'"]),
        ("floor(price) = 2", ["price >= 2.00", "price <= 2.99"]),
        ("n + 1 <> 4", []),
        ("n + n = 4", []),
        ("substr(s, 2, 3) = 'abc'", []),
    ],
)
def test_bounds_are_as_narrow_as_they_can_be(text: str, implied: list[str]) -> None:
    predicate = parse_predicate(text, SCHEMA)

    assert [predicate_sql(leaf) for leaf in implied_leaves(predicate, Context())] == implied


def test_where_integers_wrap_and_clocks_change_nothing_is_implied() -> None:
    legacy, new_york = Context(ansi=False), Context("America/New_York")

    assert implied_leaves(parse_predicate("n + 1 = 4", SCHEMA, legacy), legacy) == ()
    assert implied_leaves(parse_predicate("ts + INTERVAL 1 DAY > ts", SCHEMA, new_york), new_york) == ()
