"""Columns that got wider types while files have them as they were: before the index follows, and afterwards."""

import random
from pathlib import Path
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from tests.effort import effort, everything
from tests.lakes.tables import SMALL_ROW_GROUPS, place_of
from tests.lakes.test_typed import filled
from tests.spark.foreign import typed
from tests.spark.foreign.ways import Use, Ways, same_on_conditions

VALUES = {
    "id": ("BIGINT", None, "id"),
    "y": ("TINYINT", "INT", "CAST(id * 37 % 250 - 125 AS TINYINT)"),
    "s": ("SMALLINT", "BIGINT", "CAST(id * 7919 % 30000 AS SMALLINT)"),
    "i": ("INT", "BIGINT", "CAST(id * 7919 % 100000 AS INT)"),
    "f": ("FLOAT", "DOUBLE", "CAST(id * 31 % 1000 / 10 AS FLOAT)"),
    "m": ("DECIMAL(6,2)", "DECIMAL(20,2)", "CAST(id * 31 % 1000 / 100 AS DECIMAL(6,2))"),
    "k": ("INT", "DOUBLE", "CAST(id * 7919 % 100000 AS INT)"),
    "l": ("BIGINT", "DECIMAL(25,4)", "id * 7919 % 100000"),
    "d": ("DATE", "TIMESTAMP_NTZ", "date_add(DATE'2020-01-01', CAST(id * 7 % 400 AS INT))"),
}
"""A type, the type that it becomes, and what is in it."""
OF_ICEBERG = ("id", "i", "f", "m")
LEAVES = {
    "y": "y = {y} | y = 200 | CAST(y AS STRING) = '{y}'",
    "s": "s = {s} | s < 100 | s = {s}.5D",
    "i": "i = {n} | i > 4000000000 | CAST(i AS STRING) = '{n}' | i IN ({n}, 4000000001)",
    "f": "f = CAST({x} AS FLOAT) | f = {x}D | f > 1e39D | CAST(f AS STRING) = '{x}' | f <=> CAST('NaN' AS DOUBLE)",
    "m": "m = {m} | m = {m}D | m > 9999999 | CAST(m AS STRING) = '{m}'",
    "k": "k = {n} | k = 1.5D | CAST(k AS STRING) = '{n}'",
    "l": "l = {n} | l = 7.5 | CAST(l AS STRING) = '{n}'",
    "d": "d = DATE'{d}' | d = TIMESTAMP_NTZ'{d} 00:00:00' | d > TIMESTAMP_NTZ'2020-12-31 12:00:00'",
}
NEW = """9000 id, 200 y, 3000000000 s, 4000000001 i, 1e300 f, 99999999.25 m, 1.5D k, 7.5 l,
  TIMESTAMP_NTZ'2020-03-05 01:00:00' d"""
"""A row of values that the former types do not have."""


def drawn(chosen: random.Random, columns: list[str]) -> str:
    i = chosen.randrange(typed.FILES * typed.ROWS + 40)
    constants = {"y": i * 37 % 250 - 125, "s": i * 7919 % 30000, "n": i * 7919 % 100000, "x": i * 31 % 1000 / 10}
    constants |= {"m": f"{i * 31 % 1000 / 100:.2f}", "d": f"2020-{i % 12 + 1:02}-{i % 28 + 1:02}"}
    leaves = [leaf for name, text in LEAVES.items() if name in columns for leaf in text.split(" | ")]
    return " OR ".join(chosen.sample(leaves, chosen.choice([1, 1, 2]))).format_map(constants)


@pytest.mark.filterwarnings("ignore:left out of the table")
@pytest.mark.parametrize("format_", ["delta", "iceberg"])
def test_conditions_on_columns_that_became_wider(ways: Ways, spark: SparkSession, home: Path, format_: str) -> None:
    columns = {name: kind for name, (kind, _, _) in VALUES.items() if format_ == "delta" or name in OF_ICEBERG}
    chosen, listed = random.Random(format_), ", ".join(f"{VALUES[name][2]} {name}" for name in columns)
    properties = {"delta.enableTypeWidening": "true", "delta.feature.timestampNtz": "supported"}

    def rows_sql(first: int, last: int, files: int) -> str:
        return f"SELECT {listed} FROM range({first}, {last}, 1, {files})"

    name = filled(spark, home, format_, columns, properties if format_ == "delta" else SMALL_ROW_GROUPS, rows_sql)
    place = home / f"index-{uuid4().hex[:8]}"
    table = fuse.attach(place_of(home, name), place, format_, votes_only=True)
    for column in columns:
        table.create_index(f"by_{column}", "bloom", [column])
    fuse_spark.use(spark, place)

    def told(count: int = effort(20) if everything() else 5) -> list[Use]:
        some = [drawn(chosen, list(columns)) for _ in range(count)]
        return same_on_conditions(ways, name, some, -1)

    assert sum(use.left_out for use in told(effort(20))) > effort(20)
    for column in columns:
        wider = VALUES[column][1]
        if wider is not None:
            spark.sql(f"ALTER TABLE {name} ALTER COLUMN {column} TYPE {wider}")
    told()
    spark.sql(f"INSERT INTO {name} SELECT {', '.join(columns)} FROM (SELECT {NEW})")
    told()
    table.sync()
    assert not any(use.problem for use in told())
    for column in columns:
        table.maintenance.rebuild_index(f"by_{column}")  # those on columns of other types are asked no more
    assert sum(use.left_out for use in told(effort(20))) > effort(20)
