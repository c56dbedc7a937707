"""Parquet tables that are partitioned by a column of each type."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.effort import effort, in_turn
from tests.spark.foreign.partitions import VALUES, ZONES, fill, same_on_partitions
from tests.spark.foreign.sources import a_of, use_index
from tests.spark.foreign.ways import Ways

OFTEN = ("STRING", "DATE", "TIMESTAMP")
"""Types that each run of the tests tries; all are tried by EFFORT."""
KINDS = [pytest.param(kind, marks=[] if kind in OFTEN else [pytest.mark.thorough]) for kind in VALUES]


@pytest.mark.parametrize("kind", KINDS)
def test_a_partition_column(ways: Ways, spark: SparkSession, tmp_path: Path, kind: str) -> None:
    lake = tmp_path / "lake"
    spark.sql(f"CREATE TABLE parted (id BIGINT, a STRING, p {kind}) USING parquet PARTITIONED BY (p) LOCATION '{lake}'")
    try:
        fill(spark, "parted", kind)
        use_index(spark, lake, tmp_path / "index", columns=["id", "a"])

        same_on_partitions(ways, "parted", kind, effort(20), in_turn(ZONES, [*VALUES].index(kind)))
        # Spark takes types from the texts in paths, of which ours may be others.
        spark.read.parquet(str(lake)).createOrReplaceTempView("inferred")
        (use,) = ways.same(f"SELECT id, a, p FROM inferred WHERE a = '{a_of(67)}'")
        assert use.files - use.left_out == 1
    finally:
        spark.sql("DROP TABLE parted")
