"""What there is to see of a table, as views of Spark."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fuse_index import InputError, NotFound, create_table
from fuse_index import spark as fuse_spark
from fuse_index.table.table import Table
from fuse_index.table.views import METADATA_VIEWS


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    url = str(tmp_path_factory.mktemp("views") / "orders")
    made = create_table(url, "id BIGINT, city STRING, at STRUCT<x: DOUBLE>", ["id"], {"block_rows": 5})
    made.create_index("by_city", "bloom", ["city"])
    made.append([{"id": n, "city": f"c{n}", "at": {"x": float(n)}} for n in range(20)])
    return made


def test_each_view_holds_what_python_shows(spark: SparkSession, table: Table) -> None:
    made = fuse_spark.introspect(spark, table.stored.store.url, "orders")

    assert made == [f"orders_{name}" for name in METADATA_VIEWS]
    for name in METADATA_VIEWS:
        rows = spark.table(f"orders_{name}").toArrow()
        assert rows.column_names == METADATA_VIEWS[name](table).column_names
        assert len(rows) == len(METADATA_VIEWS[name](table))
    found = spark.sql(
        "SELECT b.rows FROM orders_blocks b JOIN orders_statistics s USING (block) WHERE column = 'id' AND max = '19'"
    )
    assert [row.rows for row in found.collect()] == [5]
    assert spark.sql("SELECT depth_histogram[0].blocks FROM orders_clustering").first()[0] == 4
    assert spark.sql("SELECT indexes[0] FROM orders_blocks").first()[0] == "by_city"


def test_some_views_of_an_older_state(spark: SparkSession, table: Table) -> None:
    first = table.inspect.snapshots().column("snapshot")[-1].as_py()

    assert fuse_spark.introspect(spark, table.stored.store.url, "old", ["blocks", "columns"], at=first) == [
        "old_blocks",
        "old_columns",
    ]
    assert (spark.table("old_blocks").count(), spark.table("old_columns").count()) == (0, 4)
    assert not spark.catalog.tableExists("old_segments")


def test_what_is_no_view_and_no_table_is_said(spark: SparkSession, table: Table, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean 'blocks'"):
        fuse_spark.introspect(spark, table.stored.store.url, "x", ["bloks"])
    with pytest.raises(InputError, match="prefix='a b'"):
        fuse_spark.introspect(spark, table.stored.store.url, "a b")
    with pytest.raises(NotFound):
        fuse_spark.introspect(spark, str(tmp_path / "nothing"), "x")
