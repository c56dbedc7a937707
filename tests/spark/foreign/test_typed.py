"""Columns of many types of Parquet files: NaN, -0.0, old days, clocks, padding, collations, wide literals."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.effort import effort
from tests.spark.foreign import typed
from tests.spark.foreign.sources import use_index
from tests.spark.foreign.ways import Ways, conf, same_on_typed_conditions

LEGACY = {"spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY", "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY"}


UNREADABLE = pytest.mark.filterwarnings("ignore:index 'by_.*' leaves out block")
"""Days before 1582 in the former calendar are in no index, and their files are read."""


@pytest.mark.parametrize("written", ["corrected", pytest.param("legacy", marks=[pytest.mark.thorough, UNREADABLE])])
def test_conditions_on_columns_of_many_types(ways: Ways, spark: SparkSession, tmp_path: Path, written: str) -> None:
    columns = ", ".join(f"{name} {kind}" for name, kind in typed.COLUMNS.items())
    spark.sql(f"CREATE TABLE typed ({columns}) USING parquet LOCATION '{tmp_path}/lake'")
    try:
        with conf(spark, **(LEGACY if written == "legacy" else {})):
            for number in range(typed.FILES):
                spark.sql(f"INSERT INTO typed {typed.rows_sql(number * typed.ROWS, (number + 1) * typed.ROWS)}")
        use_index(spark, tmp_path / "lake", tmp_path / "index", columns=typed.INDEXED)

        read = {
            where: [use.files - use.left_out for use in ways.same(f"SELECT id FROM typed WHERE {where}")]
            for where in typed.OF_FEW_FILES
        }
        unread = {"d = DATE'2020-07-31'": typed.FILES} if written == "legacy" else {}
        assert read == {where: [files] for where, files in (typed.OF_FEW_FILES | unread).items()}
        told = same_on_typed_conditions(ways, "typed", 3, effort(20))

        assert sum(use.left_out for use in told) > effort(20) // 3
        assert not any(use.unknown or use.problem for use in told)
    finally:
        spark.sql("DROP TABLE typed")
