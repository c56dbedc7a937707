"""Conditions on terms without a column are what Spark says they are, folded and as they are written."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from fuse_index.expressions.evaluate import evaluate
from fuse_index.predicate import Context
from fuse_index.sql.parse import parse_predicate, parse_predicate_as_written
from fuse_storage import Schema
from tests.index.constants import leaves

ROWS = pa.table({"id": pa.array([1, 2, None], pa.int64())})


@pytest.fixture
def folds_nothing(spark: SparkSession) -> Iterator[None]:
    spark.conf.set(
        "spark.sql.optimizer.excludedRules",
        "org.apache.spark.sql.catalyst.optimizer.ConstantFolding,"
        "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation",
    )
    yield
    spark.conf.unset("spark.sql.optimizer.excludedRules")


def test_every_leaf_without_a_column(spark: SparkSession) -> None:
    texts, context = list(leaves()), Context("UTC", True)
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    schema = Schema.create(ROWS.schema)

    theirs = spark.range(1).selectExpr(*(f"({text}) AS c{n}" for n, text in enumerate(texts))).toArrow()

    wrong = {}
    for text, column in zip(texts, theirs.columns, strict=True):
        expected = [column[0].as_py()] * len(ROWS)
        for read in (parse_predicate, parse_predicate_as_written):
            ours = evaluate(read(text, schema, context), ROWS, context).to_pylist()
            if ours != expected:
                wrong[text] = ours
    assert wrong == {}
    assert len(texts) > 400


@pytest.mark.usefixtures("folds_nothing")
def test_spark_reads_rows_on_which_an_unfolded_constant_is_true(spark: SparkSession, tmp_path: Path) -> None:
    fuse_spark.install(spark)
    table = fuse.create_table(str(tmp_path / "t"), ROWS.schema)
    table.append(ROWS)
    native = fuse_spark.read(spark, str(tmp_path / "t"))

    for where, expected in (("id = 1 OR lower('A') LIKE 'a%'", 3), ("NOT (upper('a') = 'B') AND id < 3", 2)):
        source = spark.read.format("fuse").option("where", where).load(str(tmp_path / "t"))
        assert native.where(where).count() == source.count() == expected
