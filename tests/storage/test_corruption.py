"""Every file of a table is damaged in turn: the rows are right, or an error of ours says what is wrong.

Files that only help (zones, sidecars, packs, hints) never raise into a read of rows: what they would have told is
unknown instead.
"""

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fuse_storage import Corrupt, StorageError, StoredTable, process_cache
from tests.effort import effort
from tests.storage.small import COLUMNS, Totals, append, ids_of, truth

KINDS = ("_refs/branch", "_refs/tag", "_ss/json", "_ss/parquet", "_sg/segment", "_sg/zones", "_x", "_b", "_i")
HELPFUL = ("_sg/zones", "_x", "_i")
SAMPLES = effort(4)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound") / "table"
    table = (
        StoredTable.create(folder, COLUMNS, properties={"zone_rows": 2})
        .transaction()
        .add_index("totals", {"key": "70a1"})
        .commit()
    )
    for first in range(0, 27, 3):
        table = append(table, first, first + 1, first + 2, builders=[Totals()])
    table.tag("v1")
    return folder


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "table"))


def files(folder: Path, kind: str) -> list[Path]:
    """Those that the newest snapshot needs, and others of the same kind."""
    prefix, _, form = kind.partition("/")
    found = sorted(path for path in (folder / prefix).rglob("*") if path.is_file() and path.name != "_hint")
    tests: dict[str, Callable[[Path], bool]] = {
        "branch": lambda path: "branch" in path.parts,
        "tag": lambda path: "tag" in path.parts,
        "zones": lambda path: ".zones." in path.name,
        "segment": lambda path: ".zones." not in path.name,
        "json": lambda path: path.suffix == ".json",
        "parquet": lambda path: path.suffix == ".parquet",
    }
    return [path for path in found if not form or tests[form](path)]


def damages(data: bytes, seed: str) -> Iterator[bytes]:
    """Flipped bits, lost ends, zeroed sectors, other bytes at the end, nothing at all."""
    draw = random.Random(seed)
    for _ in range(SAMPLES):
        place = draw.randrange(len(data))
        yield data[:place] + bytes([data[place] ^ 1 << draw.randrange(8)]) + data[place + 1 :]
    for _ in range(-(-SAMPLES // 4)):
        yield data[: draw.randrange(len(data))]
        start = draw.randrange(len(data))
        yield data[:start] + bytes(min(512, len(data) - start)) + data[start + 512 :]
    yield data + b"\0"
    yield b""


def rows_right(table: StoredTable) -> bool:
    return ids_of(table) == list(range(27))


@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_noticed_or_does_not_matter(folder: Path, kind: str) -> None:
    found = files(folder, kind)
    assert found
    draw = random.Random(kind)
    for path in draw.sample(found[:-1], min(2, len(found) - 1)) + found[-1:]:
        whole = path.read_bytes()
        for damaged in damages(whole, path.name):
            path.write_bytes(damaged)
            assert_typed_or_right(folder, kind in HELPFUL)
        path.unlink()
        assert_typed_or_right(folder, kind in HELPFUL)
        path.write_bytes(whole)
    assert_typed_or_right(folder, must_read=True)


def assert_typed_or_right(folder: Path, must_read: bool) -> None:
    process_cache.clear()
    for at in (None, "v1"):
        try:
            table = StoredTable.open(folder, at=at)
            if table.snapshot.row_count == 27:
                assert rows_right(table)
                assert_nothing_false_is_told(table)
            else:
                assert ids_of(table) == list(range(table.snapshot.row_count))
        except StorageError as problem:
            assert not must_read, problem  # noqa: PT017 - whether it raises depends on the bit
            assert str(folder) in str(problem)  # noqa: PT017


def assert_nothing_false_is_told(table: StoredTable) -> None:
    """Statistics bound the rows, and sidecars are those that were built, or unknown."""
    blocks = table.blocks()
    zones, statistics, known = table.zones(blocks).statistics(1), blocks.statistics(1), blocks.sidecars("70a1")
    assert statistics is not None
    for block, (total, text) in enumerate(truth(table)):
        first = 3 * block
        assert (statistics.min[block].as_py(), statistics.max[block].as_py()) == (first, first + 2)
        if zones is not None:
            assert zones.min[int(blocks.zone_offsets[block])].as_py() in (None, first)
        if known is None:
            continue
        assert known.summaries[block].as_py() in (total, None)
        if known.summaries[block].as_py() is None:
            assert known.error is not None
            assert "_x/" in known.error
        payload = known.payload(block)
        if payload is not None:
            try:
                assert payload.read([(0, payload.size)]) == [text]
            except StorageError as problem:
                assert "_i/" in str(problem)  # noqa: PT017


def test_a_damaged_sidecar_file_loses_only_its_own_segment(folder: Path) -> None:
    path = files(folder, "_x")[-1]
    path.write_bytes(path.read_bytes()[:-1])

    found = StoredTable.open(folder).blocks().sidecars("70a1")

    assert found is not None
    assert found.indexed.tolist() == [True] * 8 + [False]
    assert path.name in (found.error or "")


def test_damaged_zones_say_nothing_and_the_others_speak(folder: Path) -> None:
    path = files(folder, "_sg/zones")[-1]
    path.write_bytes(b"")

    table = StoredTable.open(folder)
    found = table.zones(table.blocks()).statistics(1)

    assert found is not None
    assert found.min.to_pylist() == [place for first in range(0, 24, 3) for place in (first, first + 2)] + [None, None]
    path.unlink()
    (other,) = [path for path in files(folder, "_sg/zones") if path.stat().st_size and "zones" in path.name][-1:]
    assert other.exists()


def test_appending_goes_on_beside_damaged_sidecars(folder: Path) -> None:
    for path in files(folder, "_x") + files(folder, "_sg/zones"):
        path.write_bytes(b"damaged")
    table = StoredTable.open(folder)

    for row_id in range(27, 40):
        table = append(table, row_id, builders=[Totals()])

    assert ids_of(table) == list(range(40))
    found = table.blocks().sidecars("70a1")
    assert found is not None
    assert found.summaries.to_pylist()[-13:] == list(range(27, 40))


@pytest.fixture
def twins(tmp_path: Path) -> tuple[StoredTable, list[Path]]:
    """A table of two blocks whose files are equally long, and these files."""
    table = StoredTable.create(tmp_path / "twins", COLUMNS, properties={"zone_rows": 2})
    table = append(append(table, 10, 11, 12), 13, 14, 15)
    paths = [Path(path) for path in table.block_files()[0]]
    assert len({path.stat().st_size for path in paths}) == 1
    return table, paths


def test_blocks_that_changed_places_are_noticed(twins: tuple[StoredTable, list[Path]]) -> None:
    table, (first, second) = twins
    for path, data in zip((second, first), [first.read_bytes(), second.read_bytes()], strict=True):
        path.write_bytes(data)
    process_cache.clear()

    with pytest.raises(Corrupt, match=first.name):
        ids_of(StoredTable.open(table.store.url))


def test_a_block_in_the_place_of_another_is_noticed_even_by_who_read_the_other(
    twins: tuple[StoredTable, list[Path]],
) -> None:
    table, (first, second) = twins
    second.write_bytes(first.read_bytes())
    process_cache.clear()

    with pytest.raises(Corrupt, match=rf"{second.name}: this is another block .*restore"):
        ids_of(StoredTable.open(table.store.url))
