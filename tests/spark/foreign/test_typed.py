"""Columns of many types of Parquet files: NaN, -0.0, old days, clocks, padding, collations, wide literals."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fuse_index import spark as fuse_spark
from fuse_index.indexes.registry import Host
from tests.effort import effort
from tests.spark.foreign import more_types, typed
from tests.spark.foreign.sources import use_index
from tests.spark.foreign.ways import Ways, conf, same_of_each, same_on_typed_conditions

LEGACY = {"spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY", "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY"}


UNREADABLE = pytest.mark.filterwarnings("ignore:index 'by_.*' leaves out block")
"""Days before 1582 in the former calendar are in no index, and their files are read."""


@pytest.mark.parametrize("written", ["corrected", pytest.param("legacy", marks=[pytest.mark.thorough, UNREADABLE])])
def test_conditions_on_columns_of_many_types(ways: Ways, spark: SparkSession, tmp_path: Path, written: str) -> None:
    columns = ", ".join(f"{name} {kind}" for name, kind in typed.COLUMNS.items())
    spark.sql(f"CREATE TABLE typed ({columns}) USING parquet LOCATION '{tmp_path}/lake'")
    try:
        with conf(spark, **(LEGACY if written == "legacy" else {})):
            spark.sql(f"INSERT INTO typed {typed.rows_sql(0, typed.FILES * typed.ROWS, typed.FILES)}")
        use_index(spark, tmp_path / "lake", tmp_path / "index", columns=typed.INDEXED)

        each = same_of_each(ways, "typed", typed.OF_FEW_FILES)
        read = {where: [use.files - use.left_out for use in of_one] for where, of_one in each.items()}
        unread = {"d = DATE'2020-07-31'": typed.FILES} if written == "legacy" else {}
        assert read == {where: [files] for where, files in (typed.OF_FEW_FILES | unread).items()}
        told = same_on_typed_conditions(ways, "typed", 3, effort(20))

        assert sum(use.left_out for use in told) > effort(20) // 3
        assert not any(use.unknown or use.problem for use in told)
    finally:
        spark.sql("DROP TABLE typed")


@pytest.fixture
def wide(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    columns = ", ".join(f"`{name}` {kind}" for name, kind in more_types.COLUMNS.items())
    spark.sql(f"CREATE TABLE wide ({columns}) USING parquet LOCATION '{tmp_path}/lake'")
    try:
        with conf(spark, spark_sql_session_timeZone="America/New_York"):
            files = more_types.FILES
            rows = more_types.rows_sql(0, files * more_types.ROWS, more_types.COLUMNS, files)
            spark.sql(f"INSERT INTO wide {rows}")
        more_types.use_kinds(spark, tmp_path / "lake", tmp_path / "index", "parquet", more_types.COLUMNS)
        yield "wide"
    finally:
        fuse_spark.install(spark, Host.discover())
        spark.sql("DROP TABLE wide")


def test_conditions_on_columns_of_further_types(ways: Ways, wide: str) -> None:
    told = same_on_typed_conditions(ways, wide, 7, effort(30), more_types.condition, at_once=10)

    assert sum(use.left_out for use in told) > effort(30) // 3
    assert not any(use.unknown or use.problem for use in told)
