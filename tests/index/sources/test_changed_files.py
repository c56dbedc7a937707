"""Files of a source that were replaced, touched, copied or restored: told, and synced."""

import dataclasses
import os
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

import fuse_index as fuse
from fuse_storage import open_store
from fuse_storage.parquet.foreign.file import ForeignFile, modified_microseconds
from fuse_storage.store.ranges import ObjectMeta
from tests.index.sources.one_table import OneTable

PLAIN: dict[str, Any] = {"use_dictionary": False, "compression": "none", "write_statistics": False}
"""Files whose footers do not depend on their rows."""


def folder(tmp_path: Path) -> tuple[Path, str]:
    (tmp_path / "lake").mkdir()
    for number in range(2):
        pq.write_table(
            pa.table({"n": range(10 * number, 10 * number + 10)}), tmp_path / f"lake/{number}.parquet", **PLAIN
        )
    return tmp_path / "lake", "parquet"


def delta(tmp_path: Path) -> tuple[Path, str]:
    for number in range(2):
        write_deltalake(tmp_path / "lake", pa.table({"n": range(10 * number, 10 * number + 10)}), mode="append")
    return tmp_path / "lake", "delta"


def iceberg(tmp_path: Path) -> tuple[Path, str]:
    made = OneTable("one").create(tmp_path / "lake", pa.schema([("n", pa.int64())]))
    for number in range(2):
        made.append(pa.table({"n": range(10 * number, 10 * number + 10)}))
    newest = max((tmp_path / "lake/metadata").glob("*.metadata.json"))
    (tmp_path / "lake/metadata/version-hint.text").write_text(newest.name)
    return tmp_path / "lake", "iceberg"


def touch(file: Path) -> None:
    os.utime(file, (1_000_000_000, 1_000_000_000))


def restore(file: Path) -> None:
    """Another file with the same bytes and the same time of writing."""
    shutil.copy2(file, file.with_name("copy"))
    os.replace(file.with_name("copy"), file)


def attached(tmp_path: Path, make: Callable[[Path], tuple[Path, str]]) -> tuple[fuse.Table, list[Path]]:
    place, format_ = make(tmp_path)
    table = fuse.attach(place, tmp_path / "table", format=format_)
    table.create_index("by_n", "bloom", ["n"])
    return table, sorted(place.rglob("*.parquet"))


def test_a_file_replaced_at_the_same_size_and_time_is_told(tmp_path: Path) -> None:
    table, files = attached(tmp_path, folder)
    before = files[0].stat()
    pq.write_table(pa.table({"n": range(70, 80)}), files[0], **PLAIN)
    os.utime(files[0], ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (files[0].stat().st_size, files[0].stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)

    with pytest.raises(fuse.Corrupt, match=r"0\.parquet has changed.*sync the table"):
        table.to_arrow("n < 10")
    done = table.sync()
    assert (done.added_files, done.removed_files, done.kept_files) == (1, 1, 1)
    assert [table.count(f"n = {n}") for n in (3, 13, 73)] == [0, 1, 1]


@pytest.mark.parametrize("make", [folder, delta, iceberg])
@pytest.mark.parametrize("change", [touch, restore])
def test_files_that_were_touched_or_restored_can_be_read_again(
    tmp_path: Path, make: Callable[[Path], tuple[Path, str]], change: Callable[[Path], None]
) -> None:
    table, files = attached(tmp_path, make)
    rows = sorted(table.to_arrow().column("n").to_pylist())
    change(files[0])

    with pytest.raises(fuse.Corrupt, match=r"sync\(reread=True\)"):
        table.to_arrow()
    done = table.sync(reread=True)
    assert (done.added_files, done.removed_files, done.kept_files, done.reread) == (1, 1, 1, True)
    assert sorted(table.to_arrow().column("n").to_pylist()) == rows
    assert table.inspect.indexes().column("blocks_indexed").to_pylist() == [2]
    assert table.count("n = 3") == table.count("n = 13") == 1
    assert table.sync(reread=True).snapshot == table.snapshot.id  # nothing is committed where all is as it was


def test_an_etag_outranks_a_time_where_both_have_one(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.create("a", b"12345678")
    meta = store.object_meta("a")  # type: ignore[attr-defined]
    known = ForeignFile(8, modified_microseconds(meta), "one")

    class Told:
        url = "told"

        def __init__(self, meta: ObjectMeta) -> None:
            self.meta = meta

        def object_meta(self, key: str) -> ObjectMeta:
            return self.meta

    later = meta.modified + timedelta(days=1)
    cases = [("one", later, True), (None, meta.modified, True), (None, later, False), ("two", meta.modified, False)]
    for etag, modified, same in cases:
        told: Any = Told(dataclasses.replace(meta, etag=etag, modified=modified))
        if same:
            known.raise_if_changed(told, "a")
        else:
            with pytest.raises(fuse.Corrupt, match="has changed"):
                known.raise_if_changed(told, "a")


def test_files_of_a_converted_table_are_taken_anew_and_keep_their_rows(tmp_path: Path) -> None:
    table, files = attached(tmp_path, folder)
    table.convert()
    table.add_column("more", "INT", default=7)
    table.append(pa.table({"n": [50], "more": [8]}))
    before = table.snapshot.id
    restore(files[0])
    with pytest.raises(fuse.Corrupt, match=r"sync\(reread=True\)"):
        table.count("n = 3 AND more = 7")

    done = table.sync(reread=True)
    assert (done.added_files, done.kept_files, done.rows) == (1, 2, 21)
    assert [table.count(f"n = {n} AND more = 7") for n in (3, 13, 50)] == [1, 1, 0]
    assert table.inspect.indexes().column("blocks_indexed").to_pylist() == [3]
    assert table.changes(before).to_arrow().num_rows == 0
    pq.write_table(pa.table({"n": range(5)}), files[0])
    with pytest.raises(fuse.Corrupt, match="another file"):
        table.sync(reread=True)
    with pytest.raises(fuse.InvalidArgument, match="no longer follows"):
        table.sync()
