"""Rows changed by all executors are changed as by one process: a clone of the table is changed locally, and
compared.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from fuse_index.spark.jobs.merge import MergeSource
from fuse_storage.testing import check_invariants

BLOCKS, ROWS = 12, 50


@pytest.fixture
def table(tmp_path: Path) -> fuse.Table:
    properties = {"block_rows": ROWS, "delete_mode": "merge-on-read"}  # most change more of a block than it allows
    columns = "id BIGINT, kind STRING, at TIMESTAMP"
    made = fuse.create_table(str(tmp_path / "t"), columns, properties=properties, key=["id"])
    made.create_index("by_kind", "bloom", ["kind"])
    ids = range(BLOCKS * ROWS)
    at = pa.array([row_id * 3_600_000_000 for row_id in ids], pa.timestamp("us", "UTC"))
    made.append(pa.table({"id": list(ids), "kind": [f"k{row_id % 7}" for row_id in ids], "at": at}))
    return made


def rows(table: fuse.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.refresh().scan().to_arrow().to_pylist()]


def source(spark: SparkSession) -> DataFrame:
    return spark.range(590, 650, 1, 3).selectExpr("id", "concat('new', id) AS kind")


def few(spark: SparkSession) -> DataFrame:
    return source(spark).selectExpr("*", "TIMESTAMP'2026-01-01 00:00:00' AS at").where("id < 600")


def flagged(spark: SparkSession) -> DataFrame:
    return source(spark).selectExpr("*", "id % 3 = 0 AS gone")


CLAUSES = (
    {"delete": "source.gone", "update": "target.kind <> 'k3'"},
    {"insert": "NOT source.gone"},
    {"delete": "target.id < 70"},
)
WHERE, INSIDE = "kind <> 'k3' AND id > 300", "id BETWEEN 590 AND 599"
SET: dict[str, Any] = {"kind": "upper(kind)", "id": lambda found: found["id"]}
CHANGES: dict[str, tuple[Callable[[SparkSession, str], None], Callable[[SparkSession, fuse.Table], Any]]] = {
    "delete": (lambda spark, url: fuse_spark.delete(spark, url, WHERE), lambda spark, table: table.delete(WHERE)),
    "delete all": (
        lambda spark, url: fuse_spark.delete(spark, url, "id >= 0"),
        lambda spark, table: table.delete("id >= 0"),
    ),
    "update": (
        lambda spark, url: fuse_spark.update(spark, url, WHERE, SET),
        lambda spark, table: table.update(WHERE, SET),
    ),
    "merge": (
        lambda spark, url: fuse_spark.merge(spark, url, source(spark), ["id"]),
        lambda spark, table: table.merge(source(spark).toArrow(), ["id"]),
    ),
    "merge, and delete the others": (
        lambda spark, url: fuse_spark.merge(spark, url, source(spark), None, None, None, "delete"),
        lambda spark, table: table.merge(source(spark).toArrow(), ["id"], None, None, "delete"),
    ),
    "merge on conditions": (
        lambda spark, url: fuse_spark.merge(spark, url, flagged(spark), ["id"], *CLAUSES),
        lambda spark, table: table.merge(flagged(spark).toArrow(), ["id"], *CLAUSES),
    ),
    "merge that brings a column": (
        lambda spark, url: fuse_spark.merge(spark, url, flagged(spark), merge_schema=True),
        lambda spark, table: table.merge(flagged(spark).toArrow(), merge_schema=True),
    ),
    "merge of nothing": (
        lambda spark, url: fuse_spark.merge(spark, url, source(spark).where("id < 0 OR kind = 'new600'")),
        lambda spark, table: table.merge(source(spark).where("id < 0 OR kind = 'new600'").toArrow()),
    ),
    "overwrite that brings a column and lacks one": (
        lambda spark, url: fuse_spark.overwrite(spark, url, flagged(spark).drop("kind"), merge_schema=True),
        lambda spark, table: table.overwrite(flagged(spark).drop("kind").toArrow(), merge_schema=True),
    ),
    "overwrite": (
        lambda spark, url: fuse_spark.overwrite(spark, url, few(spark), INSIDE),
        lambda spark, table: table.overwrite(few(spark).toArrow(), INSIDE),
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_executors_change_what_one_process_would(
    spark: SparkSession, table: fuse.Table, tmp_path: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fuse_index.spark.jobs.merge.MAX_ROWS_IN_TASKS", 0)
    copy = table.clone(str(tmp_path / "copy"))
    by_all, by_one = CHANGES[change]

    by_all(spark, table.stored.store.url)
    by_one(spark, copy)

    if change == "merge":
        assert [each.refresh().stored.blocks().has_deleted_rows for each in (table, copy)] == [True, True]
    if "merge" in change:  # the rows that it adds come in no order
        assert sorted(rows(table), key=repr) == sorted(rows(copy), key=repr)
    else:
        assert rows(table) == rows(copy)
    counts = {name: count for name, count in table.snapshot.summary.items() if name.endswith("_rows")}
    assert counts == {name: count for name, count in copy.snapshot.summary.items() if name.endswith("_rows")}
    assert table.snapshot.sequence == 4
    assert table.maintenance.verify_index("by_kind").sound
    check_invariants(table.stored)


def test_a_merge_whose_rows_were_moved_meanwhile_finds_them_again(
    spark: SparkSession, table: fuse.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fuse_index.spark.jobs.merge.MAX_ROWS_IN_TASKS", 0)
    for start in (600, 605):
        table.append([{"id": row_id, "kind": "small", "at": None} for row_id in range(start, start + 5)])
    copy, real, runs = table.clone(str(tmp_path / "copy")), MergeSource.run, list[int]()

    def run(source: MergeSource, *given: Any) -> Any:
        written = real(source, *given)
        if not runs:
            fuse.open_table(table.stored.store.url).maintenance.compact()
        runs.append(len(runs))
        return written

    monkeypatch.setattr(MergeSource, "run", run)
    CHANGES["merge"][0](spark, table.stored.store.url)
    CHANGES["merge"][1](spark, copy)

    assert runs == [0, 1]
    assert sorted(rows(table), key=repr) == sorted(rows(copy), key=repr)
    assert table.history().column("operation").to_pylist()[:2] == ["merge", "compact"]


@pytest.mark.parametrize("change", ["merge", "merge on conditions"])
def test_a_small_source_is_handed_to_the_tasks(
    spark: SparkSession, table: fuse.Table, tmp_path: Path, change: str
) -> None:
    copy = table.clone(str(tmp_path / "copy"))
    by_all, by_one = CHANGES[change]

    by_all(spark, table.stored.store.url)
    by_one(spark, copy)

    assert rows(table) == rows(copy)


def test_a_source_that_is_larger_than_its_keys_can_be_listed_stays_where_it_is(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = str(tmp_path / "wide")
    table = fuse.create_table(url, "id BIGINT, at TIMESTAMP, n INT", properties={"block_rows": 3000}, key=["id", "at"])
    ids = list(range(30_000))
    at = pa.array([row_id * 1_000_000 for row_id in ids], pa.timestamp("us", "UTC"))
    table.append(pa.table({"id": ids, "at": at, "n": pa.array([0] * len(ids), pa.int32())}))
    monkeypatch.setattr(type(spark.range(1)), "toArrow", few_rows_only(type(spark.range(1)).toArrow))

    large = "id", "timestamp_seconds(IF(id % 5 = 0, NULL, id)) at", "CAST(rand() * 100 AS INT) + 1 n"
    fuse_spark.merge(spark, url, spark.range(9_000, 33_000).selectExpr(*large), matched={"update": "source.id < 24000"})

    changed = [row_id for row_id in range(9_000, 24_000) if row_id % 5]
    assert table.refresh().scan("n > 0 AND at IS NOT NULL AND id < 30000").count() == len(changed)
    assert table.scan("at IS NULL").count() == 4_800
    assert table.scan("id >= 30000 AND at IS NOT NULL").count() == 2_400
    assert table.snapshot.row_count == 30_000 + 4_800 + 2_400
    assert table.snapshot.summary["updated_rows"] == len(changed)
    check_invariants(table.stored)


def few_rows_only(real: Callable[..., pa.Table]) -> Callable[..., pa.Table]:
    def to_arrow(rows: DataFrame) -> pa.Table:
        found = real(rows)
        assert found.num_rows <= 10_001
        return found

    return to_arrow


@pytest.mark.parametrize(
    ("query", "error", "says"),
    [
        (
            "SELECT * FROM VALUES (1L, 'a'), (1L, 'b') AS s(id, kind)",
            fuse.InputError,
            "several rows of the source match",
        ),
        ("SELECT 1L id, 'a' kinds", fuse.SchemaError, "'kinds' that the table lacks: did you mean 'kind'"),
        ("SELECT 'x' kind", fuse.InputError, "the source lacks column 'id'"),
        ("SELECT 1.5D id, 'x' kind", fuse.SchemaError, "column 'id' is int64, and the rows have double"),
    ],
)
def test_a_source_that_does_not_fit_is_refused(
    spark: SparkSession, table: fuse.Table, query: str, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        fuse_spark.merge(spark, table.stored.store.url, spark.sql(query))

    assert table.refresh().snapshot.sequence == 3


def test_small_blocks_are_joined_by_executors(spark: SparkSession, tmp_path: Path) -> None:
    url = str(tmp_path / "small")
    table = fuse.create_table(url, "id BIGINT, kind STRING", properties={"block_rows": ROWS})
    table.create_index("by_kind", "bloom", ["kind"])
    for start in range(0, 200, 10):
        table.append(
            pa.table(
                {
                    "id": list(range(start, start + 10)),
                    "kind": [f"k{row_id % 7}" for row_id in range(start, start + 10)],
                }
            )
        )
    copy = table.clone(str(tmp_path / "copy"))

    fuse_spark.compact(spark, url)
    copy.maintenance.compact()

    assert [row[0] for row in rows(table)] == list(range(200))
    assert table.stored.blocks().row_counts.tolist() == copy.stored.blocks().row_counts.tolist() == [50] * 4
    assert table.maintenance.verify_index("by_kind").sound
    before = table.snapshot.sequence
    fuse_spark.compact(spark, url)
    assert table.refresh().snapshot.sequence == before
    check_invariants(table.stored)


def test_blocks_that_overlap_are_sorted_apart_by_executors(
    spark: SparkSession, table: fuse.Table, tmp_path: Path
) -> None:
    table.cluster_by(["kind", "id"])
    copy = table.clone(str(tmp_path / "copy"))
    copy.maintenance.recluster(depth=1, step_blocks=6)
    before, steps, commits = sorted(rows(table)), [], table.snapshot.sequence

    fuse_spark.recluster(spark, table.stored.store.url, depth=1, step_blocks=6, progress=steps.append)

    assert sorted(rows(table)) == before
    assert table.inspect.clustering().average_depth == copy.inspect.clustering().average_depth < 3
    assert [step.number for step in steps] == list(range(1, len(steps) + 1))
    assert table.snapshot.sequence - commits < len(steps)
    assert table.maintenance.verify_index("by_kind").sound
    check_invariants(table.stored)
    with pytest.raises(fuse.InputError, match="depth=0"):
        fuse_spark.recluster(spark, table.stored.store.url, depth=0)


def test_a_condition_means_what_it_means_in_the_session(spark: SparkSession, table: fuse.Table) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        fuse_spark.delete(spark, table.stored.store.url, "at < TIMESTAMP '1970-01-02 00:00:00'")
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)

    assert rows(table)[0][0] == 15


def test_what_cannot_be_done_is_refused_by_name_and_changes_nothing(spark: SparkSession, table: fuse.Table) -> None:
    url, twice = table.stored.store.url, source(spark).union(source(spark))
    with pytest.raises(fuse.OpaqueError, match="rand"):
        fuse_spark.delete(spark, url, "rand() < 0.5")
    with pytest.raises(fuse.InputError, match="several rows of the source match"):
        fuse_spark.merge(spark, url, twice, ["id"])
    with pytest.raises(fuse.InputError, match="the condition is not true on"):
        fuse_spark.overwrite(spark, url, source(spark).selectExpr("*", "now() AS at"), "id < 600")
    with pytest.raises(fuse.NotFound):
        fuse_spark.delete(spark, f"{url}x", "id = 1")
    for wrong in (
        lambda: fuse_spark.delete(spark, url, 3),
        lambda: fuse_spark.merge(spark, url, [{"id": 1}], ["id"]),
        lambda: fuse_spark.merge(spark, url, source(spark), "id"),
        lambda: fuse_spark.recluster(spark, url, "deep"),
        lambda: fuse_spark.compact(url, spark),
        lambda: fuse_spark.read(spark, url, at=1.5),
        lambda: fuse_spark.write(3, url),
    ):
        with pytest.raises(fuse.InputError, match="give a "):
            wrong()
    fuse_spark.delete(spark, url, "id = -1")

    assert table.refresh().snapshot.sequence == 3


def test_a_commit_that_is_done_twice_is_one(table: fuse.Table) -> None:
    job, again = table.deleting("id < 75", pieces=4), table.deleting("id < 75", pieces=4)
    outcomes = [job.run(task) for task in job.plan_tasks()]
    again.plan_tasks()
    again.commit_id = job.commit_id

    job.commit(outcomes)
    again.commit(outcomes)

    assert job.table.snapshot.sequence == 4
    assert again.table.snapshot.sequence == 4


def test_rows_are_overwritten_whatever_columns_are_called(spark: SparkSession, tmp_path: Path) -> None:
    table = fuse.create_table(str(tmp_path / "odd"), "a STRUCT<b: INT>, `a.b` INT, `c``d` STRING")
    table.append([{"a": {"b": 1}, "a.b": 2, "c`d": "old"}])

    fuse_spark.overwrite(
        spark, str(tmp_path / "odd"), spark.sql("SELECT struct(3 AS b) AS a, 4 AS `a.b`, 'new' AS `c``d`"), "`a.b` > 1"
    )

    assert table.refresh().scan().to_arrow().to_pylist() == [{"a": {"b": 3}, "a.b": 4, "c`d": "new"}]


def test_a_value_that_does_not_fit_is_refused_as_by_the_table_itself(spark: SparkSession, tmp_path: Path) -> None:
    table = fuse.create_table(str(tmp_path / "strict"), "id BIGINT, kind STRING NOT NULL", key=["id"])
    source = "SELECT 1L id, if(id > 0, NULL, 'a') kind FROM range(2)"

    with pytest.raises(fuse.SchemaError) as alone:
        table.merge([{"id": 1, "kind": None}])
    with pytest.raises(fuse.SchemaError) as in_tasks:
        fuse_spark.merge(spark, table.stored.store.url, spark.sql(source))

    assert in_tasks.value.args == alone.value.args
    assert table.refresh().snapshot.row_count == 0
