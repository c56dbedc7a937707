"""What a query learns of a snapshot's zones and sidecars serves the next query, unless it failed."""

from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

import fuse_index as fuse
from fuse_index.indexes.block_batch import FrameBatch, ZoneMap
from fuse_plugins.bloom.zone_index import ZoneSummaries
from fuse_storage import BlockFrame, process_cache
from fuse_storage.store.cache import _MAX_KEPT_VALUES, keep_if_whole

KEYS = np.random.default_rng(4).permutation(4_000)

MIDDLE = np.flatnonzero(abs(KEYS - 2_000) < 50)[:12].tolist()
"""Places of keys that each block can hold, by its bounds."""


@pytest.fixture
def table(tmp_path: Path) -> fuse.Table:
    rows = pa.table({"k": KEYS, "n": range(4_000)})
    table = fuse.create_table(str(tmp_path / "t"), rows.schema, properties={"block_rows": 500, "zone_rows": 100})
    table.create_index("by_k", "bloom", ["k"])
    table.append(rows)
    return table


def rows(table: fuse.Table, key: int) -> list[int]:
    return list(table.refresh().scan(f"k = {key}").to_arrow()["n"].to_pylist())


def test_a_second_query_reads_no_frame_again(table: fuse.Table) -> None:
    flatten = ZoneSummaries._flatten.__func__
    with (
        mock.patch.object(
            ZoneSummaries, "_flatten", side_effect=lambda *args: flatten(ZoneSummaries, *args)
        ) as flattened,
        mock.patch.object(BlockFrame, "_read", autospec=True, side_effect=BlockFrame._read) as read,
    ):
        for place in MIDDLE[:3]:
            assert rows(table, int(KEYS[place])) == [place]
        reads = read.call_count
        for place in MIDDLE[3:]:
            assert rows(table, int(KEYS[place])) == [place]

    assert flattened.call_count == 1
    assert read.call_count == reads


def test_another_snapshot_has_frames_of_its_own(table: fuse.Table) -> None:
    assert rows(table, 5_000) == []

    table.append(pa.table({"k": [5_000], "n": [4_000]}))
    assert rows(table, 5_000) == [4_000]
    table.delete("k = 5000")
    assert rows(table, 5_000) == []
    assert rows(table, int(KEYS[9])) == [9]


def test_a_batch_of_all_blocks_copies_nothing(table: fuse.Table) -> None:
    blocks = table.stored.blocks()
    sidecars = blocks.sidecars(table.snapshot.definitions["by_k"]["key"])
    assert sidecars is blocks.sidecars(table.snapshot.definitions["by_k"]["key"])
    assert sidecars is not None
    every = np.arange(len(blocks))

    batch = FrameBatch.from_sidecars(blocks, (1,), ZoneMap.of(blocks), sidecars, every)
    some = FrameBatch.from_sidecars(blocks, (1,), ZoneMap.of(blocks), sidecars, every[2:5])

    assert batch.summaries is sidecars.summaries
    assert len(some) == 3
    assert some.summaries is not None
    assert some.summaries.equals(sidecars.summaries.slice(2, 3))


def test_sidecars_that_failed_are_read_again(table: fuse.Table, tmp_path: Path) -> None:
    [path] = (tmp_path / "t" / "_x").rglob("*.parquet")
    whole = path.read_bytes()
    path.write_bytes(b"damaged")
    process_cache.clear()
    table = fuse.open_table(str(tmp_path / "t"))
    blocks = table.stored.blocks()
    key = table.snapshot.definitions["by_k"]["key"]
    found = blocks.sidecars(key)
    assert found is not None
    assert found.error

    path.write_bytes(whole)

    again = table.stored.blocks().sidecars(key)
    assert again is not None
    assert again.error is None
    assert again.indexed.all()


def test_zones_that_failed_are_read_again(table: fuse.Table, tmp_path: Path) -> None:
    [path] = (tmp_path / "t" / "_sg").glob("*.zones.parquet")
    whole = path.read_bytes()
    path.write_bytes(b"damaged")
    process_cache.clear()
    blocks = fuse.open_table(str(tmp_path / "t")).stored.blocks()
    assert blocks.zones().statistics(1) is None

    path.write_bytes(whole)

    found = blocks.zones().statistics(1)
    assert found is not None
    assert found.null_count.to_pylist() == [0] * 40


def test_no_more_is_kept_than_a_bound() -> None:
    class Frame:
        def __init__(self, units: int, is_whole: bool) -> None:
            self.units, self.is_whole, self.kept, self.calls = units, is_whole, {}, 0  # type: ignore[var-annotated]

        def __len__(self) -> int:
            return self.units

        @keep_if_whole
        def double(self, number: int) -> int:
            self.calls += 1
            return 2 * number

    small, huge, part = Frame(10, True), Frame(1 << 20, True), Frame(10, False)
    for frame in (small, huge, part):
        assert [frame.double(number) for number in (1, 1, 2)] == [2, 2, 4]
    assert (small.calls, huge.calls, part.calls) == (2, 3, 3)
    for number in range(100):
        small.double(number)
    assert len(small.kept) == _MAX_KEPT_VALUES
