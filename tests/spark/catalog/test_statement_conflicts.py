"""Two statements at once go together, or one of them is told; one that never ends leaves nothing; what is old stays."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_storage.testing import check_invariants

COLUMNS = "id BIGINT, kind STRING"


@pytest.fixture
def url(tmp_path: Path) -> str:
    table = fuse.create_table(tmp_path / "t", COLUMNS, properties={"block_rows": 5})
    table.append([{"id": i, "kind": "a"} for i in range(20)])
    return str(tmp_path / "t")


@pytest.fixture
def meanwhile(sql_spark: SparkSession, url: str, tmp_path: Path) -> Callable[[Callable[[fuse.Table], object]], None]:
    """Make ``meanwhile(id)`` a function, true of each row, that has the table changed while a statement runs it."""

    def define(change: Callable[[fuse.Table], object]) -> None:
        done = tmp_path / "done"

        def is_true(row: int) -> bool:
            try:
                done.mkdir()
            except FileExistsError:
                return True
            change(fuse.open_table(url))
            return True

        sql_spark.udf.register("meanwhile", is_true, "boolean")

    return define


def ids(url: str) -> list[int]:
    check_invariants(fuse.open_table(url).stored)
    return sorted(fuse.open_table(url).scan().to_arrow()["id"].to_pylist())


def add_100(table: fuse.Table) -> None:
    table.append([{"id": 100, "kind": "new"}])


def delete_7(table: fuse.Table) -> None:
    table.delete("id = 7")


GO_TOGETHER = {
    "rows added, and others": ("INSERT INTO $T SELECT id + 50, kind FROM $T WHERE id < 2 AND meanwhile(id)", add_100),
    "rows added beside deleted": ("DELETE FROM $T WHERE id < 2 AND meanwhile(id)", add_100),
    "rows deleted elsewhere": ("UPDATE $T SET kind = 'b' WHERE id < 2 AND meanwhile(id)", delete_7),
}


@pytest.mark.parametrize("case", GO_TOGETHER)
def test_statements_that_do_not_matter_to_each_other_go_together(
    sql_spark: SparkSession, url: str, meanwhile: Callable[..., None], case: str
) -> None:
    statement, change = GO_TOGETHER[case]
    meanwhile(change)
    sql_spark.sql(statement.replace("$T", f"fuse.`{url}`"))

    expected = {
        "rows added, and others": [*range(20), 50, 51, 100],
        "rows added beside deleted": [*range(2, 20), 100],
        "rows deleted elsewhere": [i for i in range(20) if i != 7],
    }
    assert ids(url) == expected[case]


CONFLICTS = {
    "rows added that it would change": ("UPDATE $T SET kind = 'b' WHERE kind <> 'z' AND meanwhile(id)", add_100),
    "rows deleted that it changes": ("UPDATE $T SET kind = 'b' WHERE id = 7 AND meanwhile(id)", delete_7),
    "rows added that it would replace": ("INSERT OVERWRITE $T SELECT id, 'c' FROM $T WHERE meanwhile(id)", add_100),
    "rows added that may match": (
        "MERGE INTO $T t USING (SELECT * FROM range(100, 101) WHERE meanwhile(id)) s ON t.id = s.id"
        " WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
        add_100,
    ),
}


@pytest.mark.parametrize("case", CONFLICTS)
def test_a_statement_that_somebody_else_came_before_is_told(
    sql_spark: SparkSession, url: str, meanwhile: Callable[..., None], case: str
) -> None:
    statement, change = CONFLICTS[case]
    meanwhile(change)
    with pytest.raises(AnalysisException, match=r"FUSE_CONFLICT. rows that this .* by .*: read"):
        sql_spark.sql(statement.replace("$T", f"fuse.`{url}`"))

    assert ids(url) == ([*range(20), 100] if change is add_100 else [i for i in range(20) if i != 7])
    assert {row["kind"] for row in fuse.open_table(url).scan("id < 20").to_arrow().to_pylist()} == {"a"}


def tier_meanwhile(table: fuse.Table) -> None:
    table.append([{"id": 100, "kind": "hot"}], hot=True)
    table.maintenance.tier()
    table.append([{"id": 101, "kind": "hot"}], hot=True)
    table.maintenance.compact()


MOVED = {
    "updated": "UPDATE $T SET kind = 'b' WHERE id IN (3, 21, 23) AND meanwhile(id)",
    "deleted": "DELETE FROM $T WHERE id IN (3, 21, 23) AND meanwhile(id)",
    "merged": (
        "MERGE INTO $T t USING (SELECT explode(array(3L, 21L, 23L, 50L)) id FROM range(1) WHERE meanwhile(id)) s"
        " ON t.id = s.id WHEN MATCHED THEN UPDATE SET kind = 'b'"
        " WHEN NOT MATCHED THEN INSERT (id, kind) VALUES (s.id, 'b')"
    ),
    "inserted": (
        "MERGE INTO $T t USING (SELECT explode(array(3L, 50L)) id FROM range(1) WHERE meanwhile(id)) s"
        " ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, kind) VALUES (s.id, 'b')"
    ),
}


@pytest.mark.parametrize("case", MOVED)
def test_a_statement_finds_rows_again_that_were_moved_meanwhile(
    sql_spark: SparkSession, url: str, meanwhile: Callable[..., None], case: str
) -> None:
    table = fuse.open_table(url)
    for start in (20, 22):
        table.append([{"id": start, "kind": "a"}, {"id": start + 1, "kind": "a"}], hot=True)
    meanwhile(tier_meanwhile)
    sql_spark.sql(MOVED[case].replace("$T", f"fuse.`{url}`"))

    kinds = dict.fromkeys(range(24), "a") | {100: "hot", 101: "hot"}
    changed = dict.fromkeys({"merged": [3, 21, 23, 50], "inserted": [50]}.get(case, [3, 21, 23]), "b")
    expected = {n: k for n, k in kinds.items() if n not in changed} if case == "deleted" else kinds | changed
    assert ids(url) == sorted(expected)
    found = fuse.open_table(url).to_arrow()
    assert dict(zip(*(found.column(name).to_pylist() for name in ("id", "kind")), strict=True)) == expected
    assert "tier" in table.refresh().history().column("operation").to_pylist()


def test_a_session_that_dies_halfway_leaves_nothing(killed_halfway: Path) -> None:
    url = str(killed_halfway / "updated")

    assert len(fuse.open_table(url).stored.history()) == 2
    assert ids(url) == list(range(20))


def test_what_is_old_or_only_read_is_not_changed(sql_spark: SparkSession, tmp_path: Path) -> None:
    from fuse_index import spark as fuse_spark

    fuse_spark.install(sql_spark, catalog="lake", warehouse=str(tmp_path / "lake"))
    sql_spark.sql("CREATE NAMESPACE lake.db")
    sql_spark.sql("CREATE TABLE lake.db.t AS SELECT id FROM range(5)")
    table = fuse.catalog(str(tmp_path / "lake")).load_table("db.t")
    table.tag("monday")
    table.branch("try")
    sql_spark.sql("INSERT INTO lake.db.t.branch_try VALUES (9)")
    assert table.refresh().scan().count() == 5
    for statement in ("INSERT INTO $T VALUES (1)", "DELETE FROM $T", "UPDATE $T SET id = 1", "TRUNCATE TABLE $T"):
        with pytest.raises(AnalysisException, match="is the table as it was at 'monday': change a branch of it"):
            sql_spark.sql(statement.replace("$T", "lake.db.t.tag_monday"))
        with pytest.raises(Exception, match=r"(?i)does not support|not allowed|cannot|unsupported|INSERT|snapshots"):
            sql_spark.sql(statement.replace("$T", "lake.db.t.snapshots"))
    assert table.refresh().scan().count() == 5


def test_tables_are_made_with_rows_and_replaced(sql_spark: SparkSession, tmp_path: Path) -> None:
    from fuse_index import spark as fuse_spark

    fuse_spark.install(sql_spark, catalog="lake2", warehouse=str(tmp_path / "lake"))
    sql_spark.sql("CREATE NAMESPACE lake2.db")

    def count(name: str) -> int:
        return sql_spark.table(name).count()

    rows = sql_spark.range(7).selectExpr("id", "'x' AS kind")
    sql_spark.sql("CREATE TABLE lake2.db.a USING fuse AS SELECT id FROM range(5)")
    sql_spark.sql("CREATE OR REPLACE TABLE lake2.db.a AS SELECT id, 'y' AS kind FROM range(6)")
    assert count("lake2.db.a") == 6
    rows.writeTo("lake2.db.b").create()
    with pytest.raises(AnalysisException, match="exists"):
        rows.writeTo("lake2.db.b").create()
    rows.limit(2).writeTo("lake2.db.b").replace()
    assert count("lake2.db.b") == 2
    rows.writeTo("lake2.db.b").createOrReplace()
    rows.write.format("fuse").saveAsTable("lake2.db.c")
    rows.write.mode("append").saveAsTable("lake2.db.c")
    assert count("lake2.db.c") == 14
    rows.write.format("fuse").mode("overwrite").saveAsTable("lake2.db.c")
    rows.write.format("fuse").mode("ignore").saveAsTable("lake2.db.c")
    assert (count("lake2.db.b"), count("lake2.db.c")) == (7, 7)
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        sql_spark.sql("CREATE TABLE lake2.db.d AS SELECT 1 div (id - 3) AS x FROM range(5)")
    assert not sql_spark.catalog.tableExists("lake2.db.d")
