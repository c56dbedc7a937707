"""Casts of text, and of instants to whole numbers, give what Spark gives, in ANSI sessions and others."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from fuse_index.expressions.casts import cast_value
from fuse_index.expressions.errors import NotReproducible
from fuse_index.expressions.types import type_from_spark_name
from fuse_index.predicate import Context
from tests.index.casts import TARGETS, TEXTS

SECONDS = [0, 127, 128, -128, -129, 255, 256, 32767, 32768, -32769, 65536, 2**31 - 1, 2**31, -(2**31) - 1, 2**32]


@pytest.fixture(autouse=True)
def legacy(spark: SparkSession) -> Iterator[None]:
    before = {name: spark.conf.get(name) for name in ("spark.sql.ansi.enabled", "spark.sql.session.timeZone")}
    spark.conf.set("spark.sql.ansi.enabled", False)
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    yield
    for name, value in before.items():
        spark.conf.set(name, value)


def test_text_to_every_type(spark: SparkSession) -> None:
    casts = [(word, target) for word in ("CAST", "TRY_CAST") for target in TARGETS]
    rows = spark.createDataFrame(pa.table({"n": range(len(TEXTS)), "s": TEXTS}))

    theirs = rows.selectExpr("n", *(f"{word}(s AS {target}) AS `{word} {target}`" for word, target in casts))

    found = theirs.toArrow().sort_by("n")
    wrong, doubts = {}, 0
    for word, target in casts:
        data_type = type_from_spark_name(target)
        mode = "try" if word == "TRY_CAST" else "legacy"
        for text, expected in zip(TEXTS, found[f"{word} {target}"].to_pylist(), strict=True):
            try:
                ours = cast_value(text, pa.string(), data_type, mode, Context("UTC", False))
            except NotReproducible:
                doubts += 1
                continue
            if repr(ours) != repr(expected) and ours != expected:
                wrong[f"{word}({text!r} AS {target})"] = ours, expected
    assert wrong == {}
    assert doubts < 50


def test_instants_to_whole_numbers(spark: SparkSession) -> None:
    moments = [datetime.fromtimestamp(second, UTC) for second in SECONDS]
    rows = spark.createDataFrame(pa.table({"at": pa.array(moments, pa.timestamp("us", "UTC"))})).coalesce(1)
    targets = ["TINYINT", "SMALLINT", "INT", "BIGINT"]

    theirs = rows.selectExpr(*(f"CAST(at AS {target}) AS {target}" for target in targets)).toArrow()

    for target in targets:
        ours = [
            cast_value(at, pa.timestamp("us", "UTC"), type_from_spark_name(target), "legacy", Context("UTC", False))
            for at in moments
        ]
        assert ours == theirs[target].to_pylist(), target
