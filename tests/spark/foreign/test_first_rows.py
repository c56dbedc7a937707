"""The first rows of an order, of Parquet files: those that can hold none of them by their bounds are not read."""

from collections.abc import Iterator
from decimal import Decimal
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.effort import everything
from tests.spark.foreign.sources import FILES, ROWS, rows, use_index, write_file, write_folder
from tests.spark.foreign.ways import Use, Ways, conf

LIMITS = (1, 45)
ORDERS = ["ASC NULLS FIRST", "ASC NULLS LAST", "DESC NULLS FIRST", "DESC NULLS LAST"]
COLUMNS = ["id", "x", "sparse", "f", "name", "price", "day", "flag", "s.a"]


def typed_rows(number: int, count: int) -> pa.Table:
    """Of a file: its values are near one another, and some files have NaN, or NULL alone."""
    draw = np.random.default_rng(number)
    some = number * count + draw.permutation(count)
    return pa.table(
        {
            "id": some,
            "x": pa.array(some % 37, pa.int32()),
            "sparse": pa.array([None if number == 3 or v % 3 == 0 else int(v) for v in some], pa.int32()),
            "f": pa.array([float("nan") if number == 2 and v % 5 == 0 else -0.0 if v == 0 else v / 7 for v in some]),
            "name": [f"{'long ' * (number % 4)}{v:05d}" for v in some],
            "price": pa.array([Decimal(int(v)) / 4 for v in some], pa.decimal128(12, 2)),
            "day": pa.array(some.astype("int32"), pa.date32()),
            "flag": some > 4 * count,
            "s": pa.array([None if number == 5 else {"a": int(v)} for v in some], pa.struct({"a": pa.int64()})),
        }
    )


@pytest.fixture(scope="module")
def typed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = tmp_path_factory.mktemp("typed")
    (home / "lake").mkdir()
    for number in range(FILES):
        # Decimals as Spark writes them: bounds of fixed-length ones are not taken from files.
        options = {"row_group_size": 20, "store_decimal_as_integer": True}
        pq.write_table(typed_rows(number, 40), home / "lake" / f"{number}.parquet", **options)
    use_index(spark, home / "lake", home / "index", columns=())
    spark.read.parquet(f"{home}/lake").createOrReplaceTempView("typed_lake")  # whose files are listed once
    yield "typed_lake"
    spark.catalog.dropTempView("typed_lake")


@pytest.mark.alike
@pytest.mark.parametrize("column", COLUMNS)
def test_every_order_of_every_type(ways: Ways, typed: str, column: str) -> None:
    left_out = 0
    for order, limit in product(ORDERS, LIMITS) if everything() else zip(ORDERS, LIMITS * 2, strict=True):
        query = f"SELECT id, {column} FROM {typed} ORDER BY {column} {order}, id LIMIT {limit}"
        left_out += sum(ways.left_out(query))
    assert left_out or column in ("f", "x")  # bounds know of no NaN, and each file has all values of x


def test_numbers_of_files(ways: Ways, typed: str) -> None:
    found = {
        text: ways.left_out(f"SELECT id FROM {typed} {text}")
        for text in (
            "ORDER BY id LIMIT 3",
            "ORDER BY id DESC, name LIMIT 41",
            "ORDER BY id LIMIT 3 OFFSET 60",
            "ORDER BY sparse NULLS FIRST, id LIMIT 5",
            "ORDER BY sparse NULLS LAST LIMIT 5",
            "WHERE id >= 80 ORDER BY id LIMIT 3",
            "WHERE x = 5 ORDER BY id LIMIT 1",
            "WHERE x <> 5 AND rand() >= 0 ORDER BY id LIMIT 1",
            "ORDER BY id + 1 LIMIT 3",
            "ORDER BY id LIMIT 1000",
            "LIMIT 0",
        )
    }
    assert sum(found.pop("ORDER BY id + 1 LIMIT 3")) == 0  # of a term no bounds are known, asked for or not
    assert found == {
        "ORDER BY id LIMIT 3": [7],
        "ORDER BY id DESC, name LIMIT 41": [6],
        "ORDER BY id LIMIT 3 OFFSET 60": [6],
        "ORDER BY sparse NULLS FIRST, id LIMIT 5": [0],
        "ORDER BY sparse NULLS LAST LIMIT 5": [7],
        "WHERE id >= 80 ORDER BY id LIMIT 3": [7],
        "WHERE x = 5 ORDER BY id LIMIT 1": [0],
        "WHERE x <> 5 AND rand() >= 0 ORDER BY id LIMIT 1": [0],
        "ORDER BY id LIMIT 1000": [0],
        "LIMIT 0": [],
    }


@pytest.mark.parametrize("setting", ["ignoreCorruptFiles", "ignoreMissingFiles"])
def test_rows_are_not_promised_by_files_that_may_be_passed_over(ways: Ways, typed: str, setting: str) -> None:
    with conf(ways.spark, **{f"spark_sql_files_{setting}": "true"}):
        assert ways.left_out(f"SELECT id FROM {typed} ORDER BY id LIMIT 3") == []  # nobody is asked
    assert ways.left_out(f"SELECT id FROM {typed} ORDER BY id LIMIT 3") == [7]


def test_one_dataframe_in_order_and_whole(ways: Ways, typed: str) -> None:
    def query() -> DataFrame:
        whole = ways.spark.table(typed)
        return whole.orderBy("id").limit(3).union(whole).unionByName(whole.orderBy(whole.id.desc()).limit(2))

    for adaptive in ("true", "false"):
        with conf(ways.spark, spark_sql_adaptive_enabled=adaptive):
            assert sorted(ways.left_out(query)) == [7, 7]


def test_files_that_no_index_knows_and_one_that_was_replaced(ways: Ways, tmp_path: Path) -> None:
    lake = write_folder(tmp_path / "lake")
    use_index(ways.spark, lake, tmp_path / "index", columns=())
    first = f"SELECT id, a FROM parquet.`{lake}` ORDER BY id LIMIT 2"
    assert ways.same(first) == [Use(FILES, FILES - 1, 0, 1)]
    early = rows(0).set_column(0, "id", pa.array([each - 1000 for each in range(ROWS)], pa.int64()))
    write_file(early, lake / "early.parquet")
    assert ways.same(first) == [Use(FILES + 1, FILES - 1, 1, 1)]
    (lake / "early.parquet").unlink()

    def behind_a_listing() -> DataFrame:
        write_file(rows(0), lake / "part-0.parquet")
        df = ways.spark.read.parquet(str(lake)).orderBy("id").limit(2)
        df._jdf.queryExecution().executedPlan()
        write_file(rows(20), lake / "part-0.parquet")
        return df

    (use,) = ways.same(behind_a_listing)
    assert use.left_out == FILES - 2
    assert [row.id for row in ways.spark.sql(first).collect()] == [ROWS, ROWS + 1]


@pytest.mark.every_spark
def test_a_limit_below_a_condition_and_a_join(ways: Ways, typed: str) -> None:
    assert ways.left_out(f"SELECT * FROM (SELECT * FROM {typed} ORDER BY id LIMIT 5) WHERE x = 3") == [7]
    query = f"SELECT p.id, q.id FROM (SELECT * FROM {typed} ORDER BY id DESC LIMIT 5) p JOIN {typed} q ON p.id = q.id"
    assert ways.left_out(query)[0] == 7
