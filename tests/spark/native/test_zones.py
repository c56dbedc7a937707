"""Spark reads the zones that votes kept, and no others of their blocks."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import fuse_index as fuse
import fuse_index.spark as fuse_spark
from fuse_storage import StoredTable
from tests.spark.executed import rows_scanned
from tests.storage.tampering import forget_zone_sizes

ZONE, ZONES, BLOCKS = 40_000, 8, 2
"""Rows of a zone: wide enough that two of them are not read as one because the third between them is small."""
ROWS = ZONE * ZONES * BLOCKS
KEYS = np.random.default_rng(7).permutation(ROWS)
NOISE = np.random.default_rng(8).random(ROWS)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = str(tmp_path_factory.mktemp("zones") / "t")
    rows = pa.table({"id": np.arange(ROWS), "k": KEYS, "noise": NOISE})
    table = fuse.create_table(folder, rows.schema, properties={"block_rows": ZONE * ZONES, "zone_rows": ZONE})
    table.append(rows)
    table.create_index("by_k", "bloom", ["k"])
    return folder


@pytest.mark.parametrize("zones", [[0], [15], [3, 4], [2, 5], [0, 7, 8, 15], list(range(16))])
def test_a_lookup_reads_its_zones(spark: SparkSession, url: str, zones: list[int]) -> None:
    places = [zone * ZONE + 17 for zone in zones]
    keys = ", ".join(str(KEYS[place]) for place in places)
    found = fuse_spark.read(spark, url).filter(f"k IN ({keys})").select("id", "noise", "_metadata.row_index")

    expected = [(place, NOISE[place], place % (ZONE * ZONES)) for place in places]
    assert sorted(map(tuple, found.collect())) == expected
    explained = fuse_spark.explain(found)
    assert rows_scanned(found) == explained.zones.kept * ZONE
    assert explained.zones.kept <= len(zones) + 1  # a bloom filter may err


def test_short_splits_read_each_zone_once(spark: SparkSession, url: str) -> None:
    spark.conf.set("spark.sql.files.maxPartitionBytes", "100000")
    try:
        places = [100, 3 * ZONE + 5, 9 * ZONE]
        found = fuse_spark.read(spark, url).filter(f"k IN ({', '.join(str(KEYS[place]) for place in places)})")
        assert sorted(row.id for row in found.collect()) == places
        assert rows_scanned(found) <= 4 * ZONE
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")


def test_spark_s_own_explanation_counts_zones(spark: SparkSession, url: str) -> None:
    found = fuse_spark.read(spark, url).filter(f"k = {KEYS[5]}")

    assert "1 of 2 blocks, 1 of 16 zones" in found._jdf.queryExecution().toString()


def test_sizes_decide_joins_by_the_zones_that_are_left(spark: SparkSession, url: str) -> None:
    everything = fuse_spark.read(spark, url)
    one_zone = everything.filter(f"k = {KEYS[5]}")

    def size(df) -> int:
        return int(df._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())

    assert size(one_zone) < size(everything) / 10


def test_of_blocks_whose_zones_have_no_known_sizes_all_is_read(spark: SparkSession, tmp_path: Path) -> None:
    rows = pa.table({"id": np.arange(1000), "k": KEYS[:1000] % 1000 * 2})
    folder = str(tmp_path / "old")
    table = fuse.create_table(folder, rows.schema, properties={"block_rows": 500, "zone_rows": 100})
    table.append(rows)
    forget_zone_sizes(StoredTable.open(folder))
    found = fuse_spark.read(spark, folder).filter("id = 777")

    assert [row.id for row in found.collect()] == [777]
    assert fuse_spark.explain(found).zones.kept == 1
    assert "1 of 2 blocks" in found._jdf.queryExecution().toString()
