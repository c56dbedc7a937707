"""WITH SCHEMA EVOLUTION brings columns, fields and wider types in the commit of the rows, or is refused by name."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_storage import Conflict, SchemaError
from fuse_storage.testing import check_invariants

KINDS: dict[str, Any] = {
    "copy-on-write": {},
    "merge-on-read": {"properties": {"delete_mode": "merge-on-read"}},
    "keyed": {"primary_key": ["id"]},
}
COLUMNS = "id BIGINT NOT NULL, v STRING, k INT, s STRUCT<a: INT>"
SOURCE = "SELECT 2L AS id, 'B' AS v, 20 AS k, named_struct('a', 2) AS s, 5 AS n UNION ALL SELECT 4L, 'D', 40, NULL, 6"
ALL = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
Row = dict[str, Any]


@pytest.fixture
def make(sql_spark: SparkSession, tmp_path: Path) -> Callable[[str], fuse.Table]:
    def table(kind: str) -> fuse.Table:
        made = fuse.create_table(tmp_path / "t", COLUMNS, **KINDS[kind])
        rows = [{"id": i, "v": f"v{i}", "k": i, "s": {"a": i}} for i in (1, 2)]
        if kind == "keyed":
            made.upsert(rows[:1])
            made.maintenance.tier()
            made.upsert(rows[1:])
        else:
            made.append(rows)
        return made

    return table


def merge(source: str, clauses: str = ALL) -> str:
    return f"MERGE WITH SCHEMA EVOLUTION INTO $T t USING ({source}) s ON t.id = s.id {clauses}"


def run(spark: SparkSession, table: fuse.Table, statement: str) -> dict[int, Row]:
    """The rows after a statement, by their ids."""
    spark.sql(statement.replace("$T", f"fuse.`{table.stored.store.url}`")).collect()
    check_invariants(table.refresh().stored)
    return {row["id"]: row for row in table.to_arrow().to_pylist()}


def can_evolve(spark: SparkSession) -> bool:
    return spark.version >= "4.1"


@pytest.fixture
def evolving(sql_spark: SparkSession) -> SparkSession:
    if not can_evolve(sql_spark):
        pytest.skip("the first Spark that has it is 4.1; what becomes of it before is tested below")
    return sql_spark


EVOLUTIONS: dict[str, tuple[str, dict[str, str], dict[int, Row]]] = {
    "a new column": (
        merge(SOURCE),
        {"n": "int32"},
        {
            1: {"v": "v1", "n": None},
            2: {"v": "B", "k": 20, "s": {"a": 2}, "n": 5},
            4: {"v": "D", "k": 40, "s": None, "n": 6},
        },
    ),
    "a column with a dot in its name": (
        merge("SELECT 2L AS id, 'B' AS v, 20 AS k, named_struct('a', 2) AS s, 5 AS `s.a`"),
        {"s.a": "int32"},
        {1: {"v": "v1", "s.a": None}, 2: {"v": "B", "s": {"a": 2}, "s.a": 5}},
    ),
    "a new column of rows that are new alone": (
        merge(SOURCE, "WHEN NOT MATCHED THEN INSERT *"),
        {"n": "int32"},
        {2: {"v": "v2", "k": 2, "n": None}, 4: {"v": "D", "n": 6}},
    ),
    "a source that lacks columns": (
        merge("SELECT 2L AS id, 5 AS n UNION ALL SELECT 4L, 6"),
        {"n": "int32"},
        {2: {"v": "v2", "k": 2, "s": {"a": 2}, "n": 5}, 4: {"v": None, "k": None, "s": None, "n": 6}},
    ),
    "a new column by its name": (
        merge(SOURCE, "WHEN MATCHED THEN UPDATE SET n = s.n WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, s.n)"),
        {"n": "int32"},
        {2: {"v": "v2", "k": 2, "n": 5}, 4: {"v": None, "n": 6}},
    ),
    "a new field": (
        merge(
            "SELECT 2L AS id, named_struct('a', 7, 'b', 'x') AS s UNION ALL SELECT 4L, named_struct('a', 8, 'b', 'y')"
        ),
        {"s": "struct<a: int32, b: string>"},
        {1: {"s": {"a": 1, "b": None}}, 2: {"v": "v2", "s": {"a": 7, "b": "x"}}, 4: {"s": {"a": 8, "b": "y"}}},
    ),
    "a wider type": (
        merge("SELECT 2L AS id, 30000000000L AS k UNION ALL SELECT 4L, 4L"),
        {"k": "int64"},
        {1: {"k": 1}, 2: {"v": "v2", "k": 30000000000}, 4: {"k": 4}},
    ),
    "a narrower type, which is cast": (
        merge("SELECT CAST(2 AS SMALLINT) AS id, 3S AS k, true AS n"),
        {"k": "int32", "id": "int64", "n": "bool"},
        {2: {"v": "v2", "k": 3, "n": True}},
    ),
    "rows by name": (
        "INSERT WITH SCHEMA EVOLUTION INTO $T BY NAME SELECT 7 AS n, 5L AS id, 'E' AS v, 1 AS k, NULL AS s",
        {"n": "int32"},
        {1: {"n": None}, 5: {"v": "E", "n": 7}},
    ),
}


@pytest.mark.every_spark
@pytest.mark.alike
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("evolution", EVOLUTIONS)
def test_columns_come_with_the_rows_in_one_commit(
    evolving: SparkSession, make: Callable[[str], fuse.Table], kind: str, evolution: str
) -> None:
    statement, types, expected = EVOLUTIONS[evolution]
    if statement.startswith("INSERT") and evolving.version < "4.3":
        pytest.skip("the grammar of INSERT has it from 4.3 on")
    table = make(kind)
    version, before = table.version, {row["id"]: row for row in table.to_arrow().to_pylist()}

    rows = run(evolving, table, statement)

    assert table.version == version + 1
    assert {name: str(table.schema.field(name).type) for name in types} == types
    assert sorted(rows) == sorted({*before, *expected})
    for i, row in expected.items():
        assert rows[i] == rows[i] | row
    found = evolving.table(f"fuse.`{table.stored.store.url}`").collect()
    assert {row.id: row.asDict(recursive=True) for row in found} == rows


@pytest.mark.alike
@pytest.mark.parametrize("kind", KINDS)
def test_a_statement_that_fails_or_is_explained_or_changes_no_row_leaves_the_columns(
    evolving: SparkSession, make: Callable[[str], fuse.Table], kind: str
) -> None:
    table = make(kind)
    version = table.version
    failing = "SELECT 2L AS id, CAST(raise_error('on its way') AS INT) AS n"
    with pytest.raises(AnalysisException, match="on its way"):
        run(evolving, table, merge(failing))
    with pytest.raises(AnalysisException, match="several rows of the source match one row"):
        run(evolving, table, merge("SELECT 2L AS id, n FROM VALUES (1), (2) AS v(n)"))
    run(evolving, table, f"EXPLAIN {merge(SOURCE)}")
    run(evolving, table, merge(SOURCE, "WHEN MATCHED AND s.n = 99 THEN UPDATE SET *"))

    assert table.refresh().version == version


def test_what_cannot_be_is_refused_by_name(evolving: SparkSession, make: Callable[[str], fuse.Table]) -> None:
    table = make("copy-on-write")
    table.create_index("by_k", "bloom", ["k"])
    version = table.version
    with pytest.raises(AnalysisException, match=r"'k' has index 'by_k' on it: drop it first"):
        run(evolving, table, merge("SELECT 2L AS id, 30000000000L AS k"))
    with pytest.raises(AnalysisException, match=r"column 'n' .*cast it first"):
        run(evolving, table, merge("SELECT 2L AS id, NULL AS n"))
    keyed = fuse.create_table(table.stored.store.url + "2", "id INT, v STRING", primary_key=["id"])
    with pytest.raises(AnalysisException, match=r"column 'id' is of the primary key: its type stays"):
        run(evolving, keyed, merge("SELECT 2L AS id, 'x' AS v"))

    assert table.refresh().version == version


def test_a_column_that_comes_meanwhile_is_a_conflict(evolving: SparkSession, make: Callable[[str], fuse.Table]) -> None:
    for kind in ("copy-on-write", "keyed"):
        table = make(kind)
        planned = evolving.sql(f"SELECT * FROM fuse.`{table.stored.store.url}`")  # a session that knows the table
        assert planned.count() == 2
        url = table.stored.store.url

        def meanwhile(number: int, url: str = url) -> int:
            with suppress(Conflict, SchemaError):  # another task was faster
                fuse.open_table(url).add_column("n", "string")
            return number

        evolving.udf.register("meanwhile", meanwhile, "int")
        with pytest.raises(AnalysisException, match=r"FUSE_CONFLICT|FUSE_SCHEMA_MISMATCH"):
            run(evolving, table, merge("SELECT id, meanwhile(CAST(id AS INT)) AS n FROM VALUES (2L), (4L) AS v(id)"))
        assert table.refresh().schema.names[-1] == "n"
        assert table.schema.field("n").type == "string"
        assert table.to_arrow().column("n").null_count == 2
        rmtree(url)


@pytest.mark.every_spark
def test_sparks_before_refuse_columns_that_they_would_leave_out(
    sql_spark: SparkSession, make: Callable[[str], fuse.Table]
) -> None:
    if can_evolve(sql_spark):
        pytest.skip("this Spark does what the words say")
    table = make("copy-on-write")
    version = table.version
    source = sql_spark.sql(SOURCE)
    target = f"fuse.`{table.stored.store.url}`"

    with pytest.raises(AnalysisException, match=r"not these columns of the source, or of another type: n\."):
        run(sql_spark, table, merge(SOURCE))
    changes = source.mergeInto(target, source.id == sql_spark.table(target).id).withSchemaEvolution()
    with pytest.raises(AnalysisException, match="merge_schema=True"):
        changes.whenMatched().updateAll().merge()
    assert table.refresh().version == version
    rows = run(sql_spark, table, merge("SELECT 2L AS id, 'B' AS v, 20 AS k, named_struct('a', 2) AS s"))
    assert rows[2] == {"id": 2, "v": "B", "k": 20, "s": {"a": 2}}
    rows = run(sql_spark, table, merge("SELECT 2 AS id, 'B' AS v, 20S AS k, NULL AS s"))  # which need no other columns
    assert rows[2] == {"id": 2, "v": "B", "k": 20, "s": None}
