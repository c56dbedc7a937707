"""Normalising changes how a predicate is said, never what it says: tried on whole worlds of values, and on Spark's
answers.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from fuse_index.errors import OpaqueError
from fuse_index.expressions.evaluate import evaluate
from fuse_index.expressions.normalize import normalize
from fuse_index.expressions.to_sql import predicate_sql
from fuse_index.predicate import (
    And,
    Cast,
    Column,
    Compare,
    Context,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Opaque,
    Or,
    StartsWith,
)
from fuse_index.reasons import Reason
from fuse_index.sql.parse import parse_predicate_as_written

OPERATORS = ["=", "<=>", "<>", "<", "<=", ">", ">="]
UTC_ANSI = Context()
NTZ, TIMESTAMP, DATE = pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.date32()


def floats():
    near = [0.1, 1.0, 5.5, 16777216.0, 3.4028234663852886e38, 1e-45, 0.0]
    found = {np.float32(sign * value) for value in near for sign in (1, -1)}
    with np.errstate(over="ignore"):
        for value in list(found):
            found |= {np.nextafter(value, np.float32(math.inf)), np.nextafter(value, np.float32(-math.inf))}
    return [*sorted(float(value) for value in found), math.inf, -math.inf, math.nan, -0.0]


DAYS = [
    date(1, 1, 1),
    date(1969, 12, 31),
    date(1970, 1, 1),
    *(date(2024, 3, 1) + timedelta(days=i) for i in range(20)),
    date(9999, 12, 31),
]
WALLS = [datetime(2024, 3, 9) + timedelta(minutes=90 * i, microseconds=i % 2) for i in range(40)]
LONGS = sorted(
    {sign * base + step for base in (0, 5, 2**53, 2**62, 2**63 - 3) for sign in (1, -1) for step in (-2, -1, 0, 1, 2)}
)

# the values of a column, and a type that Spark may cast it to, with literals of that type to compare with
WORLDS = {
    "tinyint as int": (pa.int8(), range(-128, 128), pa.int32(), [-(2**31), -129, -128, -1, 0, 127, 128, 300]),
    "tinyint as decimal": (
        pa.int8(),
        range(-128, 128),
        pa.decimal128(4, 1),
        [Decimal(v) / 10 for v in (-1281, -1280, -5, 0, 55, 1270, 1275)],
    ),
    "tinyint as double": (
        pa.int8(),
        range(-128, 128),
        pa.float64(),
        [-math.inf, -128.5, -0.5, -0.0, 5.0, 127.0, 1e300, math.nan],
    ),
    "bigint as double": (
        pa.int64(),
        LONGS,
        pa.float64(),
        [-(2.0**63), -5.5, 0.0, 5.0, 2.0**53, 2.0**53 + 2, 2.0**63, math.nan],
    ),
    "bigint as float": (pa.int64(), LONGS, pa.float32(), [-5.5, 5.0, 2.0**53, 2.0**62, 2.0**63]),
    "bigint as decimal": (
        pa.int64(),
        LONGS,
        pa.decimal128(21, 1),
        [Decimal("5.5"), Decimal("9007199254740993.0"), Decimal("99999999999999999999.9")],
    ),
    "float as double": (
        pa.float32(),
        floats(),
        pa.float64(),
        [-1e300, -0.1, -0.0, 1e-300, 0.1, 1.0, 5.5, 16777217.0, 3.5e38, math.inf, math.nan],
    ),
    "decimal as wider": (
        pa.decimal128(3, 1),
        [Decimal(v) / 10 for v in range(-999, 1000)],
        pa.decimal128(6, 3),
        [Decimal(v) / 1000 for v in (-99950, 0, 50, 5500, 99950)],
    ),
    "decimal as double": (
        pa.decimal128(3, 1),
        [Decimal(v) / 10 for v in range(-999, 1000)],
        pa.float64(),
        [-1e3, -0.05, 0.1, 5.5, 1e3, math.nan],
    ),
    "date as clock": (
        DATE,
        DAYS,
        NTZ,
        [datetime(1, 1, 1), datetime(2024, 3, 10), datetime(2024, 3, 10, 0, 0, 0, 1), datetime(9999, 12, 31, 23)],
    ),
    "date as timestamp": (
        DATE,
        DAYS[1:-1],
        TIMESTAMP,
        [
            datetime(2024, 3, 10, tzinfo=UTC),
            datetime(2024, 3, 10, 5, tzinfo=UTC),
            datetime(2024, 3, 10, 12, tzinfo=UTC),
        ],
    ),
    "clock as date": (NTZ, WALLS, DATE, [date(1, 1, 1), date(2024, 3, 9), date(2024, 3, 10), date(9999, 12, 31)]),
    "timestamp as date": (
        TIMESTAMP,
        [w.replace(tzinfo=UTC) for w in WALLS],
        DATE,
        [date(2024, 3, 9), date(2024, 3, 10), date(2024, 3, 11)],
    ),
    "timestamp as clock": (
        TIMESTAMP,
        [w.replace(tzinfo=UTC) for w in WALLS],
        NTZ,
        [datetime(2024, 3, 10), datetime(2024, 3, 10, 2, 30), datetime(2024, 3, 10, 3)],
    ),
    "clock as timestamp": (
        NTZ,
        WALLS,
        TIMESTAMP,
        [datetime(2024, 3, 10, h, m, tzinfo=UTC) for h in (0, 6, 7, 8) for m in (0, 30)],
    ),
}
ZONES = ["UTC", "+05:30", "America/New_York", "Pacific/Apia"]


def answers(predicate, kind, values, context):
    return evaluate(predicate, pa.table({"c": pa.array([*values, None], kind)}), context).to_pylist()


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("operator", OPERATORS)
def test_a_cast_taken_off_answers_alike_on_every_value(world, operator):
    kind, values, target, literals = WORLDS[world]
    zones = ZONES if pa.types.is_temporal(kind) else ["UTC"]

    for literal, zone in product([*literals, None], zones):
        context = Context(zone)
        leaf = Compare(operator, Cast(Column(("c",), kind), target), Literal(literal, target))
        normal = normalize(leaf, context)

        assert answers(normal, kind, values, context) == answers(leaf, kind, values, context), (
            predicate_sql(leaf),
            predicate_sql(normal),
        )
        assert answers(normalize(Not(leaf), context), kind, values, context) == answers(
            Not(leaf), kind, values, context
        )


@pytest.mark.parametrize("world", WORLDS)
def test_a_cast_taken_off_a_list_answers_alike_on_every_value(world):
    kind, values, target, literals = WORLDS[world]
    zones = ZONES if pa.types.is_temporal(kind) else ["UTC"]

    for first, second, zone in product(literals, [*literals, None], zones):
        context = Context(zone)
        leaf = In(Cast(Column(("c",), kind), target), (Literal(first, target), Literal(second, target)))
        normal = normalize(leaf, context)

        assert answers(normal, kind, values, context) == answers(leaf, kind, values, context), (
            predicate_sql(leaf),
            predicate_sql(normal),
        )


def test_normalising_changes_no_answer_of_the_corpus_and_is_done_at_once(golden):
    for case, _ in golden.answered:
        written = parse_predicate_as_written(case.sql, golden.schema, case.context)
        normal = normalize(written, case.context)
        try:
            expected = evaluate(written, golden.rows, case.context)
        except OpaqueError:
            continue

        assert evaluate(normal, golden.rows, case.context) == expected, case
        assert normalize(normal, case.context) == normal, case


C8, C32, F, D, DEC, S, TS, DAY = (
    Column(("c",), kind)
    for kind in (pa.int8(), pa.int32(), pa.float32(), pa.float64(), pa.decimal128(10, 2), pa.string(), TIMESTAMP, DATE)
)


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        (Compare("<", Literal(5, pa.int32()), C32), "c > 5"),
        (Compare("=", C32, Literal("5", pa.string())), "c = 5"),
        (Compare("=", C32, Literal(5.0, pa.float64())), "c = 5"),
        (Compare("<", C32, Literal(Decimal("5.5"), pa.decimal128(2, 1))), "c < 6"),
        (Compare(">=", C8, Literal(300, pa.int32())), "c > 127"),
        (Compare("=", F, Literal(0.1, pa.float64())), "c < 0.0F AND c > 0.0F"),
        (Compare("=", F, Literal(0.5, pa.float64())), "c = 0.5F"),
        (Compare(">", F, Literal(0.1, pa.float64())), "c >= 0.1F"),
        (Compare("=", D, Literal(-0.0, pa.float64())), "c = 0.0D"),
        (Compare("=", DEC, Literal(1, pa.int32())), "c = 1.00"),
        (Compare("<=", DEC, Literal(Decimal("1.005"), pa.decimal128(4, 3))), "c < 1.01"),
        (
            Compare("=", Cast(TS, DATE), Literal(date(2024, 3, 10), DATE)),
            "c >= TIMESTAMP'2024-03-10 00:00:00Z' AND c <= TIMESTAMP'2024-03-10 23:59:59.999999Z'",
        ),
        (Compare(">", DAY, Literal(datetime(2024, 3, 10, 5, tzinfo=UTC), TIMESTAMP)), "c >= DATE'2024-03-11'"),
        (In(C32, (Literal(1.0, pa.float64()), Literal(2.5, pa.float64()))), "c IN (1)"),
        (In(C32, (Literal(2.5, pa.float64()), Literal(None, pa.float64()))), "c IN (NULL)"),
        (
            In(
                D,
                (
                    Literal(0.0, pa.float64()),
                    Literal(-0.0, pa.float64()),
                    Literal(math.nan, pa.float64()),
                    Literal(-math.nan, pa.float64()),
                ),
            ),
            "c IN (0.0D, double('NaN'))",
        ),
        (IsNull(Cast(C32, pa.int64())), "c IS NULL"),
        (Not(Not(IsNull(C32))), "c IS NULL"),
        (And((IsNull(C32), And((IsNull(C32), IsNull(C32))))), "c IS NULL"),
        (Like(S, Literal(None, pa.string())), "c = NULL"),
        (StartsWith(S, Literal(None, pa.string())), "c = NULL"),
        # and what must stay as it is
        (Compare("=", C32, Literal(None, pa.int32())), "c = NULL"),
        (Compare("=", Cast(S, pa.int32()), Literal(5, pa.int32())), "CAST(c AS INT) = 5"),
        (Compare("=", Cast(C32, pa.int8()), Literal(5, pa.int8())), "CAST(c AS TINYINT) = 5"),
        (IsNull(Cast(C32, pa.int8(), "try")), "TRY_CAST(c AS TINYINT) IS NULL"),
        (Compare("=", Cast(D, pa.float32()), Literal(0.5, pa.float32())), "CAST(c AS FLOAT) = 0.5F"),
    ],
)
def test_the_column_stands_left_in_its_own_type(written, normal):
    assert predicate_sql(normalize(written, UTC_ANSI)) == normal


def test_what_spark_does_not_compare_is_opaque():
    for leaf in (
        Compare("=", C32, Literal(True, pa.bool_())),
        In(C32, (Literal("x", pa.string()),)),
        Compare("=", DAY, Literal(5, pa.int32())),
    ):
        opaque = normalize(leaf, UTC_ANSI)

        assert isinstance(opaque, Opaque)
        assert opaque.reason == Reason.TYPE_MISMATCH


def test_in_a_zone_that_changes_its_clocks_casts_stay_but_imply_bounds():
    leaf = Compare("=", Cast(TS, DATE), Literal(date(2024, 3, 10), DATE))

    normal = normalize(leaf, Context("Europe/Berlin"))

    assert isinstance(normal, And)
    assert normal.terms[0] == leaf
    assert {term.operator for term in normal.terms[1:]} == {">=", "<="}
    assert all(term.left == TS for term in normal.terms[1:])


def test_what_depends_on_an_unknown_zone_is_left_alone():
    leaf = IsNull(Cast(TS, NTZ))

    assert normalize(leaf, Context("Mars/Olympus")) == leaf


def test_a_long_list_is_coerced_value_by_value():
    leaf = In(C32, tuple(Literal(i, pa.int64()) for i in range(10_000)))

    normal = normalize(leaf, UTC_ANSI)

    assert normal == In(C32, tuple(Literal(i, pa.int32()) for i in range(10_000)))


def test_many_values_of_a_cast_that_rounds_keep_the_cast():
    column = Column(("c",), pa.int64())
    few, many = (
        In(Cast(column, pa.float64()), tuple(Literal(float(i), pa.float64()) for i in range(count)))
        for count in (3, 101)
    )

    assert isinstance(normalize(few, UTC_ANSI), Or)
    assert normalize(many, UTC_ANSI) == many
