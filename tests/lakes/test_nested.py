"""Conditions on fields of structs that files call otherwise: renamed, exchanged, dropped and new ones."""

import random
from pathlib import Path
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

from fuse_index import spark as fuse_spark
from tests.effort import effort, some_of
from tests.lakes.tables import SMALL_ROW_GROUPS
from tests.spark.foreign.ways import Use, Ways, conf, same_on_conditions

FILES, ROWS = 6, 60
TABLES = {
    "delta by name": {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"},
    "delta by id": {"delta.columnMapping.mode": "id"},
    "delta": {},
    "iceberg": SMALL_ROW_GROUPS,
}
AS_FILES = "delta"
"""Whose fields are called as in files: those of folders of Parquet are, too."""


def x_of(number: int) -> str:
    return f"x{number * 7919 % 1000:03d}"


def z_of(number: int) -> int:
    return number * 31 % 1000


def y_of(number: int) -> str:
    return f"x{(number * 7919 + 1) % 1000:03d}"


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=[pytest.mark.thorough] if name == AS_FILES else []) for name in TABLES],
)
def name(request: pytest.FixtureRequest, spark: SparkSession, home: Path) -> str:
    """A table with indexes on fields of a struct: the same texts are in two of them, of different rows.

    Its names are exchanged by the last of its tests.
    """
    told = ", ".join(f"'{key}' = '{value}'" for key, value in TABLES[request.param].items())
    format_ = request.param.partition(" ")[0]
    place = f"{format_}-{uuid4().hex[:8]}"
    table = f"delta.`{home}/{place}`" if format_ == "delta" else f"ice.db.t{uuid4().hex[:8]}"
    columns = "id BIGINT, s STRUCT<x: STRING, y: STRING, t: STRUCT<z: INT, w: INT>>"
    spark.sql(f"CREATE TABLE {table} ({columns}) USING {format_} {f'TBLPROPERTIES ({told})' if told else ''}")
    spark.sql(  # a file of each task
        f"""INSERT INTO {table} SELECT id, IF(id % 17 = 5, NULL, named_struct(
          'x', concat('x', lpad(id * 7919 % 1000, 3, '0')), 'y', concat('x', lpad((id * 7919 + 1) % 1000, 3, '0')),
          't', IF(id % 7 = 3, NULL,
            named_struct('z', CAST(id * 31 % 1000 AS INT), 'w', CAST(id * 31 % 1000 + 1 AS INT))))) s
        FROM range(0, {FILES * ROWS}, 1, {FILES})"""
    )
    index = home / f"index-{uuid4().hex[:8]}"
    for field in ("s.x", "s.y", "s.t.z"):
        fuse_spark.index(spark, table, "bloom", [field], at=index)
    return table


def only(uses: list[Use]) -> Use:
    (use,) = uses
    return use


def few_read(uses: list[Use]) -> bool:
    """Whether votes left one file or two of those that the connector's own bounds left."""
    use = only(uses)
    return use.left_out > 0 and use.files - use.left_out <= 2


def is_mapped(name: str, spark: SparkSession) -> bool:
    return "ice." in name or "columnMapping" in str(spark.sql(f"SHOW TBLPROPERTIES {name}").collect())


@pytest.mark.alike
def test_fields_of_structs(ways: Ways, name: str) -> None:
    for columns in some_of(["*", "id", "s.t", "s", "s.x"]):  # Spark reads of a struct what a query names
        rows, told = ways.found(f"SELECT {columns} FROM {name} WHERE s.x = '{x_of(200)}'")
        assert only(told).left_out >= FILES - 2, columns
        assert len(rows) == 1
    assert few_read(ways.same(f"SELECT id, s.t FROM {name} WHERE s.t.z = {z_of(111)} AND s.x = '{x_of(111)}'"))
    nulls = ["s IS NULL", "s.t IS NULL", "s.x IS NULL", "s IS NOT NULL AND s.t.w = 78", "s.t.z IS NOT NULL"]
    same_on_conditions(ways, name, nulls)


@pytest.mark.alike
def test_random_conditions_on_fields(ways: Ways, name: str) -> None:
    chosen = random.Random(27)

    def leaf() -> str:
        n = chosen.randrange(FILES * ROWS + 30)
        x, y, z = x_of(n), y_of(n), z_of(n)
        forms = (
            f"s.x = '{x}' | s.y = '{x}' | s.t.z = {z} | s.t.w = {z} | s.x IN ('{x}', '{y}') | s.y <=> '{y}' | id = {n}"
            f" | s IS NULL | s.t IS NULL | s.t.z IS NULL | s.x > s.y | s.x = 'x{n}' | s.t.w = s.t.z | s.t.z > {n}"
            f" | s.t = named_struct('z', {z}, 'w', {z + 1}) | NOT s.x <> '{x}'"
        )
        return chosen.choice(forms.split(" | "))

    some = [chosen.choice([leaf(), f"{leaf()} AND {leaf()}", f"{leaf()} OR {leaf()}"]) for _ in range(effort(10))]

    told = same_on_conditions(ways, name, some)

    assert sum(use.left_out for use in told) > effort(10)


def test_names_of_fields_that_were_exchanged(ways: Ways, name: str) -> None:
    spark = ways.spark
    if not is_mapped(name, spark):
        return
    for old, new in (
        ("s.x", "c"),
        ("s.y", "x"),
        ("s.c", "y"),
        ("s.t.z", "c"),
        ("s.t.w", "z"),
        ("s.t.c", "w"),
        ("s.t", "u"),
    ):
        spark.sql(f"ALTER TABLE {name} RENAME COLUMN {old} TO {new}")
    # The columns of this number are in another file than those of the same value in the other field.
    rows, told = ways.found(f"SELECT id, s.y FROM {name} WHERE s.y = '{x_of(200)}'")
    assert only(told).left_out >= FILES - 2
    assert [row for row in rows if "id=200" in row]
    assert few_read(ways.same(f"SELECT * FROM {name} WHERE s.u.w = {z_of(111)}"))
    others = f"SELECT * FROM {name} WHERE s.u.z = {z_of(111)} UNION ALL SELECT * FROM {name} WHERE s.x = '{x_of(200)}'"
    ways.same(others)
    if name.startswith("delta."):  # Iceberg binds conditions of an older snapshot to the names of today, and fails
        earlier = f"SELECT id FROM {name} VERSION AS OF 1 WHERE s.x = '{x_of(200)}' AND s.t.z = {z_of(200)}"
        rows, told = ways.found(earlier)
        assert few_read(told)
        assert len(rows) == 1

    spark.sql(f"ALTER TABLE {name} DROP COLUMN s.y")
    spark.sql(f"ALTER TABLE {name} ADD COLUMN s.y STRING")
    assert ways.same(f"SELECT id, s.y FROM {name} WHERE s.y IS NULL") == []  # nobody votes on a field that is new
    rows, _ = ways.found(f"SELECT id, s.y FROM {name} WHERE s.y = '{x_of(200)}' OR s.u.w = 9")
    assert not [row for row in rows if x_of(200) in row]
    with conf(spark, spark_sql_caseSensitive="false"):
        assert only(ways.same(f"SELECT id FROM {name} WHERE S.X = '{y_of(200)}'")).left_out >= FILES - 2
