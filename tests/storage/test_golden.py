"""Tables of every format version that was ever written are read, by this library and by docs/format.md alone."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import xxhash

from fuse_storage import StoredTable
from fuse_storage.testing import check_invariants
from tests.golden import make_deletion_vectors_v1, make_encodings_v1, make_hot_v1
from tests.storage.small import Totals, append, ids_of, known_by, truth

VERSIONS = sorted(path for path in (Path(__file__).parents[1] / "golden").glob("v*") if path.is_dir())


@pytest.fixture(params=VERSIONS, ids=lambda path: path.name)
def golden(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


def expected(golden: Path) -> dict[str, list[str]]:
    return dict(json.loads((golden / "expected.json").read_text()))


def told(rows: pa.Table) -> list[str]:
    return [json.dumps(row, default=str) for row in rows.to_pylist()]


def test_there_are_golden_tables() -> None:
    assert [path.name for path in VERSIONS] == ["v1"]


def test_all_rows_of_a_golden_table_are_read(golden: Path) -> None:
    table = StoredTable.open(golden / "table")
    blocks = table.blocks()

    rows = [
        row
        for block in range(len(blocks))
        for row in told(table.read_block(blocks, block, table.snapshot.schema.names))
    ]

    assert rows == expected(golden)["rows"]
    assert ids_of(StoredTable.open(golden / "table", at="first-nine")) == list(range(9))


def test_a_golden_table_keeps_all_that_was_said_of_it(golden: Path) -> None:
    table = StoredTable.open(golden / "table")

    assert [entry.operation for entry in table.history()] == expected(golden)["history"]
    assert table.snapshot.cluster_by == ("day", "place.lat")
    assert table.snapshot.properties == {"block_rows": 5, "zone_rows": 2, "owner": "nobody"}
    assert table.snapshot.applications == {"golden": 16}
    assert table.snapshot.summary["of"] == "people"
    assert list(table.snapshot.definitions) == ["totals"]
    for found, true in zip(known_by(table, "70a1"), truth(table), strict=True):
        assert found in (true, (None, None))
    assert sum(found != (None, None) for found in known_by(table, "70a1")) == len(table.blocks()) - 2


def test_a_golden_table_is_sound(golden: Path) -> None:
    check_invariants(StoredTable.open(golden / "table"))


def test_a_golden_table_is_written_on(golden: Path, tmp_path: Path) -> None:
    table = StoredTable.open(shutil.copytree(golden / "table", tmp_path / "table"))
    columns = table.snapshot.schema.arrow
    row = dict.fromkeys(columns.names) | {"id": 29}

    with table.writer([Totals()]) as writer:
        writer.write(pa.Table.from_pylist([row], columns))
        table = table.transaction([Totals()]).append(writer.finish()).commit()

    assert ids_of(table) == list(range(30))
    check_invariants(table)


# --- by the document alone ------------------------------------------------------------------------------------


class Document:
    """A reader that knows nothing but docs/format.md."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def json(self, reference: dict[str, Any]) -> dict[str, Any]:
        return dict(json.loads(self.whole(reference)))

    def columns(self, reference: dict[str, Any]) -> list[dict[str, Any]]:
        return list(pq.read_table(pa.BufferReader(self.whole(reference))).to_pylist())

    def whole(self, reference: dict[str, Any]) -> bytes:
        data = (self.folder / reference["path"]).read_bytes()
        assert (len(data), xxhash.xxh3_128_hexdigest(data)) == (reference["length"], reference["hash"])
        return data

    def head(self) -> dict[str, Any]:
        number = 1
        while self._entry(number + 1).exists():
            number += 1
        entry = json.loads(self._entry(number).read_bytes())
        checksum = entry.pop("checksum")
        text = json.dumps(entry, separators=(",", ":"), ensure_ascii=False)
        assert checksum == xxhash.xxh3_128_hexdigest(text.encode())
        assert (entry["kind"], entry["sequence"]) == ("snapshot", number)
        return dict(entry)

    def _entry(self, number: int) -> Path:
        return self.folder / f"_refs/branch/main/{number:020}.json"

    def snapshot(self) -> dict[str, Any]:
        entry = self.head()
        found = self.json(entry["snapshot"])
        assert (found["format"], found["format_version"], found["reader_features"]) == ("fuse-index table", 1, [])
        assert (found["id"], found["sequence"], found["commit"]) == (
            entry["snapshot"]["id"],
            entry["sequence"],
            entry["commit"],
        )
        return found

    def segments(self) -> list[dict[str, Any]]:
        return self.columns(self.snapshot()["segments"]["list"])

    def blocks(self, segment: dict[str, Any]) -> list[dict[str, Any]]:
        path = f"_sg/{segment['id']}.parquet"
        return self.columns({"path": path, "length": segment["length"], "hash": segment["hash"]})

    def rows(self, block: dict[str, Any]) -> pa.Table:
        """The rows under their physical names, every checksum of the seal verified."""
        path = block["location"] or f"_b/{block['id']}.parquet"
        data = self.whole({"path": path, "length": block["size"], "hash": block["hash"]})
        start, end = block["footer_offset"], block["footer_offset"] + block["footer_length"]
        assert end == len(data)
        metadata = pq.read_metadata(pa.BufferReader(data))
        zones = [metadata.row_group(zone) for zone in range(metadata.num_row_groups)]
        chunks = [zone.column(column) for zone in zones for column in range(metadata.num_columns)]
        counts = np.frombuffer(data, "<u4", len(chunks), start)
        lengths, held, sums = np.frombuffer(data, "<u4", 3 * counts.sum(), start + 4 * len(chunks)).reshape(3, -1)
        after = start + 4 * (len(chunks) + 3 * len(sums))
        assert data[after : after + 8] == xxhash.xxh3_64_digest(data[start:after] + data[after + 8 :])
        page = 0
        for chunk, count in zip(chunks, counts, strict=True):
            first = at = min(place for place in (chunk.dictionary_page_offset, chunk.data_page_offset) if place)
            assert held[page : page + count].sum() in (0, chunk.num_values)
            for number in range(page, page + count):
                assert sums[number] == xxhash.xxh3_64_intdigest(data[at : at + lengths[number]], number) & 0xFFFFFFFF
                at += int(lengths[number])
            assert at == first + chunk.total_compressed_size
            page += count
        assert [zone.num_rows for zone in zones] == block["zone_rows"]
        return pq.read_table(pa.BufferReader(data))

    def payload(self, row: dict[str, Any]) -> bytes:
        data = (self.folder / row["pack"]).read_bytes()
        assert len(data) == row["pack_length"]
        stride, logical = row["chunk"] + 4, b""
        for number, start in enumerate(range(0, len(data), stride)):
            chunk, checksum = data[start : start + stride][:-4], data[start : start + stride][-4:]
            assert int.from_bytes(checksum, "little") == xxhash.xxh3_64_intdigest(chunk, number) & 0xFFFFFFFF
            logical += chunk
        return logical[row["offset"] : row["offset"] + row["length"]]


def test_the_document_is_enough_to_read_all_rows() -> None:
    golden = VERSIONS[0]
    document = Document(golden / "table")
    fields = document.snapshot()["schemas"][0]["fields"]
    blocks = [block for segment in document.segments() for block in document.blocks(segment)]

    rows = pa.concat_tables([document.rows(block) for block in blocks])

    assert rows.column_names == [field.get("physical", field["name"]) for field in fields]
    assert rows.schema.field("place").type.field(2).name == "name_18"
    plain = [name for name in rows.column_names if name != "place"]
    names = [field["name"] for field in fields]
    kept = [
        {name: value for name, value in json.loads(text).items() if name != "place"}
        for text in expected(golden)["rows"]
    ]
    assert told(rows.select(plain)) == [json.dumps(row) for row in kept]
    assert [name for name in names if name != "place"] == plain


def test_the_document_is_enough_to_skip_blocks_and_to_number_rows() -> None:
    document = Document(VERSIONS[0] / "table")
    numbers = []
    for segment in document.segments():
        first = segment["first_row_id"]
        for block in document.blocks(segment):
            own = block["first_row_id"] if block["first_row_id"] is not None else first
            first = own + block["row_count"]
            ids = document.rows(block).column("id")
            assert (block["c.1.min"], block["c.1.max"]) == (pc.min(ids).as_py(), pc.max(ids).as_py())
            assert block["added_by"] or segment["added_by"]
            numbers += list(range(own, own + block["row_count"]))
            assert ids.to_pylist() == numbers[-block["row_count"] :]
    assert len(set(numbers)) == 29 == document.snapshot()["next_row_id"]


def test_the_document_is_enough_to_read_what_indexes_know() -> None:
    document = Document(VERSIONS[0] / "table")
    seen = 0
    for segment in document.segments():
        reference = {part: segment[f"x.70a1.{part}"] for part in ("path", "length", "hash")}
        if reference["path"] is None:
            continue
        rows, blocks = document.columns(reference), document.blocks(segment)
        assert len(rows) == len(blocks)
        assert sum(row["indexed"] for row in rows) == segment["x.70a1.indexed"]
        for row, block in zip(rows, blocks, strict=True):
            if row["indexed"]:
                ids = document.rows(block).column("id").to_pylist()
                assert (row["summary"], document.payload(row), row["version"]) == (sum(ids), repr(ids).encode(), 1)
                seen += 1
    assert seen > 5


def test_blocks_of_every_codec_and_encoding_are_read(tmp_path: Path) -> None:
    folder = make_encodings_v1.FOLDER / "table"
    table, document = StoredTable.open(folder), Document(folder)
    blocks = table.blocks()
    rows = [make_encodings_v1.row(number) for number in range(len(blocks) * make_encodings_v1.BLOCK_ROWS)]
    expected = told(pa.Table.from_pylist(rows, make_encodings_v1.COLUMNS))
    some = np.arange(make_encodings_v1.BLOCK_ROWS) % 311 == 7

    names, every = table.snapshot.schema.names, range(len(blocks))
    found = pa.concat_tables([table.read_block(blocks, block, names) for block in every])
    lookups = pa.concat_tables([table.read_block(blocks, block, names, row_mask=some) for block in every])
    by_document = [document.rows(block) for segment in document.segments() for block in document.blocks(segment)]

    assert len(blocks) == 8
    assert told(found) == expected
    assert told(lookups) == [text for text, keep in zip(expected, np.tile(some, 8), strict=True) if keep]
    assert [text for each in by_document for text in told(each)] == expected
    check_invariants(table)


def test_a_table_with_a_tail_and_chains_is_read() -> None:
    folder = make_hot_v1.FOLDER / "table"
    head = StoredTable.open(folder)

    for version, ids in make_hot_v1.IDS_BY_VERSION.items():
        state = StoredTable.open(folder, version=version)
        blocks, names = state.blocks(), head.snapshot.schema.names
        found = [state.read_block(blocks, block, names) for block in range(len(blocks))]
        assert [text for each in found for text in told(each)] == told(make_hot_v1.rows(*ids))
    assert (head.snapshot.version, head.snapshot.applications) == (8, {"golden": 7})
    assert [entry.operation for entry in head.history()] == ["append", "tier", *["append"] * 5, "create"]
    check_invariants(head)


def test_hot_entries_and_blocks_are_as_the_format_says() -> None:
    folder, rows = make_hot_v1.FOLDER / "table", dict[int, list[Any]]()
    files = sorted((folder / "_refs" / "hot").glob("*/*.json"))
    for entry in (json.loads(file.read_text()) for file in files):
        if entry["kind"] == "hot":
            (block,) = entry["blocks"]
            data = (folder / "_h" / f"{block['id']}.parquet").read_bytes()
            assert (len(data), sum(block["footer"])) == (block["size"], block["size"])
            rows[entry["version"]] = pq.read_table(pa.BufferReader(data)).column(0).to_pylist()
            bounds = block["columns"]["1"]
            assert (bounds["min"], bounds["max"], block["rows"]) == (*rows[entry["version"]] * 2, 1)
    assert rows == {3: [2], 4: [3], 6: [4], 8: [5]}
    assert [json.loads(file.read_text())["kind"] for file in files].count("snapshot") == 2
    assert [file.read_text() for file in sorted(folder.glob("_refs/hot/*/_hint"))] == ["1"] * 3


def test_states_of_a_golden_table_with_deletion_vectors_are_read() -> None:
    folder = make_deletion_vectors_v1.FOLDER / "table"
    for version, ids in make_deletion_vectors_v1.IDS_BY_VERSION.items():
        state = StoredTable.open(folder, version=version)
        assert ids_of(state) == ids
        assert state.snapshot.row_count == len(ids)
    check_invariants(StoredTable.open(folder))


def test_deletion_vectors_are_as_the_format_says() -> None:
    folder, found = make_deletion_vectors_v1.FOLDER / "table", list[int]()
    (branch,) = folder.glob("_refs/branch/main/*4.json")
    snapshot = json.loads((folder / json.loads(branch.read_text())["snapshot"]["path"]).read_text())
    assert (snapshot["reader_features"], snapshot["rows"]) == (["deletion-vectors"], 26)
    listed = pq.read_table(folder / snapshot["segments"]["list"]["path"]).column("id").to_pylist()
    blocks = [row for name in listed for row in pq.read_table(folder / "_sg" / f"{name}.parquet").to_pylist()]
    for block in blocks:
        path = block["location"] or f"_b/{block['id']}.parquet"
        ids, live = pq.read_table(folder / path).column("id").to_numpy(), np.ones(block["row_count"], np.bool_)
        if block["live_rows"] < block["row_count"]:
            key, offset, length = block["deletion_vector"].split(":")
            data = (folder / key).read_bytes()
            assert len(data) % 1028 == 0
            seed = xxhash.xxh3_64_intdigest(key.removeprefix("_d/").encode())
            assert data[1024:1028] == (xxhash.xxh3_64_intdigest(data[:1024], seed) & 0xFFFFFFFF).to_bytes(4, "little")
            vector = pa.Codec("zstd").decompress(data[int(offset) : int(offset) + int(length)], 2, asbytes=True)
            live = ~np.array([bool(vector[row // 8] >> row % 8 & 1) for row in range(block["row_count"])])
            assert not block["stats_exact"]
        found += ids[live].tolist()
        assert live.sum() == block["live_rows"]
    assert found == make_deletion_vectors_v1.IDS_BY_VERSION[4]
    assert len({block["id"] for block in blocks}) == len(list((folder / "_b").iterdir())) == 3


def test_appending_does_not_change_what_a_golden_table_is_made_of(tmp_path: Path) -> None:
    """So many files, and of these kinds, are a commit: whoever adds one changes the format."""
    table = StoredTable.create(tmp_path / "t", pa.schema([("id", pa.int64()), ("name", pa.string())]))
    for ids, zones_files in (([1], []), ([2, 3], ["_sg"])):  # a block of one zone has no zones file
        before = {found.key for found in table.store.list()}
        table = append(table, *ids, zone_rows=1)

        new = sorted(found.key.split("/")[0] for found in table.store.list() if found.key not in before)
        assert new == ["_b", "_refs", "_sg", *zones_files, "_ss", "_ss"]
