"""Damage is found, told of and repaired; and an index that lies is found out."""

import math
from decimal import Decimal
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuse_index as fuse
from fuse_index.indexes.registry import Host, PluginWarning
from fuse_index.plugin import Reason, Refusal
from fuse_plugins import bloom, min_max
from fuse_storage import process_cache
from tests.index.kinds import Greatest, Lies, Values
from tests.index.tables import coverage, created, damaged, files, numbers, reopened


@pytest.fixture
def indexed(tmp_path) -> fuse.Table:
    table = created(str(tmp_path / "t"), Values, Greatest)
    table.append(numbers())
    table.create_index("x", "values", ["n"])
    table.append(numbers(100))
    return table


# --- damage -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["gone", "cut"])
def test_packs_that_are_gone_or_cut_short_are_built_anew(indexed, how):
    damaged(files(indexed, "_i")[0], how)
    table = reopened(indexed)
    seen = []

    table.maintenance.refresh_index("x", progress=lambda done, total: seen.append(total))

    assert set(seen) == {4}
    assert table.maintenance.verify_index("x").sound
    assert table.explain("n = 107").blocks.kept == 1


@pytest.mark.parametrize("how", ["gone", "cut", "flipped"])
def test_sidecar_files_that_are_damaged_are_built_anew(indexed, how):
    damaged(files(indexed, "_x")[0], how)
    table = reopened(indexed)

    assert coverage(table) == (4, 8)
    assert table.inspect.indexes().column("problem")[0].as_py().startswith("CORRUPT: ")
    assert not table.maintenance.verify_index("x").sound
    table.maintenance.refresh_index("x")
    assert coverage(table) == (8, 8)
    assert table.inspect.indexes().column("problem")[0].as_py() is None


@pytest.mark.parametrize("how", ["gone", "cut", "flipped"])
def test_verifying_finds_damaged_packs_whatever_is_kept_in_memory(indexed, how):
    assert indexed.scan("n = 7").count() == 1
    damaged(files(indexed, "_i")[0], how)

    result = indexed.maintenance.verify_index("x")

    assert not result.sound
    assert "the payload of 4 blocks" in str(result)
    indexed.maintenance.rebuild_index("x")
    assert indexed.maintenance.verify_index("x").sound


def test_verifying_a_clone_finds_damaged_packs_of_its_source_whatever_is_kept_in_memory(indexed):
    assert indexed.scan("n = 7").count() == 1
    copy = indexed.clone(f"{indexed.stored.store.url}-copy")
    assert copy.scan("n = 7").count() == 1
    damaged(files(indexed, "_i")[0], "flipped")

    assert "the payload of 4 blocks" in str(copy.maintenance.verify_index("x"))


@pytest.mark.parametrize("is_clone", [False, True])
def test_verifying_leaves_alone_what_others_keep_in_memory(indexed, is_clone):
    table = indexed.clone(f"{indexed.stored.store.url}-copy") if is_clone else indexed
    process_cache.clear()
    assert table.scan("n = 7").count() == 1
    kept = len(process_cache)
    assert kept

    assert table.maintenance.verify_index("x").sound

    assert len(process_cache) == kept


@pytest.mark.parametrize("how", ["gone", "flipped"])
def test_a_block_that_cannot_be_read_does_not_stop_a_build(indexed, how):
    damaged(files(indexed, "_b")[0], how)
    table = reopened(indexed)

    with pytest.warns(PluginWarning, match="leaves out block [0-9a-f]{32}, which cannot be read"):
        table.create_index("more", "values", ["text"])

    assert coverage(table, "more") == (7, 8)


# --- verifying
# ------------------------------------------------------------------------------------------------------------


def test_an_index_that_lies_is_found_out():
    table = created(None, Lies)
    table.append(numbers())
    table.create_index("x", "lies", ["n"])

    result = table.maintenance.verify_index("x")

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

    assert " rows of segment " in str(table.maintenance.verify_index("x"))


class Stumbles(Values):
    name = "stumbles"

    def probe(self, probe, batch):
        raise LookupError("where was I")


def test_a_kind_that_raises_is_found_out():
    table = created(None, Stumbles)
    table.append(numbers())
    table.create_index("x", "stumbles", ["n"])

    head, line = str(table.maintenance.verify_index("x")).splitlines()  # one, of all predicates
    assert head.endswith("; its kind has to be repaired:")
    assert line.startswith("  its kind fails in probe(), such as on ")
    assert line.endswith("LookupError: where was I")


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
    table = fuse.create_table(
        f"memory://types-{uuid4().hex}", f"c {kind}", properties=properties, host=Host([min_max, bloom])
    )
    values = TYPES[kind] * 4
    table.append(pa.table({"c": pa.array(values, table.schema.field("c").type)}))
    table.create_index("x", "bloom", ["c"])

    result = table.maintenance.verify_index("x")

    assert result.sound, str(result)
    assert result.leaves >= 8


def test_what_was_looked_at_is_told(indexed):
    result = indexed.maintenance.verify_index("x", blocks=2)

    assert (result.blocks, result.payloads) == (2, 8)
    assert str(result) == f"x is sound: {result.leaves} predicates on 2 blocks, 8 payloads by checksum"


def test_nothing_is_found_in_an_index_that_was_never_built():
    table = created()
    table.append(numbers())
    table.create_index("x", "values", ["n"], build=False)

    said = str(table.maintenance.verify_index("x"))
    assert said == "x was not verified: no block is indexed; refresh it"


class Silent(Values):
    name = "silent"

    def compile(self, what, inputs, options, context):
        return Refusal(Reason.LEAF_UNSUPPORTED, "ask something else")


def test_an_index_that_votes_on_nothing_is_not_called_sound():
    table = created(None, Silent)
    table.append(numbers())
    table.create_index("x", "silent", ["n"])

    said = str(table.maintenance.verify_index("x"))
    assert said == (
        "x has whole payloads, and voted on nothing that was drawn: 0 predicates on 4 blocks, 4 payloads by checksum"
    )


class NeverBuilt(Values):
    name = "never_built"

    def build(self, rows, zones, options):
        raise ValueError("no room")


def test_a_rebuild_of_files_that_are_gone_says_so_and_blames_no_kind(tmp_path):
    lake = tmp_path / "lake"
    lake.mkdir()
    pq.write_table(pa.table({"n": [1, 2]}), lake / "a.parquet")
    table = fuse.attach(lake, tmp_path / "table")
    table.create_index("x", "bloom", ["n"])
    (lake / "a.parquet").unlink()

    with pytest.warns(PluginWarning, match="no such file"), pytest.raises(fuse.BuildError) as failed:
        table.maintenance.rebuild_index("x")

    assert str(failed.value) == (
        "index 'x' was built on none of 1 blocks: none can be read, as was warned of; sync the table if their files "
        "were deleted or moved at their source, or restore them"
    )


def test_a_rebuild_that_built_nothing_fails():
    table = created(None, NeverBuilt)
    table.append(numbers())
    table.create_index("x", "never_built", ["n"], build=False)

    with pytest.warns(PluginWarning, match="no room"), pytest.raises(fuse.BuildError) as failed:
        table.maintenance.rebuild_index("x")
    assert str(failed.value).startswith(
        "index 'x' was built on none of 4 blocks: its kind 'never_built' failed on each"
    )

    empty = created(None, NeverBuilt)
    empty.create_index("x", "never_built", ["n"])
    assert empty.maintenance.rebuild_index("x").block_count == 0
