"""Indexes through their lives: created, refreshed, interrupted, rebuilt, damaged, verified, dropped."""

import multiprocessing
import os

import pyarrow as pa
import pytest

import fuse_index as fuse
from fuse_index.errors import BuildError, DefinitionError, IndexFault
from fuse_index.indexes.builder import IndexBuilder
from fuse_index.indexes.definition import load_definitions
from fuse_index.indexes.plugins import Plugin
from fuse_index.indexes.registry import Host, PluginWarning
from fuse_index.operations import build_index
from fuse_plugins import min_max
from tests.index.kinds import FAILING, Raises, Values
from tests.index.tables import counted, coverage, created, numbers, read_blocks


def test_an_index_is_built_when_it_is_created():
    table = created()
    table.append(numbers())

    table.create_index("x", "values", ["n"])

    assert coverage(table) == (4, 4)
    assert table.explain("n = 7").blocks.kept == 1


def test_an_index_may_be_defined_now_and_built_later():
    table = created()
    table.append(numbers())

    table.create_index("x", "values", ["n"], build=False)

    assert coverage(table) == (0, 4)
    assert [vote.reason for vote in table.explain("n = 7").votes if vote.index == "x"] == ["BLOCK_NOT_INDEXED"]
    table.maintenance.refresh_index("x")
    assert coverage(table) == (4, 4)


def test_new_blocks_are_indexed_as_they_are_written():
    table = created()
    table.create_index("x", "values", ["n"])

    table.append(numbers())

    assert coverage(table) == (4, 4)


def test_a_refresh_touches_only_the_blocks_that_lack_the_index():
    table = created()
    table.append(numbers())
    table.create_index("x", "values", ["n"])
    old = set(table.inspect.blocks().column("location").to_pylist())
    without = fuse.Table(table.stored, Host([min_max]))
    without.append(numbers(100))
    seen: list[tuple[int, int]] = []
    opened, store = counted(table)

    opened.maintenance.refresh_index("x", progress=lambda done, total: seen.append((done, total)))

    assert read_blocks(store) == set(opened.inspect.blocks().column("location").to_pylist()) - old
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert coverage(opened) == (8, 8)


class FailsLate(Values):
    name = "fails_late"

    def build(self, rows, zones, options):
        if "t700" in rows.column(0).to_pylist():
            raise ValueError("too late")
        return super().build(rows, zones, options)


def test_a_handle_ends_where_its_last_commit_led():
    table = created(None, FailsLate)
    table.append(numbers(0, 640))
    table.append(pa.table({"n": range(5), "text": ["t700"] * 5}))
    table.create_index("x", "fails_late", ["text"], build=False)
    (definition,) = load_definitions(table.snapshot, table.host)

    with pytest.warns(PluginWarning, match="too late"):
        last = build_index.run_build_tasks(
            table.stored, build_index.plan_refresh(table.stored, definition, table.host), commit_seconds=0.0
        )

    built = last.at_version(last.snapshot.version - 1)  # the last commit has on record that a block was not built
    assert built.snapshot.summary["indexed_blocks"] == 64
    assert "too late" in str(last.snapshot.summary["failed"])
    assert last.snapshot == table.refresh().snapshot
    assert coverage(table) == (64, 65)


def test_a_refresh_of_what_is_complete_reads_no_block_and_commits_nothing():
    table = created()
    table.append(numbers())
    table.create_index("x", "values", ["n"])
    opened, store = counted(table)

    assert opened.maintenance.refresh_index() == table.snapshot
    assert read_blocks(store) == set()


def test_a_build_reads_only_the_columns_it_needs():
    table = created()
    table.append(pa.table({"n": range(40), "text": ["x" * 10_000 + str(n) for n in range(40)]}))
    opened, store = counted(table)

    opened.create_index("x", "values", ["n"])

    assert sum(size for _, key, size in store.reads if key.startswith("_b/")) < 20_000


def test_several_processes_build_what_one_does(tmp_path):
    tables = [created(str(tmp_path / name)) for name in ("one", "two")]
    for table, processes in zip(tables, (1, 2), strict=True):
        table.append(numbers(0, 200))
        table.create_index("by_text", "bloom", ["text"], build=False)
        table.maintenance.refresh_index("by_text", processes=processes)

    one, two = (table.explain("text = 't17'").to_dict() for table in tables)
    assert one["blocks"] == two["blocks"] == {"total": 20, "kept": 1}
    assert coverage(tables[1], "by_text") == (20, 20)


def test_processes_report_what_failed_in_them(tmp_path):
    table = created(str(tmp_path / "t"), Raises)
    table.append(numbers())
    table.create_index("x", "raises", ["n"], build=False)

    with pytest.warns(
        PluginWarning, match="failed in build.. on block [0-9a-f]{32}, unindexed for now: ValueError: no such luck"
    ):
        table.maintenance.refresh_index("x", processes=2)


class Dies(Values):
    name = "dies"

    def build(self, rows, zones, options):
        if multiprocessing.parent_process() is not None:
            os._exit(9)
        return super().build(rows, zones, options)


def test_a_process_that_dies_is_an_error_that_says_what_to_do(tmp_path):
    table = created(str(tmp_path / "t"), Dies)
    table.append(numbers())
    table.create_index("x", "dies", ["n"], build=False)

    with pytest.raises(
        BuildError, match=r"a process that built index 'x' died.*refresh the index with fewer processes"
    ):
        table.maintenance.refresh_index("x", processes=2)


class Interrupted(Values):
    name = "interrupted"
    left = 0

    def build(self, rows, zones, options):
        if type(self).left == 0:
            raise KeyboardInterrupt
        type(self).left -= 1
        return super().build(rows, zones, options)


@pytest.mark.parametrize("commit_seconds", [0.0, 100.0])
def test_an_interrupted_build_keeps_what_it_has_done(commit_seconds):
    Interrupted.left = 100
    table = created(None, Interrupted)
    table.append(numbers(0, 1300))
    table.create_index("x", "interrupted", ["n"], build=False)
    (definition,) = load_definitions(table.snapshot, table.host)

    with pytest.raises(KeyboardInterrupt):
        build_index.run_build_tasks(
            table.stored, build_index.plan_refresh(table.stored, definition, table.host), commit_seconds=commit_seconds
        )

    assert coverage(table.refresh()) == (64, 130)
    Interrupted.left = 66
    table.maintenance.refresh_index("x")
    assert coverage(table) == (130, 130)


def test_work_is_cut_so_that_every_process_has_some_and_packs_hold_many_blocks():
    table = created()
    table.append(numbers(0, 2000))
    table.create_index("x", "values", ["n"], build=False)
    (definition,) = load_definitions(table.snapshot, table.host)
    builder = IndexBuilder.for_definition(definition, table.host)
    lacking = build_index.unindexed_blocks(table.stored, builder)

    assert [task.block_count for task in build_index.split_into_tasks(table.stored, builder, lacking)] == [
        64,
        64,
        64,
        8,
    ]
    assert len(build_index.split_into_tasks(table.stored, builder, lacking, processes=16)) == 16
    table.maintenance.refresh_index("x")
    packs = {key for key in keys(table) if key.startswith("_i/")}
    assert len(packs) == 4


def keys(table: fuse.Table) -> list[str]:
    return [entry.key for entry in table.stored.store.list()]


def test_builds_go_together_with_appends_that_merge_segments():
    table = created()
    for start in range(0, 60, 10):
        table.append(numbers(start, 10))
    table.create_index("x", "values", ["n"], build=False)
    (definition,) = load_definitions(table.snapshot, table.host)
    builder = IndexBuilder.for_definition(definition, table.host)
    done = [
        build_index.run_build_task(task)
        for task in build_index.split_into_tasks(
            table.stored, builder, build_index.unindexed_blocks(table.stored, builder)
        )
    ]
    without = fuse.Table(table.stored, Host([min_max]))
    for start in range(60, 90, 10):
        without.append(numbers(start, 10))
    assert without.snapshot.segment_count < 9

    build_index.commit_build_results(builder, table.stored, done)

    table.refresh()
    assert coverage(table) == (6, 9)
    assert [table.scan(f"n = {n}").count() for n in range(90)] == [1] * 90


def test_dropping_wins_over_a_build_that_is_under_way():
    table = created()
    table.append(numbers())
    table.create_index("x", "values", ["n"], build=False)
    (definition,) = load_definitions(table.snapshot, table.host)
    builder, before = IndexBuilder.for_definition(definition, table.host), table.stored
    done = [
        build_index.run_build_task(task)
        for task in build_index.split_into_tasks(before, builder, build_index.unindexed_blocks(before, builder))
    ]
    dropped = table.drop_index("x")

    assert build_index.commit_build_results(builder, before, done).snapshot == dropped


def test_a_drop_is_metadata_only():
    table = created()
    table.append(numbers())
    table.create_index("x", "values", ["n"])
    opened, store = counted(table)

    opened.drop_index("x")

    assert opened.inspect.indexes().num_rows == 0
    assert [key for _, key, _ in store.reads if key.startswith(("_b/", "_i/", "_x/"))] == []


def test_an_older_snapshot_keeps_the_index_that_was_dropped():
    table = created()
    table.append(numbers())
    then = table.create_index("x", "values", ["n"])
    table.drop_index("x")

    old = fuse.open_table(table.stored.store.url, at=then.id, host=table.host)

    assert coverage(old) == (4, 4)


def test_a_rebuild_builds_everything_again_under_the_same_key():
    table = created()
    table.append(numbers())
    table.create_index("x", "values", ["n"])
    before, packs = table.snapshot.definitions["x"], {key for key in keys(table) if key.startswith("_i/")}

    table.maintenance.rebuild_index("x")

    assert table.snapshot.definitions["x"] == before
    assert coverage(table) == (4, 4)
    assert len({key for key in keys(table) if key.startswith("_i/")} - packs) == 1


class Newer(Values):
    writes, reads = 2, frozenset({2})


def test_blocks_of_a_version_that_is_no_longer_read_are_indexed_anew():
    table = created(None, Plugin(Values, "acme"))
    table.append(numbers())
    table.create_index("x", "values", ["n"])
    upgraded = fuse.Table(table.stored, Host([min_max, Plugin(Newer, "acme")]))

    assert coverage(upgraded) == (0, 4)
    assert "refresh the index" in upgraded.inspect.indexes().column("problem")[0].as_py()
    assert upgraded.explain("n = 7").blocks.kept == 4
    upgraded.maintenance.refresh_index("x")
    assert coverage(upgraded) == (4, 4)
    assert upgraded.explain("n = 7").blocks.kept == 1


def test_a_rebuild_with_a_newer_kind_gets_a_new_key():
    table = created(None, Plugin(Values, "acme"))
    table.append(numbers())
    table.create_index("x", "values", ["n"])
    old = table.snapshot.definitions["x"]["key"]
    upgraded = fuse.Table(table.stored, Host([min_max, Plugin(Newer, "acme")]))

    upgraded.maintenance.rebuild_index("x")

    assert upgraded.snapshot.definitions["x"]["key"] != old
    assert coverage(upgraded) == (4, 4)


def test_an_index_of_a_missing_plugin_is_told_of_and_only_rebuilt_or_dropped():
    table = created()
    table.append(numbers())
    table.create_index("x", "values", ["n"])
    without = fuse.Table(table.stored, Host([min_max]))

    assert without.scan("n = 7").count() == 1
    assert "PLUGIN_MISSING: no index kind 'values'" in without.inspect.indexes().column("problem")[0].as_py()
    assert [vote.reason for vote in without.explain("n = 7").votes if vote.index == "x"] == ["PLUGIN_MISSING"]
    assert without.maintenance.refresh_index() == table.snapshot
    for call in (
        without.maintenance.refresh_index,
        without.maintenance.verify_index,
        without.maintenance.rebuild_index,
    ):
        with pytest.raises(DefinitionError, match="no index kind 'values'"):
            call("x")
    without.drop_index("x")
    assert without.inspect.indexes().num_rows == 0


@pytest.mark.parametrize("kind", FAILING)
def test_a_kind_that_fails_leaves_blocks_for_a_later_refresh(kind):
    table = created(None, kind)
    table.append(numbers())

    with pytest.warns(PluginWarning):
        table.create_index("x", kind.name, ["n"])

    assert coverage(table) == (0, 4)
    assert table.scan("n = 7").count() == 1


def test_strictly_a_failing_kind_ends_the_build():
    table = created(None, Raises)
    table.append(numbers())
    table.create_index("x", "raises", ["n"], build=False)
    (definition,) = load_definitions(table.snapshot, table.host)

    with pytest.raises(IndexFault, match="no such luck"):
        build_index.run_build_tasks(
            table.stored, build_index.plan_refresh(table.stored, definition, table.host, strict=True)
        )


@pytest.fixture
def indexed() -> fuse.Table:
    table = created()
    table.create_index("x", "values", ["n"])
    return table


def test_an_unknown_index_is_answered_with_near_names(indexed):
    for call in (
        indexed.maintenance.refresh_index,
        indexed.maintenance.rebuild_index,
        indexed.drop_index,
        indexed.maintenance.verify_index,
        indexed.inspect.index,
    ):
        with pytest.raises(DefinitionError, match="no index 'xx': did you mean 'x'"):
            call("xx")


def test_two_indexes_cannot_have_one_name(indexed):
    with pytest.raises(DefinitionError, match="there is an index 'x' already"):
        indexed.create_index("x", "bloom", ["text"])


def test_of_two_who_take_one_name_at_once_one_is_told():
    table = created()
    other = fuse.open_table(table.stored.store.url, host=table.host)
    transaction = other.stored.transaction()
    table.create_index("x", "values", ["n"])

    with pytest.raises(fuse.Conflict, match="'x'"):
        transaction.add_index("x", {"key": "k"}).commit()


def test_two_builds_at_once_both_keep_what_they_did():
    table = created()
    table.append(numbers())
    table.create_index("x", "values", ["n"], build=False)
    (definition,) = load_definitions(table.snapshot, table.host)
    builder, base = IndexBuilder.for_definition(definition, table.host), table.stored
    first, second, *_ = build_index.split_into_tasks(
        base, builder, build_index.unindexed_blocks(base, builder), processes=2
    )

    build_index.commit_build_results(builder, base, [build_index.run_build_task(first)])
    build_index.commit_build_results(builder, base, [build_index.run_build_task(second)])

    assert coverage(table.refresh()) == (4, 4)
    assert table.maintenance.verify_index("x").sound


def test_a_memory_table_is_built_in_this_process_whatever_is_asked():
    table = created()
    table.append(numbers())
    table.create_index("x", "values", ["n"], build=False)

    table.maintenance.refresh_index("x", processes=4)

    assert coverage(table) == (4, 4)
