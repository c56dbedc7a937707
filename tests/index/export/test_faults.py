"""An export that dies at any of its writes leaves the former or the new one, and the next export makes up for it."""

import gc
from contextlib import suppress
from pathlib import Path

import pytest

import fuse_index as fuse
from fuse_index.export.delta import export_delta
from fuse_index.export.iceberg import export_iceberg
from fuse_storage import StorageError, StoredTable, open_store
from fuse_storage.testing import Crash, FaultMode, FaultyStore
from tests.index.export.readers import Rows, our_rows, read_delta, read_iceberg

FORMATS = {"delta": (export_delta, read_delta), "iceberg": (export_iceberg, read_iceberg)}


def change_after_export(place: Path) -> Rows:
    """Make a table, export it, and delete rows and rename a column since. Returns the rows of the export."""
    properties = {"block_rows": 5, "delete_mode": "merge-on-read"}
    table = fuse.create_table(place, "id BIGINT, s STRING", properties=properties)
    table.append([{"id": n, "s": str(n)} for n in range(20)])
    table.delete("id IN (1, 11)")
    table.export_delta()
    table.export_iceberg()
    exported = our_rows(place)
    table.delete("id IN (2, 12, 16)")
    table.rename_column("s", "name")
    return exported


@pytest.mark.parametrize(
    "mode", ["before", *(pytest.param(mode, marks=pytest.mark.any_spark) for mode in ("after", "lost"))]
)
@pytest.mark.parametrize("name", FORMATS)
def test_a_fault_at_each_write_is_made_up_for(tmp_path: Path, name: str, mode: FaultMode) -> None:
    export, read = FORMATS[name]
    for failing_write in range(1, 20):
        place = tmp_path / str(failing_write)
        former, today = change_after_export(place), our_rows(place)
        store = FaultyStore(open_store(place), failing_write, mode)
        with suppress(Crash, StorageError):
            export(StoredTable.open(store))
        for reader, found in read(place):
            assert found in (former, today), (failing_write, reader)
        export(StoredTable.open(open_store(place)))
        for reader, found in read(place):
            assert found == today, (failing_write, reader)
        if store.write_count < failing_write:
            assert failing_write > 2
            return
    raise AssertionError("no end of its writes")


def test_a_file_that_could_not_be_written_is_not_written_when_it_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python closes each file that nobody has any more, and closing writes it."""
    change_after_export(tmp_path)
    asked: list[str] = []

    def full(store: FaultyStore, key: str, data: bytes, overwrite: bool = False) -> None:
        if not key.endswith(".avro"):
            return store.store.create(key, data, overwrite)
        asked.append(key)
        raise StorageError(f"{key} is not written: there is no room")

    monkeypatch.setattr(FaultyStore, "create", full)
    with pytest.raises(StorageError, match="there is no room"):
        export_iceberg(StoredTable.open(FaultyStore(open_store(tmp_path), 0, "before")))
    gc.collect()
    assert len(asked) == len(set(asked)) > 0
