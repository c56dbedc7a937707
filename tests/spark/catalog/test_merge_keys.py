"""A MERGE touches no block that cannot hold a key of its source, and minds no rows that others add elsewhere."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_storage.testing import check_invariants

BLOCKS, ROWS = 8, 5
UPSERT = "WHEN MATCHED THEN UPDATE SET n = s.n WHEN NOT MATCHED THEN INSERT (id, code, n) VALUES (s.id, s.code, s.n)"
UPDATE = "WHEN MATCHED THEN UPDATE SET n = s.n"
INSERT = "WHEN NOT MATCHED THEN INSERT (id, code, n) VALUES (s.id, s.code, s.n)"


def code_of(number: int) -> str:
    """In no order, so that only an index knows where one is."""
    return f"c{number * 17 % (BLOCKS * ROWS)}"


@pytest.fixture
def table(tmp_path: Path) -> fuse.Table:
    """Eight blocks: ``id`` ascends through them, ``code`` is known by a bloom index."""
    made = fuse.create_table(tmp_path / "t", "id BIGINT, code STRING, n INT", properties={"block_rows": ROWS})
    made.append([{"id": i, "code": code_of(i), "n": i} for i in range(BLOCKS * ROWS)])
    made.create_index("by_code", "bloom", ["code"], fpp=0.0001)
    return made


@contextmanager
def only_blocks(table: fuse.Table, ids: set[int]) -> Iterator[None]:
    """Nothing but the blocks with these ids can be opened meanwhile."""
    files = [Path(path) for path in table.refresh().stored.block_files()[0]]
    others = [file for number, file in enumerate(files) if number not in {id_ // ROWS for id_ in ids}]
    for file in others:
        file.rename(f"{file}.away")
    yield
    for file in others:
        Path(f"{file}.away").rename(file)


def merge(spark: SparkSession, table: fuse.Table, source: str, on: str, clauses: str) -> None:
    name = f"fuse.`{table.stored.store.url}`"
    spark.sql(f"MERGE INTO {name} t USING ({source}) s ON {on} {clauses}")


def found(table: fuse.Table) -> dict[int, tuple[Any, ...]]:
    check_invariants(table.refresh().stored)
    rows = table.refresh().scan().to_arrow().to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: (row["code"], row["n"]) for row in rows}


def untouched() -> dict[int, tuple[Any, ...]]:
    return {i: (code_of(i), i) for i in range(BLOCKS * ROWS)}


NEW = "SELECT * FROM VALUES (7L, 'c39', -1), (8L, 'c16', -2), (100L, 'c100', -3), (NULL, NULL, -4) AS v(id, code, n)"
VALUES = f"{NEW} WHERE id IS NOT NULL"
EVALUATED = f"SELECT id, code, max(n) AS n FROM ({NEW}) WHERE id IS NOT NULL GROUP BY id, code"


@pytest.mark.every_spark
@pytest.mark.parametrize(
    ("source", "on", "clauses"),
    [
        (VALUES, "s.code = t.code AND t.id = s.id AND t.n >= 0", UPDATE),
        (EVALUATED, "t.code = s.code", UPSERT),
        (EVALUATED, "t.id = s.id", INSERT),
    ],
)
def test_only_blocks_that_may_hold_a_key_are_read_and_rewritten(
    sql_spark: SparkSession, table: fuse.Table, source: str, on: str, clauses: str
) -> None:
    before = set(table.stored.blocks().ids)
    with only_blocks(table, {7, 8}):
        merge(sql_spark, table, source, on, clauses)

    expected = untouched()
    assert (code_of(7), code_of(8)) == ("c39", "c16")
    expected |= {7: ("c39", -1), 8: ("c16", -2)} if "MATCHED THEN UPDATE" in clauses else {}
    expected |= {100: ("c100", -3)} if "INSERT" in clauses else {}
    assert found(table) == expected
    after = set(table.refresh().stored.blocks().ids)
    assert (len(before - after), len(after - before)) == {UPSERT: (1, 2), UPDATE: (1, 1), INSERT: (0, 1)}[clauses]


@pytest.mark.parametrize(
    ("source", "on"),
    [
        ("SELECT CAST(NULL AS BIGINT) AS id, 'none' AS code, 0 AS n", "t.id = s.id"),
        ("SELECT CAST(id AS DECIMAL(20)) AS id, 'none' AS code, 0 AS n FROM range(200, 203)", "t.id = s.id"),
    ],
)
def test_a_source_without_a_key_that_the_table_has_opens_no_block(
    sql_spark: SparkSession, table: fuse.Table, source: str, on: str
) -> None:
    with only_blocks(table, set()):
        merge(sql_spark, table, source, on, UPDATE)
    assert found(table) == untouched()


def test_beyond_so_many_keys_their_bounds_are_asked_about(sql_spark: SparkSession, table: fuse.Table) -> None:
    source = "SELECT id + 35 AS id, CAST(id AS STRING) AS code, -1 AS n FROM range(10100)"
    with only_blocks(table, set(range(35, 40))):
        merge(sql_spark, table, source, "t.id = s.id", "WHEN MATCHED THEN UPDATE SET n = -1")

    assert found(table) == {i: (code, n if i < 35 else -1) for i, (code, n) in untouched().items()}


def test_rows_without_a_source_are_looked_for_everywhere(sql_spark: SparkSession, table: fuse.Table) -> None:
    merge(sql_spark, table, VALUES, "t.id = s.id", f"{UPSERT} WHEN NOT MATCHED BY SOURCE THEN DELETE")

    assert found(table) == {7: ("c39", -1), 8: ("c16", -2), 100: ("c100", -3)}


def test_what_is_random_in_a_source_is_the_same_to_its_keys_and_to_the_join(
    sql_spark: SparkSession, table: fuse.Table
) -> None:
    random_ = random.Random(4)
    sql_spark.udf.register("any_of", lambda _: random_.randrange(BLOCKS * ROWS), "bigint")
    source = "SELECT any_of(id) AS id, 'x' AS code, -1 AS n FROM range(1)"
    merge(sql_spark, table, source, "t.id = s.id", UPSERT)

    assert sorted(n for _, n in found(table).values()).count(-1) == 1
    assert len(found(table)) == BLOCKS * ROWS


# --- what others do meanwhile ------------------------------------------------------------------------------------


def change_during(spark: SparkSession, table: fuse.Table, folder: Path, row: dict[str, Any]) -> None:
    """Make ``meanwhile(id)`` a function, true of each row, by which a row is added while a statement runs it."""
    url, done = table.stored.store.url, folder / "done"

    def is_true(_: int) -> bool:
        try:
            done.mkdir()
        except FileExistsError:
            return True
        fuse.open_table(url).append([row])
        return True

    spark.udf.register("meanwhile", is_true, "boolean")


SLOW = "SELECT id + 7 AS id, 'c16' AS code, -1 AS n FROM range(1) WHERE meanwhile(id)"


@pytest.mark.parametrize("clauses", [UPSERT, INSERT], ids=["upsert", "insert"])
def test_rows_that_it_cannot_match_may_be_added_meanwhile(
    sql_spark: SparkSession, table: fuse.Table, tmp_path: Path, clauses: str
) -> None:
    change_during(sql_spark, table, tmp_path, {"id": 100, "code": "c16", "n": 100})
    merge(sql_spark, table, SLOW, "t.id = s.id", clauses)

    changed = {} if clauses == INSERT else {7: (code_of(7), -1)}
    assert found(table) == untouched() | changed | {100: ("c16", 100)}


@pytest.mark.parametrize(
    ("on", "clauses"),
    [
        ("t.id = s.id", INSERT),
        ("t.code = s.code AND t.n < 1000", UPDATE),
        ("t.id < s.id - 2", "WHEN MATCHED THEN UPDATE SET n = s.n"),
        ("t.id = s.id", "WHEN NOT MATCHED BY SOURCE AND t.n < 0 THEN DELETE"),
    ],
)
def test_rows_that_it_would_have_matched_are_a_conflict(
    sql_spark: SparkSession, table: fuse.Table, tmp_path: Path, on: str, clauses: str
) -> None:
    change_during(sql_spark, table, tmp_path, {"id": 4 if "<" in on else 7, "code": "c16", "n": -5})
    with pytest.raises(AnalysisException, match=r"FUSE_CONFLICT. rows that this merge has not seen"):
        merge(sql_spark, table, SLOW, on, clauses)

    assert sorted(table.refresh().scan().to_arrow()["n"].to_pylist()) == [-5, *range(BLOCKS * ROWS)]


def test_a_source_that_reads_the_table_itself_minds_every_row(
    sql_spark: SparkSession, table: fuse.Table, tmp_path: Path
) -> None:
    change_during(sql_spark, table, tmp_path, {"id": 100, "code": "c16", "n": 100})
    own = f"SELECT max(id) - 32 AS id, 'c16' AS code, -1 AS n FROM fuse.`{table.stored.store.url}`"
    with pytest.raises(AnalysisException, match=r"FUSE_CONFLICT. rows that this merge has not seen"):
        merge(sql_spark, table, f"SELECT * FROM ({own}) WHERE meanwhile(id)", "t.id = s.id", UPDATE)


def test_keys_may_be_days_that_java_cannot_hold(sql_spark: SparkSession, tmp_path: Path) -> None:
    """A day of the year -5,877,641, which DuckDB has as ``-infinity``."""
    days = pa.array([-(2**31) + 1, 2**31 - 1, 0], pa.int32()).cast(pa.date32())
    table = fuse.create_table(tmp_path / "t", "day DATE, n INT")
    table.append(pa.table({"day": days, "n": pa.array([0, 1, 2], pa.int32())}))
    table.clone(tmp_path / "source")
    name, source = f"fuse.`{tmp_path}/t`", f"fuse.`{tmp_path}/source`"

    sql_spark.sql(
        f"MERGE INTO {name} t USING {source} s ON t.day = s.day WHEN MATCHED THEN UPDATE SET n = s.n + 10"
    ).collect()
    assert sorted(table.refresh().to_arrow(columns=["n"]).column("n").to_pylist()) == [10, 11, 12]
    for rows_at_once in ("0", "1000000"):
        sql_spark.conf.set("spark.fuse.index.rows.maxBytes", rows_at_once)
        found = sql_spark.sql(f"SELECT n FROM {name} WHERE day IN (DATE'-5877641-06-24', DATE'1970-01-01')").collect()
        assert sorted(row.n for row in found) == [10, 12]
    sql_spark.conf.unset("spark.fuse.index.rows.maxBytes")
