"""SQL statements change rows as the same statements change a plain Parquet table, or as a list of dicts is changed."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.functions import expr

import fuse_index as fuse
from fuse_index.spark.jobs import dml
from fuse_storage.testing import check_invariants

COLUMNS = "id BIGINT, name STRING, age INT, s STRUCT<a: INT, b: STRING>"
START = [
    Row(id=1, name="a", age=10, s=Row(a=1, b="x")),
    Row(id=2, name="b", age=20, s=None),
    Row(id=3, name=None, age=None, s=None),
    Row(id=4, name="d", age=40, s=None),
]


class Pair:
    """A table of ours and a plain one with the same rows; ``$T`` in a statement is either."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self.spark, self.path = spark, str(path / "t")
        made = fuse.create_table(self.path, COLUMNS, properties={"block_rows": 3})
        made.append([row.asDict(recursive=True) for row in START])
        self.name = f"fuse.`{self.path}`"

    @cached_property
    def plain(self) -> str:
        """The plain table, which is made when a statement is the first to change it."""
        self.spark.sql("DROP TABLE IF EXISTS plain_twin")
        self.spark.createDataFrame(START, COLUMNS).coalesce(1).write.saveAsTable("plain_twin", format="parquet")
        return "plain_twin"

    def ours(self, statement: str) -> None:
        self.spark.sql(statement.replace("$T", self.name)).collect()

    def both(self, statement: str) -> None:
        self.ours(statement)
        self.spark.sql(statement.replace("$T", self.plain)).collect()

    def rows(self, name: str) -> list[Any]:
        return sorted(map(repr, self.spark.table(name).collect()))

    def ids(self) -> list[int]:
        return sorted(row.id for row in self.spark.table(self.name).collect())

    def operations(self) -> list[str]:
        return [entry.operation for entry in reversed(fuse.open_table(self.path).stored.history())]

    def check(self) -> None:
        expected = self.rows(self.plain) if "plain" in vars(self) else sorted(map(repr, START))
        assert self.rows(self.name) == expected
        check_invariants(fuse.open_table(self.path).stored)


@pytest.fixture
def pair(sql_spark: SparkSession, tmp_path: Path) -> Pair:
    return Pair(sql_spark, tmp_path)


INSERTS = {
    "by position": "INSERT INTO $T VALUES (5, 'e', 50, NULL)",
    "of a query": "INSERT INTO $T SELECT id, concat('n', id), id, named_struct('a', 1, 'b', NULL) FROM range(10, 40)",
    "with casts of assignment": "INSERT INTO $T SELECT CAST(7 AS INT), 'x', 8L, NULL",
    "with a list of columns": "INSERT INTO $T (name, id) VALUES ('e', 5)",
    "by name": "INSERT INTO $T BY NAME SELECT NULL AS s, 50 AS age, 'e' AS name, 5L AS id",
    "of no rows": "INSERT INTO $T SELECT * FROM $T WHERE id > 100",
    "of its own rows": "INSERT INTO $T SELECT id + 10, name, age, s FROM $T",
    "in the place of all": "INSERT OVERWRITE $T VALUES (5, 'e', 50, NULL)",
    "of no rows in the place of all": "INSERT OVERWRITE $T SELECT * FROM range(0) AS r, VALUES ('a', 1, NULL) AS v",
    "truncate": "TRUNCATE TABLE $T",
}


def before_4_1(spark: SparkSession) -> bool:
    """Whether Spark wants a value for each column, whatever its default, of all tables but its own."""
    return spark.version < "4.1"


@pytest.mark.every_spark
@pytest.mark.parametrize("statement", INSERTS)
def test_rows_come_as_into_a_plain_table(pair: Pair, statement: str) -> None:
    if statement == "with a list of columns" and before_4_1(pair.spark):
        with pytest.raises(AnalysisException, match="Cannot find data for the output column"):
            pair.ours(INSERTS[statement])
        return
    if INSERTS[statement].startswith("INSERT OVERWRITE $T SELECT *"):
        pair.ours(INSERTS[statement].replace("SELECT *", "SELECT id, col1, col2, NULL"))
        pair.spark.sql(f"TRUNCATE TABLE {pair.plain}")
    else:
        pair.both(INSERTS[statement])
    pair.check()
    assert len(pair.operations()) <= 3, "a statement is one commit"


FRAMES: dict[str, tuple[Callable[[DataFrame, str], None], list[int]]] = {
    "append": (lambda rows, name: rows.writeTo(name).append(), [1, 2, 3, 4, 7, 8]),
    "overwrite": (lambda rows, name: rows.writeTo(name).overwrite(expr("id > 2")), [1, 2, 7, 8]),
    "overwrite partitions": (lambda rows, name: rows.writeTo(name).overwritePartitions(), [7, 8]),
    "insert into": (lambda rows, name: rows.write.insertInto(name), [1, 2, 3, 4, 7, 8]),
    "insert into, overwriting": (lambda rows, name: rows.write.insertInto(name, overwrite=True), [7, 8]),
    "save": (lambda rows, name: rows.write.mode("append").saveAsTable(name), [1, 2, 3, 4, 7, 8]),
}


@pytest.mark.every_spark
@pytest.mark.parametrize("frame", FRAMES)
def test_data_frames_are_written_by_name(pair: Pair, frame: str) -> None:
    rows = pair.spark.sql(
        "SELECT id, 'n' AS name, 1 AS age, CAST(NULL AS STRUCT<a: INT, b: STRING>) AS s FROM range(7, 9)"
    )
    write, expected = FRAMES[frame]
    write(rows, pair.name)
    assert pair.ids() == expected


def test_a_column_that_rows_lack_has_its_default(pair: Pair) -> None:
    fuse.open_table(pair.path).add_column("kind", "STRING", default="plain")
    pair.ours("INSERT INTO $T VALUES (6, NULL, NULL, NULL, DEFAULT), (7, NULL, NULL, NULL, NULL)")
    pair.ours("UPDATE $T SET kind = 'x' WHERE id = 1")
    pair.ours("UPDATE $T SET kind = DEFAULT WHERE id = 2")
    expected = {1: "x", 2: "plain", 3: "plain", 4: "plain", 6: "plain", 7: None}
    if not before_4_1(pair.spark):
        pair.ours("INSERT INTO $T (id) VALUES (5)")
        pair.ours("INSERT INTO $T BY NAME SELECT 8L AS id")
        expected |= {5: "plain", 8: "plain"}
    assert {row.id: row.kind for row in pair.spark.table(pair.name).collect()} == expected


REFUSED = {
    "too few": ("INSERT INTO $T VALUES (1, 'a')", "NOT_ENOUGH_DATA_COLUMNS"),
    "unknown column": ("INSERT INTO $T (id, nam) VALUES (1, 'a')", "nam"),
    "no cast": ("INSERT INTO $T VALUES ('x', 'a', TIMESTAMP'2020-01-01', NULL)", "CANNOT_SAFELY_CAST"),
    "replaced rows": ("INSERT INTO $T REPLACE WHERE id = 1 VALUES (9, 'a', 1, NULL)", "is not true on 1 of the rows"),
    "unknown in update": ("UPDATE $T SET nam = 1", "nam"),
    "several matches": (
        "MERGE INTO $T t USING (SELECT 1 AS k FROM range(2)) s ON t.id = s.k WHEN MATCHED THEN UPDATE SET age = 1",
        "several rows of the source match",
    ),
    "option": ("INSERT INTO $T WITH (colour = 'red') VALUES (1, 'a', 1, NULL)", "option 'colour' means nothing"),
}


@pytest.mark.every_spark
@pytest.mark.parametrize("case", REFUSED)
def test_a_refused_statement_changes_nothing(pair: Pair, case: str) -> None:
    statement, words = REFUSED[case]
    with pytest.raises(AnalysisException, match=words):
        pair.ours(statement)
    pair.check()
    assert len(pair.operations()) == 2


@pytest.mark.every_spark
def test_rows_that_fail_halfway_leave_nothing(pair: Pair) -> None:
    with pytest.raises(Exception, match=r"OVERFLOW|DIVIDE_BY_ZERO"):
        pair.ours("INSERT INTO $T SELECT id, 'x', 100 / (id - 39), NULL FROM range(0, 40, 1, 4)")
    with pytest.raises(Exception, match=r"OVERFLOW|DIVIDE_BY_ZERO"):
        pair.ours("UPDATE $T SET age = CAST(1 / (id - 4) AS INT)")
    pair.check()
    assert len(pair.operations()) == 2


def test_a_small_insert_is_one_block(pair: Pair) -> None:
    assert len(fuse.open_table(pair.path).stored.blocks()) == 2, "4 rows, 3 to a block"
    pair.ours("INSERT INTO $T VALUES (5, 'e', 1, NULL), (6, 'e', 1, NULL)")
    assert len(fuse.open_table(pair.path).stored.blocks()) == 3


TYPED = {
    "BOOLEAN": "true",
    "TINYINT": "-128Y",
    "SMALLINT": "32767S",
    "INT": "-2147483648",
    "BIGINT": "9223372036854775807L",
    "FLOAT": "float('NaN')",
    "DOUBLE": "-0.0D",
    "DECIMAL(38, 18)": "99999999999999999999.999999999999999999BD",
    "STRING": "'ä\\u0000€'",
    "BINARY": "X'00FF'",
    "DATE": "DATE '0001-01-01'",
    "TIMESTAMP": "TIMESTAMP '1900-01-01 00:00:00.123456 Asia/Kolkata'",
    "TIMESTAMP_NTZ": "TIMESTAMP_NTZ '9999-12-31 23:59:59.999999'",
    "ARRAY<STRUCT<a: INT, b: STRING>>": "array(named_struct('a', 1, 'b', NULL), NULL)",
    "MAP<STRING, DATE>": "map('k', DATE '2024-02-29')",
}


@pytest.mark.every_spark
@pytest.mark.parametrize("zone", ["UTC", "America/St_Johns"])
def test_rows_that_the_driver_has_are_written_there_and_are_those_that_tasks_write(
    sql_spark: SparkSession, tmp_path: Path, zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"`c.{number}`" for number in range(len(TYPED))]
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(names, TYPED, strict=True))
    values = f"({', '.join(TYPED.values())}), ({', '.join(['NULL'] * len(TYPED))})"
    here, tasks = (f"fuse.`{tmp_path}/{name}`" for name in ("here", "tasks"))
    for name in (here, tasks):
        sql_spark.sql(f"CREATE TABLE {name} ({columns})")
    sql_spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        sql_spark.sql(f"INSERT INTO {tasks} SELECT /*+ REPARTITION(1) */ * FROM VALUES {values}")
        with monkeypatch.context() as patch:
            patch.setattr(dml, "collect_answers", lambda df: pytest.fail("a task was started"))
            sql_spark.sql(f"INSERT INTO {here} VALUES {values}")
    finally:
        sql_spark.conf.unset("spark.sql.session.timeZone")
    written, expected = (fuse.open_table(tmp_path / name).scan().to_arrow() for name in ("here", "tasks"))
    assert written.num_rows == 2
    assert written.schema == expected.schema
    assert sorted(map(repr, written.to_pylist())) == sorted(map(repr, expected.to_pylist()))


def test_a_column_that_hides_where_rows_lie_is_named(sql_spark: SparkSession, tmp_path: Path) -> None:
    fuse.create_table(tmp_path / "t", "id BIGINT, _metadata STRING").append([{"id": 1, "_metadata": "x"}])
    with pytest.raises(AnalysisException, match="has a column _metadata, by which name DELETE finds"):
        sql_spark.sql(f"DELETE FROM fuse.`{tmp_path}/t` WHERE id = 1")
    sql_spark.sql(f"INSERT INTO fuse.`{tmp_path}/t` VALUES (2, 'y')")
    assert fuse.open_table(tmp_path / "t").scan().count() == 2


@pytest.mark.every_spark
def test_null_in_a_column_that_takes_none_is_refused(sql_spark: SparkSession, tmp_path: Path) -> None:
    name = f"fuse.`{tmp_path}/t`"
    sql_spark.sql(f"CREATE TABLE {name} (id BIGINT NOT NULL, kind STRING)")
    sql_spark.sql(f"INSERT INTO {name} VALUES (1, 'a')")
    for statement in (
        "INSERT INTO $T VALUES (NULL, 'b')",
        "UPDATE $T SET id = NULL",
        "DELETE FROM $T WHERE 1 / (id - 1) > 0",
    ):
        with pytest.raises(AnalysisException):
            sql_spark.sql(statement.replace("$T", name))
    assert fuse.open_table(tmp_path / "t").scan().to_arrow().to_pylist() == [{"id": 1, "kind": "a"}]


def test_comments_of_parts_of_columns_are_kept(sql_spark: SparkSession, tmp_path: Path) -> None:
    place = f"fuse.`{tmp_path}/t`"
    inner = "a: INT COMMENT 'first', b: ARRAY<STRUCT<c: STRING COMMENT 'third'>>"
    sql_spark.sql(f"CREATE TABLE {place} (id INT COMMENT 'a number', s STRUCT<{inner}>)")
    sql_spark.sql(f"ALTER TABLE {place} ADD COLUMN u STRUCT<d: INT COMMENT 'fourth'>")
    sql_spark.sql(f"ALTER TABLE {place} ALTER COLUMN s.a COMMENT 'changed'")

    table = sql_spark.table(place)
    assert table.schema["id"].metadata == {"comment": "a number"}
    assert table.schema["s"].dataType["a"].metadata == {"comment": "changed"}
    assert table.schema["s"].dataType["b"].dataType.elementType["c"].metadata == {"comment": "third"}
    assert table.schema["u"].dataType["d"].metadata == {"comment": "fourth"}
    assert "COMMENT 'third'" in sql_spark.sql(f"SHOW CREATE TABLE {place}").head()[0]
    sql_spark.sql(f"INSERT INTO {place} VALUES (1, struct(2, array(struct('x'))), struct(3))")
    assert [row.s.b[0].c for row in sql_spark.table(place).collect()] == ["x"]


@pytest.mark.every_spark
def test_jobs_of_a_statement_are_those_of_whoever_waits_for_it(sql_spark: SparkSession, tmp_path: Path) -> None:
    """So its group, its tags and its pool hold for them, and what cancels others' jobs cancels these."""
    url = str(tmp_path / "asked")
    fuse.create_table(url, "id BIGINT")
    context, tracker = sql_spark.sparkContext, sql_spark.sparkContext.statusTracker()
    context.setJobGroup("statement", "rows of a statement")
    try:
        sql_spark.sql(f"INSERT INTO fuse.`{url}` SELECT id FROM range(0, 1000, 1, 2)")
    finally:
        context._jsc.clearJobGroup()
    sql_spark.sql(f"INSERT INTO fuse.`{url}` SELECT id FROM range(0, 1000, 1, 2)")

    jobs = tracker.getJobIdsForGroup("statement")
    assert jobs
    assert tracker.getJobIdsForGroup(None)
    assert fuse.open_table(url).count() == 2000


@pytest.mark.every_spark
def test_files_are_named_by_their_format_whatever_catalogue_is_current(sql_spark: SparkSession, tmp_path: Path) -> None:
    files = str(tmp_path / "files")
    sql_spark.range(3).write.parquet(files)
    sql_spark.sql("USE fuse")
    try:
        assert sql_spark.sql(f"SELECT count(*) FROM parquet.`{files}`").collect() == [(3,)]
        with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
            sql_spark.sql(f"SELECT * FROM no_format.`{files}`")
    finally:
        sql_spark.sql("USE spark_catalog.default")


def test_changes_are_those_since_a_snapshot_whose_file_is_there(sql_spark: SparkSession, tmp_path: Path) -> None:
    """This process has read older ones, and remembers them when another has collected them."""
    url = str(tmp_path / "vacuumed")
    table = fuse.create_table(url, "id BIGINT")
    for first in range(4):
        table.append([{"id": first}])
    query = f"SELECT id FROM fuse.`{url}`.changes ORDER BY id"
    assert sql_spark.sql(query).collect() == [(0,), (1,), (2,), (3,)]
    for snapshot in table.history().column("snapshot").to_pylist()[2:]:
        (tmp_path / "vacuumed" / "_ss" / f"{snapshot}.json").unlink()

    assert len([snapshot for _, snapshot in fuse.open_table(url).stored.snapshots() if snapshot is not None]) == 5
    assert sql_spark.sql(query).collect() == [(3,)]
