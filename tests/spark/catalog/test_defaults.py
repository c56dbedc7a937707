"""Defaults of columns change by statements, on our tables as on those that Spark keeps itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark

TABLES = {"ours": "", "keyed": "TBLPROPERTIES (primary_key = 'id')", "vectors": ""}


class Both:
    """A table of ours and one of Spark's, on which each statement is said.

    ``known``: rows of Spark's table after statements that were said before, beside a table of ours of another kind.
    """

    def __init__(self, spark: SparkSession, kind: str, known: dict[tuple[str, ...], list[Row]] | None = None) -> None:
        self.spark, self.plain, self.name = spark, f"plain_{uuid4().hex[:8]}", f"fuse.db.{kind}"
        self._known = {} if known is None else known
        self._said = ["CREATE TABLE $T (id BIGINT, n INT) USING parquet"]
        self._done = 0
        spark.sql(f"CREATE TABLE {self.name} (id BIGINT NOT NULL, n INT) {TABLES[kind]}")
        if kind == "vectors":
            spark.sql(f"ALTER TABLE {self.name} SET TBLPROPERTIES (delete_mode = 'merge-on-read')")

    def say(self, statement: str) -> None:
        self._said.append(statement)
        self.spark.sql(statement.replace("$T", self.name))

    def rows(self, order: str = "id") -> list[Row]:
        """The rows, which are the same in both."""
        key = (*self._said, order)
        if key not in self._known:
            for statement in self._said[self._done :]:
                self.spark.sql(statement.replace("$T", self.plain))
            self._done = len(self._said)
            self._known[key] = self.spark.table(self.plain).orderBy(order).collect()
        found = self.spark.table(self.name).orderBy(order).collect()
        assert str(found) == str(self._known[key])  # as texts, in which NaN is itself
        return found


@pytest.fixture
def session(spark: SparkSession, tmp_path: Path) -> Iterator[SparkSession]:
    fuse_spark.install(spark, warehouse=str(tmp_path / "warehouse"))
    spark.sql("CREATE NAMESPACE fuse.db")
    yield spark
    spark.catalog.setCurrentCatalog("spark_catalog")


@pytest.fixture(scope="module")
def known() -> dict[tuple[str, ...], list[Row]]:
    return {}


@pytest.mark.alike
@pytest.mark.parametrize("kind", ["ours", "vectors", "keyed"])
def test_a_default_changes_what_is_written_afterwards(
    session: SparkSession, known: dict[tuple[str, ...], list[Row]], kind: str
) -> None:
    both = Both(session, kind, known)
    both.say("INSERT INTO $T VALUES (1, 1)")
    both.say("ALTER TABLE $T ADD COLUMN city STRING DEFAULT 'Bonn'")
    both.say("INSERT INTO $T VALUES (2, 2, DEFAULT)")
    both.say("ALTER TABLE $T ALTER COLUMN city SET DEFAULT 'Rome'")
    assert [row.city for row in both.rows()] == ["Bonn", "Bonn"]
    both.say("INSERT INTO $T VALUES (3, 3, DEFAULT)")
    both.say("ALTER TABLE $T ALTER COLUMN city DROP DEFAULT")
    both.say("INSERT INTO $T VALUES (4, 4, DEFAULT)")
    both.say("ALTER TABLE $T ALTER COLUMN city SET DEFAULT 'Os' || 'lo'")
    both.say("ALTER TABLE $T ALTER COLUMN n SET DEFAULT 6 * 7")
    both.say("INSERT INTO $T VALUES (5, DEFAULT, DEFAULT)")
    assert [row.city for row in both.rows()] == ["Bonn", "Bonn", "Rome", None, "Oslo"]
    assert both.rows()[4].n == 42

    session.sql(f"UPDATE {both.name} SET city = DEFAULT, n = n + 1 WHERE id = 1")
    session.sql(
        f"MERGE INTO {both.name} t USING (SELECT explode(array(2L, 6L)) AS id) s ON t.id = s.id "
        f"WHEN MATCHED THEN UPDATE SET city = DEFAULT WHEN NOT MATCHED "
        f"THEN INSERT (id, n, city) VALUES (id, 1, DEFAULT)"
    )
    found = {row.id: row.city for row in session.table(both.name).collect()}
    assert found == {1: "Oslo", 2: "Oslo", 3: "Rome", 4: None, 5: "Oslo", 6: "Oslo"}
    assert session.table(both.name).where("city = 'Bonn'").count() == 0


@pytest.mark.alike
@pytest.mark.parametrize("kind", ["ours", "keyed", "vectors"])
def test_rows_without_the_column_have_the_write_default(session: SparkSession, tmp_path: Path, kind: str) -> None:
    both = Both(session, kind)
    session.sql(f"INSERT INTO {both.name} VALUES (1, 1)")
    session.sql(f"ALTER TABLE {both.name} ADD COLUMN city STRING DEFAULT 'Bonn'")
    session.sql(f"ALTER TABLE {both.name} ALTER COLUMN city SET DEFAULT 'Rome'")
    url = fuse.catalog(tmp_path / "warehouse").load_table(f"db.{kind}").stored.store.url
    rows = session.createDataFrame([(2, 2)], "id BIGINT, n INT")
    rows.write.format("fuse").mode("append").save(url)
    if session.version >= "4.1":
        session.sql(f"INSERT INTO {both.name} (id) VALUES (3)")
        session.sql(f"INSERT INTO {both.name} BY NAME SELECT 4L AS id")
    expected = {1: "Bonn", 2: "Rome", 3: "Rome", 4: "Rome"}
    found = {row.id: row.city for row in session.table(both.name).collect()}
    assert found == {id_: city for id_, city in expected.items() if id_ in found}
    assert len(found) in (2, 4)
    again = session.read.format("fuse").load(url)
    assert {row.id: row.city for row in again.collect()} == found


DEFAULTS = {
    "STRING": ["NULL", "'NULL'", "'it''s'", '"quoted"', "concat('a', 'b')"],
    "DATE": ["DATE '2020-02-29'", "NULL", "DATE '2020-02-29' + INTERVAL 1 DAY"],
    "TIMESTAMP": ["TIMESTAMP '2020-02-29 12:34:56.789'", "TIMESTAMP '2020-02-29 12:34:56+05:00'"],
    "DECIMAL(9,2)": ["1", "1.25", "-7.5BD", "CAST('3' AS DECIMAL(9,2))"],
    "DOUBLE": ["1", "-0.5", "double('NaN')", "double('Infinity')", "1e300"],
    "BOOLEAN": ["true", "NOT true"],
    "BIGINT": ["-9223372036854775808", "1 + 1", "5Y"],
    "INT": ["+5", "length('abc')"],
}


@pytest.mark.every_spark
@pytest.mark.alike
@pytest.mark.parametrize("type_", DEFAULTS)
def test_what_spark_takes_for_a_default_is_that_value(session: SparkSession, type_: str) -> None:
    both = Both(session, "ours")
    both.say(f"ALTER TABLE $T ADD COLUMN c {type_}")
    for number, sql in enumerate(DEFAULTS[type_]):
        both.say(f"ALTER TABLE $T ALTER COLUMN c SET DEFAULT {sql}")
        both.say(f"INSERT INTO $T VALUES ({number}, 0, DEFAULT)")
    both.rows()


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("current_timestamp()", "cannot have this DEFAULT"),
        ("current_user()", "cannot have this DEFAULT"),
        ("(SELECT 'x')", "(?i)subquery"),
        ("n", "(?i)default"),
    ],
)
def test_what_is_no_constant_is_refused_and_changes_nothing(session: SparkSession, sql: str, problem: str) -> None:
    both = Both(session, "ours")
    session.sql(f"ALTER TABLE {both.name} ADD COLUMN c STRING DEFAULT 'x'")
    before = session.sql(f"SELECT count(*) FROM {both.name}.snapshots").first()
    with pytest.raises(PySparkException, match=problem):
        session.sql(f"ALTER TABLE {both.name} ALTER COLUMN c SET DEFAULT {sql}")
    with pytest.raises(PySparkException):
        session.sql(f"ALTER TABLE {both.name} ALTER COLUMN n SET DEFAULT 'twelve'")
    assert session.sql(f"SELECT count(*) FROM {both.name}.snapshots").first() == before


def test_what_show_create_table_prints_has_the_default_of_today(session: SparkSession) -> None:
    both = Both(session, "ours")
    session.sql(f"INSERT INTO {both.name} VALUES (1, 1)")
    session.sql(f"ALTER TABLE {both.name} ADD COLUMNS (a STRING DEFAULT 'Bonn', b INT DEFAULT 5)")
    session.sql(f"ALTER TABLE {both.name} ALTER COLUMN a SET DEFAULT 'Rome'")
    session.sql(f"ALTER TABLE {both.name} ALTER COLUMN b DROP DEFAULT")
    session.sql(f"ALTER TABLE {both.name} ALTER COLUMN n SET DEFAULT 3")
    text = session.sql(f"SHOW CREATE TABLE {both.name}").first()[0]
    assert "CAST('Rome' AS string)" in text
    assert "CAST('3' AS int)" in text
    assert "Bonn" not in text
    assert session.table(both.name).collect() == [Row(id=1, n=1, a="Bonn", b=5)]
