"""Sums, differences, products and quotients are what Spark says they are, of every two types of number, in either kind
of session.
"""

from collections.abc import Iterator
from itertools import product

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from fuse_index.errors import OpaqueError
from fuse_index.expressions.evaluate import evaluate_term
from fuse_index.predicate import Context
from fuse_index.sql.parse import parse_value
from fuse_storage import Schema

pytestmark = pytest.mark.any_spark

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
        ours = evaluate_term(parse_value(text, schema, context), rows, context)
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
        evaluate_term(parse_value(text, Schema.create(rows.schema), context), rows, context)
