"""Columns of many types in Delta and Iceberg: NaN, -0.0, old days, clocks, padding, collations, wide literals."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

from fuse_index import spark as fuse_spark
from fuse_index.indexes.registry import Host
from tests.effort import effort, in_turn
from tests.lakes.tables import SMALL_ROW_GROUPS, place_of, use_index
from tests.spark.foreign import more_types, typed
from tests.spark.foreign.ways import Ways, same_of_each, same_on_typed_conditions


def create(spark: SparkSession, home: Path, format_: str, properties: dict[str, str]) -> str:
    """A table of the rows of ``typed``; its name in queries."""
    columns = typed.COLUMNS if format_ == "delta" else typed.WITHOUT_ODD_TYPES
    return filled(spark, home, format_, columns, properties, typed.rows_sql)


def filled(
    spark: SparkSession,
    home: Path,
    format_: str,
    columns: Mapping[str, str],
    properties: Mapping[str, str],
    rows_sql: Callable[..., str],
) -> str:
    """A table of some files, with rows by their ids; its name in queries."""
    listed = ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
    told = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    name = f"delta.`{home}/delta-{uuid4().hex[:8]}`" if format_ == "delta" else f"ice.db.t{uuid4().hex[:8]}"
    spark.sql(f"CREATE TABLE {name} ({listed}) USING {format_} TBLPROPERTIES ({told})")
    spark.sql(f"INSERT INTO {name} {rows_sql(0, typed.FILES * typed.ROWS, files=typed.FILES)}")
    return name


@pytest.mark.filterwarnings("ignore:left out of the table")  # CHAR, which Delta's connector pads
@pytest.mark.parametrize("format_", ["delta", "iceberg"])
def test_conditions_on_columns_of_many_types(ways: Ways, spark: SparkSession, home: Path, format_: str) -> None:
    properties = {"delta.columnMapping.mode": "name"} if format_ == "delta" else SMALL_ROW_GROUPS
    name = create(spark, home, format_, properties)
    use_index(spark, home, name, *typed.INDEXED)

    of_few_files = dict(in_turn(typed.OF_FEW_FILES.items(), format_ == "delta"))
    each = same_of_each(ways, name, of_few_files)
    read = {where: [use.files - use.left_out for use in of_one] for where, of_one in each.items()}
    assert read == {where: [files] for where, files in of_few_files.items()}
    told = same_on_typed_conditions(ways, name, 4, effort(20))

    assert (
        sum(use.left_out for use in told) > effort(20) // 10
    )  # of the files that their own statistics did not leave out
    assert not any(use.unknown or use.problem for use in told)


def test_conditions_on_columns_of_further_types(ways: Ways, spark: SparkSession, home: Path) -> None:
    columns = more_types.OF_ICEBERG
    name = filled(spark, home, "iceberg", columns, SMALL_ROW_GROUPS, partial(more_types.rows_sql, columns=columns))
    try:
        more_types.use_kinds(spark, place_of(home, name), home / f"index-{uuid4().hex[:8]}", "iceberg", columns)

        told = same_on_typed_conditions(ways, name, 8, effort(20), more_types.condition)

        assert sum(use.left_out for use in told) > effort(20) // 3
        assert not any(use.unknown or use.problem for use in told)
    finally:
        fuse_spark.install(spark, Host.discover())
