"""Indexes through their lives: created, refreshed, interrupted, rebuilt, damaged, verified, dropped."""

import math
import multiprocessing
import os
from decimal import Decimal
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest

import fuse_index as fuse
from fuse_index import lifecycle
from fuse_index.build import Builder
from fuse_index.definitions import load
from fuse_index.errors import BuildError, DefinitionError, IndexFault
from fuse_index.host import Host, Plugin, PluginWarning
from fuse_plugins import bloom, min_max
from fuse_storage import Metered, Table, metered, shared
from tests.index.kinds import FAILING, Greatest, Lies, Raises, Values

SMALL = {"block_rows": 10, "zone_rows": 5}


def numbers(start: int = 0, count: int = 40) -> pa.Table:
    """Values that min_max cannot tell apart."""
    return pa.table({"n": [(n * 7) % count + start for n in range(count)], "text": [f"t{n}" for n in range(count)]})


def created(url: str | None = None, *kinds: object) -> fuse.Table:
    host = Host([min_max, bloom, *(kinds or (Values,))])
    return fuse.create_table(url or f"memory://life-{uuid4().hex}", "n BIGINT, text STRING", properties=SMALL, host=host)


def coverage(table: fuse.Table, name: str = "x") -> tuple[int, int]:
    (row,) = (row for row in table.indexes().to_pylist() if row["name"] == name)
    return row["blocks_indexed"], row["blocks"]


def read_blocks(store: Metered) -> set[str]:
    return {key for _, key, _ in store.reads if key.startswith("_b/")}


def counted(table: fuse.Table) -> tuple[fuse.Table, Metered]:
    """The same table, its reads counted from now on."""
    store = metered(table.stored.store)
    shared.clear()
    return fuse.Table(Table.open(store), table.host), store


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
    table.refresh_index("x")
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
    old = set(table.blocks().column("location").to_pylist())
    without = fuse.Table(table.stored, Host([min_max]))
    without.append(numbers(100))
    seen: list[tuple[int, int]] = []
    opened, store = counted(table)

    opened.refresh_index("x", progress=lambda done, total: seen.append((done, total)))

    assert read_blocks(store) == set(opened.blocks().column("location").to_pylist()) - old
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
    (definition,) = load(table.snapshot, table.host)

    with pytest.warns(PluginWarning, match="too late"):
        last = lifecycle.refresh(table.stored, definition, table.host, commit_seconds=0.0)

    assert last.snapshot.summary["indexed_blocks"] == 64
    assert last.snapshot == table.refresh().snapshot
    assert coverage(table) == (64, 65)


def test_a_refresh_of_what_is_complete_reads_no_block_and_commits_nothing():
    table = created()
    table.append(numbers())
    table.create_index("x", "values", ["n"])
    opened, store = counted(table)

    assert opened.refresh_index() == table.snapshot
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
        table.refresh_index("by_text", processes=processes)

    one, two = (table.explain("text = 't17'").to_dict() for table in tables)
    assert one["blocks"] == two["blocks"] == {"total": 20, "kept": 1}
    assert coverage(tables[1], "by_text") == (20, 20)


def test_processes_report_what_failed_in_them(tmp_path):
    table = created(str(tmp_path / "t"), Raises)
    table.append(numbers())
    table.create_index("x", "raises", ["n"], build=False)

    with pytest.warns(PluginWarning, match="failed in build.. on block [0-9a-f]{32}, unindexed for now: ValueError: no such luck"):
        table.refresh_index("x", processes=2)


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

    with pytest.raises(BuildError, match=r"a process that built index 'x' died.*refresh the index with fewer processes"):
        table.refresh_index("x", processes=2)


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
    (definition,) = load(table.snapshot, table.host)

    with pytest.raises(KeyboardInterrupt):
        lifecycle.refresh(table.stored, definition, table.host, commit_seconds=commit_seconds)

    assert coverage(table.refresh()) == (64, 130)
    Interrupted.left = 66
    table.refresh_index("x")
    assert coverage(table) == (130, 130)


def test_work_is_cut_so_that_every_process_has_some_and_packs_hold_many_blocks():
    table = created()
    table.append(numbers(0, 2000))
    table.create_index("x", "values", ["n"], build=False)
    (definition,) = load(table.snapshot, table.host)
    builder = Builder.of(definition, table.host)
    lacking = lifecycle.missing(table.stored, builder)

    assert [task.blocks for task in lifecycle.tasks(table.stored, builder, lacking)] == [64, 64, 64, 8]
    assert len(lifecycle.tasks(table.stored, builder, lacking, processes=16)) == 16
    table.refresh_index("x")
    packs = {key for key in keys(table) if key.startswith("_i/")}
    assert len(packs) == 4


def keys(table: fuse.Table) -> list[str]:
    return [entry.key for entry in table.stored.store.list()]


def test_builds_go_together_with_appends_that_merge_segments():
    table = created()
    for start in range(0, 60, 10):
        table.append(numbers(start, 10))
    table.create_index("x", "values", ["n"], build=False)
    (definition,) = load(table.snapshot, table.host)
    builder = Builder.of(definition, table.host)
    done = [lifecycle.run(task) for task in lifecycle.tasks(table.stored, builder, lifecycle.missing(table.stored, builder))]
    without = fuse.Table(table.stored, Host([min_max]))
    for start in range(60, 90, 10):
        without.append(numbers(start, 10))
    assert without.snapshot.segment_count < 9

    lifecycle.commit(builder, table.stored, done)

    table.refresh()
    assert coverage(table) == (6, 9)
    assert [table.scan(f"n = {n}").count() for n in range(90)] == [1] * 90


def test_dropping_wins_over_a_build_that_is_under_way():
    table = created()
    table.append(numbers())
    table.create_index("x", "values", ["n"], build=False)
    (definition,) = load(table.snapshot, table.host)
    builder, before = Builder.of(definition, table.host), table.stored
    done = [lifecycle.run(task) for task in lifecycle.tasks(before, builder, lifecycle.missing(before, builder))]
    dropped = table.drop_index("x")

    assert lifecycle.commit(builder, before, done).snapshot == dropped


def test_a_drop_is_metadata_only():
    table = created()
    table.append(numbers())
    table.create_index("x", "values", ["n"])
    opened, store = counted(table)

    opened.drop_index("x")

    assert opened.indexes().num_rows == 0
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

    table.rebuild_index("x")

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
    assert "refresh the index" in upgraded.indexes().column("problem")[0].as_py()
    assert upgraded.explain("n = 7").blocks.kept == 4
    upgraded.refresh_index("x")
    assert coverage(upgraded) == (4, 4)
    assert upgraded.explain("n = 7").blocks.kept == 1


def test_a_rebuild_with_a_newer_kind_gets_a_new_key():
    table = created(None, Plugin(Values, "acme"))
    table.append(numbers())
    table.create_index("x", "values", ["n"])
    old = table.snapshot.definitions["x"]["key"]
    upgraded = fuse.Table(table.stored, Host([min_max, Plugin(Newer, "acme")]))

    upgraded.rebuild_index("x")

    assert upgraded.snapshot.definitions["x"]["key"] != old
    assert coverage(upgraded) == (4, 4)


def test_an_index_of_a_missing_plugin_is_told_of_and_only_rebuilt_or_dropped():
    table = created()
    table.append(numbers())
    table.create_index("x", "values", ["n"])
    without = fuse.Table(table.stored, Host([min_max]))

    assert without.scan("n = 7").count() == 1
    assert "PLUGIN_MISSING: no index kind 'values'" in without.indexes().column("problem")[0].as_py()
    assert [vote.reason for vote in without.explain("n = 7").votes if vote.index == "x"] == ["PLUGIN_MISSING"]
    assert without.refresh_index() == table.snapshot
    for call in (without.refresh_index, without.verify_index, without.rebuild_index):
        with pytest.raises(DefinitionError, match="no index kind 'values'"):
            call("x")
    without.drop_index("x")
    assert without.indexes().num_rows == 0


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
    (definition,) = load(table.snapshot, table.host)

    with pytest.raises(IndexFault, match="no such luck"):
        lifecycle.refresh(table.stored, definition, table.host, strict=True)


# --- damage ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def indexed(tmp_path) -> fuse.Table:
    table = created(str(tmp_path / "t"), Values, Greatest)
    table.append(numbers())
    table.create_index("x", "values", ["n"])
    table.append(numbers(100))
    return table


def files(table: fuse.Table, folder: str) -> list[Path]:
    return sorted(path for path in Path(table.stored.store.url.removeprefix("file://"), folder).rglob("*") if path.is_file())


def damaged(path: Path, how: str) -> None:
    data = bytearray(path.read_bytes())
    if how == "gone":
        path.unlink()
        return
    if how == "flipped":
        data[len(data) // 2] ^= 1
    path.write_bytes(data[: len(data) // 2] if how == "cut" else data)


def reopened(table: fuse.Table) -> fuse.Table:
    shared.clear()
    return fuse.open_table(table.stored.store.url, host=table.host)


@pytest.mark.parametrize("how", ["gone", "cut"])
def test_packs_that_are_gone_or_cut_short_are_built_anew(indexed, how):
    damaged(files(indexed, "_i")[0], how)
    table = reopened(indexed)
    seen = []

    table.refresh_index("x", progress=lambda done, total: seen.append(total))

    assert set(seen) == {4}
    assert table.verify_index("x").sound
    assert table.explain("n = 107").blocks.kept == 1


@pytest.mark.parametrize("how", ["gone", "cut", "flipped"])
def test_sidecar_files_that_are_damaged_are_built_anew(indexed, how):
    damaged(files(indexed, "_x")[0], how)
    table = reopened(indexed)

    assert coverage(table) == (4, 8)
    assert table.indexes().column("problem")[0].as_py().startswith("CORRUPT: ")
    assert not table.verify_index("x").sound
    table.refresh_index("x")
    assert coverage(table) == (8, 8)
    assert table.indexes().column("problem")[0].as_py() is None


@pytest.mark.parametrize("how", ["gone", "cut", "flipped"])
def test_verifying_finds_damaged_packs_whatever_is_kept_in_memory(indexed, how):
    assert indexed.scan("n = 7").count() == 1
    damaged(files(indexed, "_i")[0], how)

    result = indexed.verify_index("x")

    assert not result.sound
    assert "the payload of 4 blocks" in str(result)
    indexed.rebuild_index("x")
    assert indexed.verify_index("x").sound


@pytest.mark.parametrize("how", ["gone", "flipped"])
def test_a_block_that_cannot_be_read_does_not_stop_a_build(indexed, how):
    damaged(files(indexed, "_b")[0], how)
    table = reopened(indexed)

    with pytest.warns(PluginWarning, match="leaves out block [0-9a-f]{32}, which cannot be read"):
        table.create_index("more", "values", ["text"])

    assert coverage(table, "more") == (7, 8)


# --- verifying ------------------------------------------------------------------------------------------------------------


def test_an_index_that_lies_is_found_out():
    table = created(None, Lies)
    table.append(numbers())
    table.create_index("x", "lies", ["n"])

    result = table.verify_index("x")

    assert not result.sound
    assert " is TRUE on 1 rows of block " in str(result)
    assert result.to_dict()["sound"] is False


class LiesAboveBlocks(Greatest):
    name = "lies_above"

    def roll_up(self, summaries):
        return pa.scalar(0, pa.int64())


def test_a_roll_up_that_lies_is_found_out():
    table = created(None, LiesAboveBlocks)
    table.create_index("x", "lies_above", ["n"])
    table.append(numbers())

    assert " rows of segment " in str(table.verify_index("x"))


class Stumbles(Values):
    name = "stumbles"

    def probe(self, probe, batch):
        raise LookupError("where was I")


def test_a_kind_that_raises_is_found_out():
    table = created(None, Stumbles)
    table.append(numbers())
    table.create_index("x", "stumbles", ["n"])

    assert "LookupError: where was I" in str(table.verify_index("x"))


TYPES = {
    "boolean": [True, False, None],
    "tinyint": [-128, 0, 127, None],
    "bigint": [-(1 << 63), 0, (1 << 63) - 1, None],
    "float": [math.nan, -0.0, 0.0, math.inf, 1.5, None],
    "double": [math.nan, -0.0, 0.0, -math.inf, 1.5, None],
    "decimal(9,2)": [Decimal("1.25"), Decimal("-0.01"), Decimal("9999999.99"), None],
    "string": ["", "a", "Ab c", "😀", "x" * 50, "%_\\", '{"a": 1}', None],
    "binary": [b"", b"a", b"\xff" * 40, None],
    "date": [0, -700_000, 2_000_000, None],
    "timestamp": [0, 1, -(10**15), None],
    "timestamp_ntz": [0, 1, -(10**15), None],
}


@pytest.mark.parametrize("kind", TYPES)
def test_bloom_is_sound_on_every_type(kind):
    properties = {"block_rows": 6, "zone_rows": 2}
    table = fuse.create_table(f"memory://types-{uuid4().hex}", f"c {kind}", properties=properties, host=Host([min_max, bloom]))
    values = TYPES[kind] * 4
    table.append(pa.table({"c": pa.array(values, table.schema.field("c").type)}))
    table.create_index("x", "bloom", ["c"])

    result = table.verify_index("x")

    assert result.sound, str(result)
    assert result.leaves >= 8


def test_what_was_looked_at_is_told(indexed):
    result = indexed.verify_index("x", blocks=2)

    assert (result.blocks, result.payloads) == (2, 8)
    assert str(result) == f"x is sound: {result.leaves} predicates on 2 blocks, 8 payloads by checksum"


def test_nothing_is_found_in_an_index_that_was_never_built():
    table = created()
    table.append(numbers())
    table.create_index("x", "values", ["n"], build=False)

    assert str(table.verify_index("x")) == "x is sound: 0 predicates on 0 blocks, 0 payloads by checksum"


def test_an_unknown_index_is_answered_with_near_names(indexed):
    for call in (indexed.refresh_index, indexed.rebuild_index, indexed.drop_index, indexed.verify_index, indexed.inspect_index):
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
        transaction.define("x", {"key": "k"}).commit()


def test_two_builds_at_once_both_keep_what_they_did():
    table = created()
    table.append(numbers())
    table.create_index("x", "values", ["n"], build=False)
    (definition,) = load(table.snapshot, table.host)
    builder, base = Builder.of(definition, table.host), table.stored
    first, second, *_ = lifecycle.tasks(base, builder, lifecycle.missing(base, builder), processes=2)

    lifecycle.commit(builder, base, [lifecycle.run(first)])
    lifecycle.commit(builder, base, [lifecycle.run(second)])

    assert coverage(table.refresh()) == (4, 4)
    assert table.verify_index("x").sound


def test_a_memory_table_is_built_in_this_process_whatever_is_asked():
    table = created()
    table.append(numbers())
    table.create_index("x", "values", ["n"], build=False)

    table.refresh_index("x", processes=4)

    assert coverage(table) == (4, 4)
