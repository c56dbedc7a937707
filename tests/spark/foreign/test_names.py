"""Columns with dots in their names, beside structs of the same paths: attached, and as their own readers read them."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from tests.spark.each import true_on
from tests.spark.foreign.ways import Ways, conf

pytestmark = pytest.mark.every_spark
CONDITIONS = {
    "`a.b` = 'y30'": {"a.b"},
    "a.b = 30": {"a"},
    "`a.b` IN ('y1', 'y41')": {"a.b"},
    "`s.t`.u < 4": {"s.t"},
    "`l.m`[0] = 33": {"l.m"},
    "`a.b` > 'y55' OR a.b > 57": {"a", "a.b"},
}
"""Each with the columns that it is on."""


def write_lake(tmp_path: Path, *left_out: str) -> Path:
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
        rows = rows.drop_columns(list(left_out))
        pq.write_table(rows, tmp_path / "lake" / f"{number}.parquet", row_group_size=5)
    return tmp_path / "lake"


@pytest.mark.parametrize("left_out", ["", "a", "a.b"])
def test_dotted_names_of_attached_tables(spark: SparkSession, tmp_path: Path, left_out: str) -> None:
    """Spark's own reader filters ``a.b`` by the chunks of the struct, and fails, where a file has both."""
    lake = write_lake(tmp_path)
    wanted = [name for name in ("id", "a", "a.b", "l.m", "s.t") if name != left_out]
    table = fuse.attach(lake, tmp_path / "table", columns=wanted)
    if left_out != "a.b":
        table.create_index("by_text", "bloom", ["`a.b`"])
    ours = fuse_spark.read(spark, str(tmp_path / "table"))
    theirs = spark.read.parquet(str(lake)).select([f"`{name}`" for name in ours.columns])
    assert theirs.schema == ours.schema
    assert sorted(map(str, theirs.collect())) == sorted(map(str, ours.collect()))
    conditions = [each for each, names in CONDITIONS.items() if left_out not in names]
    with conf(spark, spark_sql_parquet_filterPushdown="false"):
        of_each = true_on(theirs, conditions)
    assert of_each == true_on(ours, conditions)
    for condition, expected in zip(conditions, of_each, strict=True):
        assert expected == sorted(table.to_arrow(condition, ["id"]).column("id").to_pylist()), condition


def test_a_partition_column_with_a_dot(spark: SparkSession, tmp_path: Path) -> None:
    rows = pa.table({"id": range(40), "a.b": [f"y{n}" for n in range(40)], "p.q": ["x", None, "z", "a b"] * 10})
    write_deltalake(str(tmp_path / "lake"), rows, partition_by=["p.q"])
    table = fuse.attach(tmp_path / "lake", tmp_path / "table", format="delta")
    table.create_index("by_text", "bloom", ["`a.b`"])
    ours = fuse_spark.read(spark, str(tmp_path / "table"))
    for condition, expected in {
        "`p.q` = 'z'": range(2, 40, 4),
        "`p.q` IS NULL AND `a.b` = 'y21'": [21],
        "`p.q` > 'b' AND `a.b` IN ('y1', 'y2')": [2],
    }.items():
        assert sorted(row.id for row in ours.where(condition).collect()) == list(expected), condition
        assert sorted(table.to_arrow(condition).column("id").to_pylist()) == list(expected), condition
    assert {(row.id, row["p.q"]) for row in ours.collect()} == set(
        zip(range(40), rows.column("p.q").to_pylist(), strict=True)
    )


@pytest.mark.every_spark
def test_votes_on_dotted_names(ways: Ways, spark: SparkSession, tmp_path: Path) -> None:
    lake = write_lake(tmp_path, "a")
    table = fuse.attach(lake, tmp_path / "votes", votes_only=True)
    table.create_index("by_text", "bloom", ["`a.b`"])
    fuse_spark.use(spark, str(tmp_path / "votes"))
    for condition in [each for each, names in CONDITIONS.items() if "a" not in names]:
        ways.same(f"SELECT id FROM parquet.`{lake}` WHERE {condition}")
    assert ways.left_out(f"SELECT id FROM parquet.`{lake}` WHERE `a.b` = 'y30'") == [2]
