"""Delta's deletion vectors, attached: those that are new are read, and nothing else of the source's files."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

import fuse_index as fuse
from fuse_index.export.deletion_vectors import delta_vectors, z85
from fuse_index.sources.delta.deletes import DeltaDeletes
from fuse_index.sources.delta.log import VectorPlace, live_vectors
from fuse_index.sources.source import KnownRows
from fuse_storage import SourceFile, open_store
from fuse_storage.store.local import LocalStore
from tests.index.sources.walks import assert_same_rows

CONDITIONS = ["id = 33", "name = 'n7'", "name IS NULL", "id IN (3, 8, 70)"]


def some_rows(first: int) -> pa.Table:
    numbers = range(first, first + 50)
    return pa.table({"id": numbers, "name": [None if n % 4 == 0 else f"n{n % 40}" for n in numbers]})


@pytest.fixture
def lake(tmp_path: Path) -> fuse.Table:
    """A table of ours that is a Delta table, too, of four files, of two of which rows are deleted."""
    table = fuse.create_table(
        tmp_path / "lake", "id BIGINT, name STRING", properties={"delete_mode": "merge-on-read", "exports": "delta"}
    )
    for first in range(0, 200, 50):
        table.append(some_rows(first))
    table.delete("id IN (3, 7, 60)")
    return table


def read_by_deltalake(place: Path) -> pa.Table:
    source = DeltaTable(str(place))
    return pa.table(QueryBuilder().register("t", source).execute("SELECT * FROM t").read_all()).cast(
        pa.schema([("id", pa.int64()), ("name", pa.string())])
    )


def test_only_new_vectors_are_read(tmp_path: Path, lake: fuse.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[tuple[str, int]] = []
    read_ranges = LocalStore.read_ranges

    def counted(self: LocalStore, key: str, ranges: Any) -> Any:
        if self.url.startswith(str(tmp_path / "lake")) and "_delta_log" not in key:
            read.append((Path(key).suffix, len(ranges)))
        return read_ranges(self, key, ranges)

    monkeypatch.setattr(LocalStore, "read_ranges", counted)
    table = fuse.attach(tmp_path / "lake", tmp_path / "table", format="delta")
    assert sorted(set(read)) == [(".bin", 2), (".parquet", 1)]
    table.create_index("by_name", "bloom", ["name"])
    assert_same_rows(table, read_by_deltalake(tmp_path / "lake"), CONDITIONS)

    for condition, vectors in (("id = 150", 1), ("id IN (4, 61, 62)", 2), ("id < 50", 0)):
        lake.delete(condition)
        read.clear()
        table.sync()
        assert [count for kind, count in read if kind == ".bin"] == [vectors] * bool(vectors)
        assert [kind for kind, _ in read if kind == ".parquet"] == []
        assert_same_rows(table, read_by_deltalake(tmp_path / "lake"), CONDITIONS)
        assert table.inspect.index("by_name")["blocks_indexed"] == table.snapshot.block_count
    read.clear()
    table.sync()
    assert read == []


def test_a_damaged_vector_is_an_error_and_the_table_stays(tmp_path: Path, lake: fuse.Table) -> None:
    table = fuse.attach(tmp_path / "lake", tmp_path / "table", format="delta")
    lake.delete("id = 9")
    newest = max((tmp_path / "lake").rglob("*.bin"), key=lambda place: place.stat().st_mtime_ns)
    data = bytearray(newest.read_bytes())
    data[-6] ^= 1
    newest.write_bytes(bytes(data))
    with pytest.raises(fuse.Corrupt, match=r"\.bin has a deletion vector that is damaged"):
        table.sync()
    newest.unlink()
    with pytest.raises(fuse.NotFound, match=r"it says which rows of .* are deleted"):
        table.sync()
    assert table.count() == 197


def test_vectors_are_those_of_a_version_whatever_the_log_is_made_of(tmp_path: Path, lake: fuse.Table) -> None:
    lake.delete("id = 150")
    place = tmp_path / "copy"
    shutil.copytree(tmp_path / "lake", place)
    store, newest = open_store(str(place)), DeltaTable(str(place)).version()
    before = [live_vectors(store, version) for version in range(newest + 1)]
    assert [len(found) for found in before[-2:]] == [2, 3]
    DeltaTable(str(place), version=newest - 1).create_checkpoint()

    assert [live_vectors(store, version) for version in range(newest + 1)] == before
    for version in range(newest):  # as a cleaned log is
        (place / "_delta_log" / f"{version:020}.json").unlink()
    assert [live_vectors(store, version) for version in (newest - 1, newest)] == before[-2:]
    (place / "_delta_log" / f"{newest:020}.json").unlink()
    with pytest.raises(fuse.StorageError, match=f"lacks the commit {newest} of its log"):
        live_vectors(store, newest)


def test_a_vector_in_the_log_is_read_from_there() -> None:
    deleted = np.zeros(1000, np.bool_)
    deleted[[0, 7, 500, 999]] = True
    data, (vector,) = delta_vectors([deleted])
    bits = data[vector.offset + 4 : vector.offset + vector.size - 4]
    place = VectorPlace("i", z85(bits + bytes(-len(bits) % 4)), None, len(bits))
    deletes = DeltaDeletes(open_store("memory://none"), {"a": place})

    masks = deletes.read([KnownRows(SourceFile("a", 1)), KnownRows(SourceFile("b", 1))], None)
    assert np.array_equal(masks["a"], deleted)
    assert list(masks) == ["a"]
