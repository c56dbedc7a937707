"""Clustered writes and distributed index builds, on a classic session."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from fuse_index import create_table, open_table
from fuse_index.errors import BuildError, DefinitionError
from fuse_index.indexes.plugins import load_plugin
from fuse_index.indexes.registry import Host, PluginWarning
from fuse_index.operations.build_index import run_build_task_in_worker
from fuse_index.spark.answers import Sealed
from fuse_index.spark.jobs import write
from fuse_index.spark.placement import run_as_tasks
from fuse_index.spark.source import data_source
from fuse_index.spark.source.batch_writer import BatchWriter
from fuse_index.spark.source.options import OptionError
from fuse_index.spark.source.write_target import HeapTarget
from fuse_index.table.indexes import plan_index_tasks
from fuse_storage import NotFound
from fuse_storage.testing import check_invariants
from tests.index.strangers import ACME

SCHEMA = pa.schema({"id": pa.int64(), "s": pa.string()})


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    data_source.register_source(spark)
    return spark


@pytest.fixture
def url(tmp_path: Path) -> str:
    return str(tmp_path / "table")


def shuffled(session: SparkSession, rows: int = 10_000) -> DataFrame:
    return session.range(0, rows, 1, 3).selectExpr(f"id * 7919 % {rows} AS id", "concat('s', id) AS s")


def row_counts(url: str) -> list[int]:
    return open_table(url).stored.blocks().row_counts.tolist()


@pytest.mark.every_spark
def test_rows_are_kept_together_by_the_cluster_key(session: SparkSession, url: str) -> None:
    create_table(url, SCHEMA, cluster_by=["id"], properties={"block_rows": 1000})
    write.write(shuffled(session), url)
    table = open_table(url)

    assert sorted(table.scan().to_arrow().column("id").to_pylist()) == list(range(10_000))
    assert table.explain("id = 5000").to_dict()["blocks"]["kept"] == 1
    assert (
        table.explain("id BETWEEN 0 AND 4999").to_dict()["blocks"]["kept"] <= 8
    )  # of 12: ranges, not samples, are exact


def test_along_a_curve_each_task_sorts_its_rows(session: SparkSession, url: str) -> None:
    create_table(url, SCHEMA, cluster_by=["id", "s"], properties={"block_rows": 1000, "cluster_method": "hilbert"})
    write.write(shuffled(session), url)

    assert sorted(open_table(url).scan().to_arrow().column("id").to_pylist()) == list(range(10_000))
    assert open_table(url).inspect.clustering().average_depth < 7  # 10 blocks, unsorted all of them


def test_blocks_are_sized_to_the_tables_property(session: SparkSession, url: str) -> None:
    create_table(url, SCHEMA, cluster_by=["id"], properties={"block_rows": 1000})
    write.write(shuffled(session), url)

    assert max(row_counts(url)) <= 1000
    assert len(row_counts(url)) <= 16  # 10 would be perfect; ranges are sampled


def test_one_write_is_one_commit(session: SparkSession, url: str) -> None:
    create_table(url, SCHEMA, cluster_by=["s", "id"], properties={"block_rows": 1000})
    write.write(shuffled(session), url)

    assert open_table(url).history().column("operation").to_pylist() == ["append", "create"]
    check_invariants(open_table(url).stored)


def test_without_a_cluster_key_small_partitions_are_merged(session: SparkSession, url: str) -> None:
    create_table(url, SCHEMA, properties={"block_rows": 5000})
    write.write(shuffled(session).repartition(20), url)

    assert row_counts(url) == [5000, 5000]


def test_a_table_that_is_not_there_is_created(session: SparkSession, url: str) -> None:
    write.write(shuffled(session, 10), url)

    assert open_table(url).scan().count() == 10


def test_another_session_writes_too(session: SparkSession, url: str) -> None:
    """Though Spark looks for the source of a write in the active session."""
    other = session.newSession()
    other.sql("CREATE TEMPORARY VIEW here AS SELECT 1L AS id, 'x' AS s")
    data_source.register_source(other)
    write.write(other.table("here"), url)

    assert open_table(url).scan().count() == 1


def test_rows_lack_the_cluster_key_or_bring_columns(session: SparkSession, url: str) -> None:
    create_table(url, SCHEMA, cluster_by=["id"])

    write.write(session.sql("SELECT 'a' s"), url)
    write.write(session.sql("SELECT 1L id, 2 more"), url, merge_schema=True)

    rows = open_table(url).scan().to_arrow().to_pylist()
    assert rows == [{"id": None, "s": "a", "more": None}, {"id": 1, "s": None, "more": 2}]


def test_overwrite_replaces_all_rows(session: SparkSession, url: str) -> None:
    create_table(url, SCHEMA, cluster_by=["id"])
    write.write(shuffled(session, 10), url)
    write.write(shuffled(session, 5), url, "overwrite")

    assert sorted(open_table(url).scan().to_arrow().column("id").to_pylist()) == [0, 1, 2, 3, 4]


def test_no_rows_are_no_commit(session: SparkSession, url: str) -> None:
    create_table(url, SCHEMA, cluster_by=["id"])
    write.write(shuffled(session, 10).where("id < 0"), url)

    assert open_table(url).history().num_rows == 1


def test_cluster_keys_may_be_nested_and_oddly_named(session: SparkSession, url: str) -> None:
    point = pa.struct({"x": pa.int64()})
    create_table(
        url, pa.schema({"a.b c": pa.int64(), "p": point}), cluster_by=["p.x", "a.b c"], properties={"block_rows": 10}
    )
    write.write(session.range(40).selectExpr("id AS `a.b c`", "named_struct('x', 39 - id) AS p"), url)

    assert open_table(url).explain("p.x = 3").to_dict()["blocks"]["kept"] == 1


def test_options_are_checked_before_anything_is_counted(session: SparkSession, url: str) -> None:
    with pytest.raises(OptionError, match="lives in one process"):
        write.write(shuffled(session, 10), "memory://here")
    with pytest.raises(NotFound, match="nothing"):
        write.build_index(session, url, "by_s")


@pytest.fixture
def unbuilt(session: SparkSession, url: str) -> str:
    """Twenty blocks, in several segments, and an index that knows none of them."""
    table = create_table(url, SCHEMA, properties={"block_rows": 500})
    for start in (0, 5000):
        table.append(
            pa.table({"id": range(start, start + 5000), "s": [f"s{number}" for number in range(start, start + 5000)]})
        )
    table.create_index("by_s", "bloom", ["s"], build=False)
    return url


def coverage(url: str, name: str = "by_s") -> tuple[int, int]:
    (row,) = [row for row in open_table(url).inspect.indexes().to_pylist() if row["name"] == name]
    return row["blocks_indexed"], row["blocks"]


def kept(url: str) -> int:
    return int(open_table(url).explain("s = 's777'").to_dict()["blocks"]["kept"])


@pytest.mark.every_spark
def test_an_index_is_built_by_tasks(session: SparkSession, unbuilt: str) -> None:
    assert coverage(unbuilt) == (0, 20)
    assert kept(unbuilt) > 1
    write.build_index(session, unbuilt, "by_s")

    assert (coverage(unbuilt), kept(unbuilt)) == ((20, 20), 1)
    assert open_table(unbuilt).maintenance.verify_index("by_s").sound
    assert open_table(unbuilt).scan("s = 's777'").to_arrow().column("id").to_pylist() == [777]
    check_invariants(open_table(unbuilt).stored)


def test_building_again_finds_nothing_to_do(session: SparkSession, unbuilt: str) -> None:
    write.build_index(session, unbuilt, "by_s")
    before = open_table(unbuilt).snapshot.id
    write.build_index(session, unbuilt, "by_s")

    assert open_table(unbuilt).snapshot.id == before


def test_only_what_is_missing_is_built(session: SparkSession, unbuilt: str) -> None:
    write.build_index(session, unbuilt, "by_s")
    table = open_table(unbuilt)
    writing = table.stored.writer()  # as one without the plugin writes
    writing.write(pa.table({"id": [1], "s": ["late"]}))
    table.stored.transaction().append(writing.finish()).commit("append")
    assert coverage(unbuilt) == (20, 21)
    write.build_index(session, unbuilt, "by_s")

    assert coverage(unbuilt) == (21, 21)
    assert open_table(unbuilt).snapshot.summary["indexed_blocks"] == 1


@pytest.fixture
def planned_only_here(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """A table with an index whose plugin the driver has, and the workers have not."""
    monkeypatch.syspath_prepend(ACME)  # of this process: workers begin with what was on the path when Spark started
    host = Host([load_plugin("acme_index", "acme-index", "0.1")])
    table = create_table(url, SCHEMA, properties={"block_rows": 1000}, host=host)
    table.append(pa.table({"id": [1, 2], "s": ["a", "b"]}))
    table.create_index("rest", "remainder", ["id"], build=False)
    yield host
    sys.modules.pop("acme_index", None)


@pytest.mark.every_spark
def test_executors_that_lack_a_plugin_are_named_by_a_build(
    session: SparkSession, url: str, planned_only_here: Host
) -> None:
    with pytest.raises(BuildError, match=r"'remainder' cannot be loaded .* install acme-index 0.1 on every executor"):
        write.build_index(session, url, "rest", host=planned_only_here)


def test_executors_that_lack_a_plugin_write_rows_and_say_what_they_did_not_index(
    session: SparkSession, url: str, planned_only_here: Host
) -> None:
    table = open_table(url, host=planned_only_here)
    batch_writer = BatchWriter(HeapTarget(table.stored, ("id", "s")), table.host, False)
    rows = [pa.record_batch({"id": [start], "s": ["new"]}, SCHEMA) for start in (3, 4)]

    sealed = run_as_tasks(session, lambda number: Sealed(batch_writer.write(iter([rows[number]]))), [0, 1])
    with pytest.warns(PluginWarning, match=r"'rest' does not know 2 of the blocks .* install acme-index 0.1"):
        batch_writer.commit([message.open() for message in sealed])

    after = open_table(url, host=planned_only_here)
    assert after.snapshot.summary["unindexed_blocks"] == {"rest": 2}
    assert after.scan("id >= 3").count() == 2


def test_a_rebuild_builds_every_block_anew(session: SparkSession, unbuilt: str) -> None:
    write.build_index(session, unbuilt, "by_s")
    write.build_index(session, unbuilt, "by_s", rebuild=True)

    assert open_table(unbuilt).snapshot.summary["indexed_blocks"] == 20
    assert (coverage(unbuilt), kept(unbuilt)) == ((20, 20), 1)


def test_rows_that_arrive_during_a_build_are_kept(session: SparkSession, unbuilt: str) -> None:
    work = plan_index_tasks(open_table(unbuilt), "by_s", processes=2)
    open_table(unbuilt).append(pa.table({"id": [1], "s": ["late"]}))
    results = run_as_tasks(session, lambda task: Sealed(run_build_task_in_worker(task)), work)
    write._commit_index(Sealed(work[0]), results, begins=True)

    assert coverage(unbuilt) == (21, 21)
    assert open_table(unbuilt).scan().count() == 10_001


def test_an_unknown_index_is_refused_by_name(session: SparkSession, unbuilt: str) -> None:
    with pytest.raises(DefinitionError, match="no index 'by_z'"):
        write.build_index(session, unbuilt, "by_z")
