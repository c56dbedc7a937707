"""Columns with dots in their names, beside structs of the same paths: attached, and as their own readers read them."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from tests.spark.foreign.ways import Use, Ways

pytestmark = pytest.mark.every_spark
CONDITIONS = [
    "`a.b` = 'y30'",
    "a.b = 30",
    "`a.b` IN ('y1', 'y41')",
    "`s.t`.u < 4",
    "`l.m`[0] = 33",
    "`a.b` > 'y55' OR a.b > 57",
]


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    (tmp_path / "lake").mkdir()
    for number in range(3):
        ids = range(number * 20, number * 20 + 20)
        rows = pa.table(
            {
                "id": pa.array(ids, pa.int64()),
                "a.b": [f"y{each * 7 % 60}" for each in ids],
                "l.m": [[each] for each in ids],
                "s.t": [{"u": each} for each in ids],
                "a": [{"b": each} for each in ids],
            }
        )
        pq.write_table(rows, tmp_path / "lake" / f"{number}.parquet", row_group_size=5)
    return tmp_path / "lake"


def test_dotted_names_of_attached_tables(spark: SparkSession, lake: Path, tmp_path: Path) -> None:
    table = fuse.attach(lake, tmp_path / "table")
    table.create_index("by_text", "bloom", ["`a.b`"])
    theirs, ours = spark.read.parquet(str(lake)), fuse_spark.read(spark, str(tmp_path / "table"))
    assert theirs.schema == ours.schema
    assert sorted(map(str, theirs.collect())) == sorted(map(str, ours.collect()))
    for condition in CONDITIONS:
        expected = sorted(row.id for row in theirs.where(condition).collect())
        assert expected == sorted(row.id for row in ours.where(condition).select("id").collect()), condition
        assert expected == sorted(table.to_arrow(condition, ["id"]).column("id").to_pylist()), condition
    counted = [each.groupBy("`a.b`", "a.b").count().orderBy("`a.b`").collect() for each in (theirs, ours)]
    assert counted[0] == counted[1]


def test_votes_on_dotted_names(ways: Ways, spark: SparkSession, lake: Path, tmp_path: Path) -> None:
    table = fuse.attach(lake, tmp_path / "votes", votes_only=True)
    table.create_index("by_text", "bloom", ["`a.b`"])
    fuse_spark.use(spark, str(tmp_path / "votes"))
    for condition in CONDITIONS:
        ways.same(f"SELECT id FROM parquet.`{lake}` WHERE {condition}")
    assert ways.same(f"SELECT id FROM parquet.`{lake}` WHERE `a.b` = 'y30'") == [Use(3, 2)]
