"""Stored tables with a tail, a chain and deletion vectors, partitioned and with a primary key, stay what they are."""

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuse_index as fuse
from fuse_storage import PartitionSpec
from fuse_storage.testing import check_invariants
from tests.golden import make_tails_v1 as golden

Row = dict[str, Any]
TABLES = {"partitioned": golden.PARTITIONED, "keyed": golden.KEYED}
OPERATIONS = {"append": "append", "hot": "append", "put": "upsert", "property": "set properties"}


def sorted_rows(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: int(row["id"]))


@pytest.mark.parametrize("name", TABLES)
def test_each_state_of_a_golden_table_is_read(name: str) -> None:
    table, steps = fuse.open_table(golden.FOLDER / name), TABLES[name]

    for version, rows in enumerate(golden.rows_by_version(steps), 1):
        state = fuse.open_table(golden.FOLDER / name, version=version)
        assert sorted_rows(state.to_arrow().to_pylist()) == rows
        assert state.count() == len(rows)
        assert state.count("day = 'd1' AND n > 1") == sum(row["day"] == "d1" and (row["n"] or 0) > 1 for row in rows)
    assert table.version == version == len(steps) + 1
    operations = table.history().column("operation").to_pylist()[::-1]
    assert operations == ["create", *(OPERATIONS.get(step, step) for step, _ in steps)]
    assert table.tail.rows == {"partitioned": 4, "keyed": 6}[name]
    assert not table.stored.blocks().has_all_rows.all()
    check_invariants(table.stored)


def test_rows_of_a_golden_table_are_found_by_key_and_told_as_changes() -> None:
    table, states = fuse.open_table(golden.FOLDER / "keyed"), list(golden.rows_by_version(golden.KEYED))
    by_id = {row["id"]: row for row in states[-1]}
    sought = [41, 7, 9, 3, 0, 8, 29, 6]

    found = table.lookup([{"id": each, "day": f"d{each % 3}"} for each in sought]).to_pylist()
    told = table.changes(fuse.open_table(table.stored.store, version=5).snapshot.id).to_arrow().to_pylist()

    assert found == [by_id[each] for each in sought if each in by_id]
    old = {row["id"]: row for row in states[4]}
    expected = [("delete" if number not in by_id else "update_preimage", old[number]) for number in old]
    expected += [("update_postimage" if number in old else "insert", by_id[number]) for number in by_id]
    expected = [each for each in expected if old.get(each[1]["id"]) != by_id.get(each[1]["id"])]
    plain = [(row.pop("_change_type"), row) for row in told]
    assert sorted(plain, key=str) == sorted(expected, key=str)


@pytest.mark.parametrize("name", TABLES)
def test_a_golden_table_is_written_on(name: str, tmp_path: Path) -> None:
    table = fuse.open_table(shutil.copytree(golden.FOLDER / name, tmp_path / name))
    rows = list(golden.rows_by_version(TABLES[name]))[-1]
    table.append([{"id": 100, "day": "d5", "n": 1}])
    table.delete("id < 5")
    table.maintenance.tier()

    assert sorted_rows(table.to_arrow().to_pylist()) == [
        *(row for row in rows if row["id"] >= 5),
        {"id": 100, "day": "d5", "n": 1},
    ]
    assert table.tail.blocks == 0
    check_invariants(table.stored)


# --- by the document alone


class Document:
    """A reader of a head that knows nothing but docs/format.md."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        entry = json.loads(max(folder.glob("_refs/branch/main/*.json")).read_text())
        self.snapshot = json.loads((folder / entry["snapshot"]["path"]).read_text())
        fields = {field["id"]: field["name"] for field in self.snapshot["schemas"][0]["fields"]}
        self.key = [fields[column] for column in self.snapshot["properties"].get("key_ids", [])]

    def base(self) -> list[Row]:
        listed = pq.read_table(self.folder / self.snapshot["segments"]["list"]["path"]).column("id").to_pylist()
        return [row for name in listed for row in pq.read_table(self.folder / f"_sg/{name}.parquet").to_pylist()]

    def live_rows(self, block: Row) -> list[Row]:
        rows = pq.read_table(self.folder / (block["location"] or f"_b/{block['id']}.parquet")).to_pylist()
        if block["deletion_vector"] is None:
            return list(rows)
        key, offset, length = block["deletion_vector"].split(":")
        pack = (self.folder / key).read_bytes()
        data = b"".join(pack[start : start + 1024] for start in range(0, len(pack), 1028))
        frame = data[int(offset) : int(offset) + int(length)]
        bits = pa.Codec("zstd").decompress(frame, (len(rows) + 7) // 8, asbytes=True)
        live = [row for number, row in enumerate(rows) if not bits[number // 8] >> number % 8 & 1]
        assert len(live) == block["live_rows"]
        return live

    def tail(self) -> list[tuple[str, list[Row]]]:
        """Changes and rows of the blocks that the snapshot carries, and of its chain."""
        carried = pq.read_table(self.folder / self.snapshot["tail"]["list"]["path"]).to_pylist()
        found = [(block["change"], pq.read_table(self.folder / block["location"]).to_pylist()) for block in carried]
        for file in sorted((self.folder / "_refs/hot" / self.snapshot["id"]).glob("*.json")):
            for block in json.loads(file.read_text())["blocks"]:
                rows = pq.read_table(self.folder / f"_h/{block['id']}.parquet").to_pylist()
                found.append((block["change"], rows))
        return found

    def rows(self) -> list[Row]:
        base = [row for block in self.base() for row in self.live_rows(block)]
        if not self.key:
            return base + [row for _, rows in self.tail() for row in rows]
        last = {self.key_of(row): (change, row) for change, rows in self.tail() for row in rows}
        puts = [row for change, row in last.values() if change == "put"]
        return [row for row in base if self.key_of(row) not in last] + puts

    def key_of(self, row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in self.key)


@pytest.mark.parametrize("name", TABLES)
def test_the_document_is_enough_to_read_the_head(name: str) -> None:
    document, expected = Document(golden.FOLDER / name), list(golden.rows_by_version(TABLES[name]))[-1]

    assert sorted_rows(document.rows()) == expected
    changes = [change for change, _ in document.tail()]
    assert changes == {"partitioned": ["append"] * 3, "keyed": ["put", "delete", "put", "delete"]}[name]
    features = {"partitioned": ["partitions"], "keyed": ["primary-key"]}[name]
    assert document.snapshot["writer_features"] == features
    assert set(document.snapshot["reader_features"]) == {"hot", "deletion-vectors"}
    if name == "partitioned":
        partitions = [json.loads(block["partition"])[0] for block in document.base()]
        assert partitions == ["d0", "d1", "d2"]
        for block, partition in zip(document.base(), partitions, strict=True):
            assert {row["day"] for row in document.live_rows(block)} == {partition}
        assert PartitionSpec.from_snapshot(fuse.open_table(golden.FOLDER / name).snapshot) is not None
