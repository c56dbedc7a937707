"""Sums, differences, products and quotients are what Spark says they are, of every two types of number, in either kind
of session.
"""

from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from itertools import product

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from fuse_index.errors import OpaqueError, WhereError
from fuse_index.expressions.evaluate import evaluate_term
from fuse_index.predicate import Context
from fuse_index.sql.parse import parse_term
from fuse_storage import Schema

TYPES = {"t": pa.int8(), "s": pa.int16(), "i": pa.int32(), "l": pa.int64(), "f": pa.float32(), "d": pa.float64()}
SMALL = [None, 1, -1, 2, -3, 11]
FLOATS = [None, 0.0, -0.0, 0.1, float("nan"), float("-inf")]
WHOLE = [None, 0, -1, 3]
EXTREME = {
    name: FLOATS if name in "fd" else [*WHOLE, (1 << kind.bit_width - 1) - 1, -(1 << kind.bit_width - 1)]
    for name, kind in TYPES.items()
}
TEXTS = [f"{a}1 {sign} {b}2" for a, b, sign in product(TYPES, TYPES, "+-*/")]
MIXED = ["l1 + 1", "d1 * 0.1", "1 - f1 / 2", "(i1 + s2) * t1 - 7L", "d1 + NULL", "t1 / 3 + 1.5D", "i1 - (i2 - 1)"]
JOINED = ["i1 || '-' || l2", "l2 || NULL", "'ü' || t2"]


def pairs(values: dict[str, list]) -> pa.Table:
    sides = {name: list(zip(*product(found, found), strict=True)) for name, found in values.items()}
    return pa.table({f"{name}{n + 1}": pa.array(sides[name][n], kind) for name, kind in TYPES.items() for n in (0, 1)})


@pytest.fixture(params=[True, False], ids=["ansi", "legacy"])
def ansi(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[bool]:
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", request.param)
    yield request.param
    spark.conf.set("spark.sql.ansi.enabled", before)


def test_numbers_of_all_types(spark: SparkSession, ansi: bool) -> None:
    rows = pairs(dict.fromkeys(TYPES, SMALL) if ansi else EXTREME)
    texts = [*TEXTS, *MIXED, *JOINED] if ansi else [*TEXTS, *JOINED]
    context, schema = Context("UTC", ansi), Schema.create(rows.schema)

    theirs = spark.createDataFrame(rows).selectExpr(*(f"{text} AS c{n}" for n, text in enumerate(texts))).toArrow()

    for text, column in zip(texts, theirs.columns, strict=True):
        ours = evaluate_term(parse_term(text, schema, context), rows, context)
        assert ours.type == column.type, text
        assert str(ours.to_pylist()) == str(column.to_pylist()), text


@pytest.mark.parametrize(
    "text", ["t1 + t2", "s1 * s2", "i1 - i2", "l1 + 1L", "l1 * l2", "i1 / i2", "d1 / 0", "f1 / f2"]
)
def test_what_spark_raises_on_is_refused(spark: SparkSession, text: str) -> None:
    rows = pairs(EXTREME)
    context = Context("UTC", True)

    with pytest.raises(PySparkException):
        spark.createDataFrame(rows).selectExpr(text).toArrow()
    with pytest.raises(OpaqueError, match="Spark raises on"):
        evaluate_term(parse_term(text, Schema.create(rows.schema), context), rows, context)


DECIMALS = {
    "a": pa.decimal128(1, 0),
    "b": pa.decimal128(3, 1),
    "c": pa.decimal128(15, 2),
    "e": pa.decimal128(18, 18),
    "g": pa.decimal128(32, 4),
    "h": pa.decimal128(38, 0),
    "j": pa.decimal128(38, 6),
    "k": pa.decimal128(38, 38),
    "i": pa.int32(),
    "l": pa.int64(),
    "d": pa.float64(),
}
DECIMAL_TEXTS = [f"{a}1 {sign} {b}2" for a, b, sign in product(DECIMALS, DECIMALS, "+-*")]
DECIMAL_MIXED = [
    "c1 * (1 - b2)",
    "c1 * (1 - b2) * (1 + b2)",
    "0.5 * c1",
    "7L * c1",
    "c1 * CAST(7 AS BIGINT)",
    "-c1 * -b2",
    "c1 + NULL",
    "c1 - (c2 - 1.25)",
    "c1 / 2D",
    "-i1 + 3",
    "1BD - e1",
]
UNROUNDED = 200
"""So many of the texts at least are understood: of the others Spark rounds, or they are of no decimal."""


def _digits(data_type: pa.DataType) -> list[object]:
    if not pa.types.is_decimal(data_type):
        return [None, 0, -1, 12]
    least, most = (Decimal((0, digits, -data_type.scale)) for digits in ((1,), (9,) * data_type.precision))
    return [None, Decimal(0), most, most.copy_negate(), least]


def _decimal_pairs(largest: bool) -> pa.Table:
    columns = {}
    for name, data_type in DECIMALS.items():
        values = _digits(data_type) if largest else _digits(data_type)[:2]
        sides = list(zip(*product([*values, *_digits(data_type)[-1:]], repeat=2), strict=True))
        for number, side in enumerate(sides):
            full = list(side) * (1 + 36 // len(side))
            columns[f"{name}{number + 1}"] = pa.array(full[:36], data_type)
    return pa.table(columns)


def test_decimals_of_all_sizes(spark: SparkSession, ansi: bool) -> None:
    rows = _decimal_pairs(largest=not ansi)
    context, schema = Context("UTC", ansi), Schema.create(rows.schema)
    known = {}
    for text in (*DECIMAL_TEXTS, *DECIMAL_MIXED):
        with suppress(WhereError):
            known[text] = parse_term(text, schema, context)

    theirs = spark.createDataFrame(rows).selectExpr(*(f"{text} AS x{n}" for n, text in enumerate(known))).toArrow()

    assert len(known) > UNROUNDED
    assert set(DECIMAL_MIXED) <= known.keys()
    for (text, term), column in zip(known.items(), theirs.columns, strict=True):
        ours = evaluate_term(term, rows, context)
        assert ours.type == term.type == column.type, text
        assert str(ours.to_pylist()) == str(column.to_pylist()), text


CASES = [
    "CASE WHEN i1 > 0 THEN c1 * (1 - b2) ELSE 0 END",
    "CASE WHEN i1 > 0 THEN 1 WHEN i2 IS NULL THEN 2L END",
    "CASE i1 WHEN 12 THEN 'twelve' WHEN i2 THEN 'equal' END",
    "CASE WHEN i1 <> 0 THEN 1 / i1 ELSE d1 END",
    "CASE WHEN i1 <> 0 THEN CASE WHEN l1 / i1 > 1 THEN b1 END END",
    "if(i1 < i2, c1, b1 + 1)",
    "coalesce(i1, l1, 0.5)",
    "nvl(b1, 0) * 2",
    "ifnull(NULL, i1)",
    "nullif(i1, i2)",
    "nullif(i1 + 1, 1) + CASE WHEN l1 IN (0, 12) THEN 0 END",
    "CASE WHEN NOT (i1 > 0 AND d1 < 0) THEN CASE WHEN d2 IS NULL THEN 1 ELSE d2 END END",
]


@pytest.mark.alike
@pytest.mark.parametrize("text", CASES)
def test_only_what_rows_come_to_is_evaluated(spark: SparkSession, ansi: bool, text: str) -> None:
    rows = _decimal_pairs(largest=False)
    context = Context("UTC", ansi)
    term = parse_term(text, Schema.create(rows.schema), context)

    theirs = spark.createDataFrame(rows).selectExpr(f"{text} AS x").toArrow().column("x")

    ours = evaluate_term(term, rows, context, strict=True)
    assert ours.type == term.type == theirs.type
    assert str(ours.to_pylist()) == str(theirs.to_pylist())


@pytest.mark.parametrize("text", ["h1 * a2", "h1 + h2", "j1 * a2", "-t1"])
def test_decimals_on_which_spark_raises_are_refused(spark: SparkSession, text: str) -> None:
    rows = _decimal_pairs(largest=True).append_column("t1", pa.array([-128] * 36, pa.int8()))

    with pytest.raises(PySparkException):
        spark.createDataFrame(rows).selectExpr(text).toArrow()
    with pytest.raises(OpaqueError, match="Spark raises on"):
        evaluate_term(parse_term(text, Schema.create(rows.schema)), rows)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("d1 * -0.0D", "reckons with numbers of Spark's types"),
        ("-(i1 = 1)", "not understood"),
        ("CASE WHEN i1 = 1 THEN 'a' ELSE 1 END", "text beside values of other types"),
        ("CASE WHEN i1 = 1 THEN NULL END", "nothing but NULL"),
        ("CASE WHEN rand() > 1 THEN 1 END", "rand"),
        ("CASE WHEN z = 1 THEN 1 END", "z"),
        ("+".join(["i1"] * 1000), "nested 1,00"),
        ("CASE WHEN i1 = 1 THEN " * 200 + "1" + " END" * 200, "nested 200 levels"),
    ],
)
def test_what_is_not_known_is_refused_by_name(text: str, says: str) -> None:
    with pytest.raises(WhereError, match=says):
        parse_term(text, Schema.create(_decimal_pairs(largest=False).schema))
