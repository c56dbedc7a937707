"""A LIMIT, and a LIMIT of an order, reads the blocks that can hold one of the first rows, and no others."""

import itertools
from collections.abc import Iterator
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import fuse_index as fuse
import fuse_index.spark as fuse_spark
from tests.spark.executed import files_read

BLOCKS, ROWS = 20, 50
COUNT = BLOCKS * ROWS


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Views ``t`` and ``t_plain`` of the same rows: clustered by ``id``, everything else is in no order."""
    folder = str(tmp_path_factory.mktemp("top") / "t")
    draw = np.random.default_rng(11)
    ids = np.arange(COUNT)
    some = draw.permutation(COUNT)
    rows = pa.table(
        {
            "id": ids,
            "x": some,
            "sparse": pa.array([int(v) if v % 3 else None for v in some], pa.int32()),
            "f": pa.array([float("nan") if v % 401 == 0 else None if v % 203 == 0 else v / 7 for v in some]),
            "name": [f"{'long ' * (v % 9)}{v}" for v in some],
            "price": pa.array([Decimal(int(v)) / 4 for v in some], pa.decimal128(12, 2)),
            "day": pa.array((some % 300).astype("int32"), pa.date32()),
            "flag": some % 2 == 0,
            "few": some % 4,
            "s": pa.array([{"a": int(v)} for v in some]),
        }
    )
    table = fuse.create_table(folder, rows.schema, properties={"block_rows": ROWS, "zone_rows": 25})
    table.append(rows)
    fuse_spark.read(spark, folder).createOrReplaceTempView("t")
    pq.write_table(rows, f"{folder}.parquet")
    spark.read.parquet(f"{folder}.parquet").createOrReplaceTempView("t_plain")
    yield spark
    spark.catalog.dropTempView("t")
    spark.catalog.dropTempView("t_plain")


def compare(spark: SparkSession, query: str) -> DataFrame:
    """The query over the table, after its rows were compared, in their order, with those over the plain one."""
    found = spark.sql(query.format(t="t"))
    assert list(map(repr, found.collect())) == list(map(repr, spark.sql(query.format(t="t_plain")).collect()))
    return found


COLUMNS = ["id", "x", "sparse", "f", "name", "price", "day", "flag", "few", "s.a"]
ORDERS = ["ASC NULLS FIRST", "ASC NULLS LAST", "DESC NULLS FIRST", "DESC NULLS LAST"]


@pytest.mark.alike
@pytest.mark.parametrize(("column", "order"), list(itertools.product(COLUMNS, ORDERS)))
def test_every_order_of_every_type_has_spark_s_rows(tables: SparkSession, column: str, order: str) -> None:
    compare(tables, f"SELECT id, {column} FROM {{t}} ORDER BY {column} {order}, id LIMIT 7")


@pytest.mark.alike
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("limit", [1, 400, COUNT + 1])
def test_so_many_rows_as_are_asked_for(tables: SparkSession, limit: int, order: str) -> None:
    compare(tables, f"SELECT id, sparse FROM {{t}} ORDER BY sparse {order}, id LIMIT {limit}")


@pytest.mark.every_spark
@pytest.mark.alike
@pytest.mark.parametrize(
    ("query", "blocks"),
    [
        ("SELECT id FROM {t} ORDER BY x DESC LIMIT 3", 3),
        ("SELECT id FROM {t} ORDER BY x LIMIT 3", 3),
        ("SELECT id, x * 2 AS y FROM {t} ORDER BY s.a DESC LIMIT 3", 3),
        ("SELECT id, x AS y FROM {t} ORDER BY y LIMIT 3", 3),
        ("SELECT id FROM {t} WHERE id < 200 ORDER BY x LIMIT 2", 2),
        ("SELECT id FROM {t} WHERE id >= 975 ORDER BY id DESC LIMIT 2", 1),
        ("SELECT id FROM {t} ORDER BY x LIMIT 2 OFFSET 1", 3),
        ("SELECT * FROM {t} ORDER BY price DESC LIMIT 1", 1),
        ("SELECT id FROM {t} ORDER BY f DESC NULLS LAST, id LIMIT 1", 3),
        ("SELECT count(*) FROM (SELECT id FROM {t} LIMIT 60)", 2),
        ("SELECT count(*) FROM (SELECT id FROM {t} LIMIT 0)", 0),
    ],
)
def test_blocks_that_cannot_hold_a_first_row_are_not_read(tables: SparkSession, query: str, blocks: int) -> None:
    assert files_read(compare(tables, query)) <= blocks


@pytest.mark.every_spark
@pytest.mark.alike
@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM {t} WHERE name LIKE '%7' ORDER BY x LIMIT 5",
        "SELECT id FROM {t} WHERE x % 2 = 1 ORDER BY x DESC LIMIT 5",
        "SELECT id FROM {t} WHERE id IN (SELECT id FROM {t} WHERE x > 900) ORDER BY x LIMIT 5",
        "SELECT id FROM {t} WHERE x > (SELECT avg(x) FROM {t}) ORDER BY x LIMIT 5",
        "SELECT id FROM {t} WHERE flag OR few = 1 ORDER BY few, x DESC LIMIT 9",
        "SELECT id, x % 10 AS m FROM {t} ORDER BY m, id LIMIT 9",
        "SELECT few, max(x) AS m FROM {t} GROUP BY few ORDER BY m LIMIT 2",
        "SELECT a.id FROM {t} a JOIN {t} b ON a.id = b.x ORDER BY a.x LIMIT 5",
        "SELECT id FROM {t} ORDER BY few, x LIMIT 5",
        "SELECT id FROM (SELECT * FROM {t} ORDER BY x LIMIT 30) WHERE few = 2 ORDER BY x DESC LIMIT 2",
        "SELECT id FROM (SELECT * FROM {t} WHERE few = 2) WHERE x % 3 = 0 ORDER BY x LIMIT 4",
        "(SELECT id FROM {t} ORDER BY x LIMIT 2) UNION ALL (SELECT id FROM {t} ORDER BY x DESC LIMIT 2) ORDER BY id",
        "SELECT id, rank() OVER (ORDER BY x) AS r FROM {t} ORDER BY x LIMIT 3",
    ],
)
def test_what_is_between_a_limit_and_the_table_is_kept_to(tables: SparkSession, query: str) -> None:
    compare(tables, query)


def test_what_an_order_removed_is_explained(tables: SparkSession) -> None:
    found = compare(tables, "SELECT id FROM {t} ORDER BY x DESC LIMIT 1")

    assert "ORDER BY x DESC NULLS LAST LIMIT 1" in str(fuse_spark.explain(found))
    assert "1 of 20 blocks" in found._jdf.queryExecution().toString()
