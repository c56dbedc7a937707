"""The types as which Spark compares, against Spark's own."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from fuse_index.expressions.coercion import coerce_comparison, coerce_in_list, common_type
from fuse_index.expressions.errors import AnalysisError, NotReproducible
from fuse_index.expressions.types import spark_type_name, type_from_spark_name
from fuse_index.predicate import Column, Context, Literal


def ours(pair, context):
    left, word, right = pair.split(" ")
    kinds = type_from_spark_name(left), type_from_spark_name(right)
    try:
        if word == "=":
            return spark_type_name(common_type(*kinds, context))
        term, _ = coerce_in_list(Column(("c",), kinds[0]), [Literal(None, kinds[1])] * 2, context)
        return spark_type_name(term.type)
    except AnalysisError:
        return None
    except NotReproducible:
        return "unsure"


@pytest.mark.parametrize("session", ["ansi", "legacy"])
def test_every_pair_of_types_is_compared_as_spark_does(golden, session):
    context = Context(ansi=session == "ansi")
    wrong = {
        pair: (spark, ours(pair, context))
        for pair, spark in golden.coercion[session].items()
        if ours(pair, context) != spark
    }

    assert len(golden.coercion[session]) == 450
    assert wrong == {}


def test_a_whole_number_beside_a_decimal_is_as_wide_as_it_is_written():
    column = Column(("c",), pa.decimal128(38, 30))

    left, right = coerce_comparison("=", column, Literal(5, pa.int32()), Context())

    assert left == column
    assert right == Literal(Decimal("5." + "0" * 30), column.type)


def test_decimals_that_spark_would_round_are_left_alone():
    with pytest.raises(NotReproducible, match="rounds"):
        common_type(pa.decimal128(38, 30), pa.decimal128(38, 0), Context())
    with pytest.raises(NotReproducible, match="rounds"):
        common_type(pa.int64(), pa.decimal128(38, 28), Context())
