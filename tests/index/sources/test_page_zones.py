"""Lookups in a row group of somebody else's file read pages of it; whatever its index of pages says, rows are right."""

import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import fuse_index as fuse
from fuse_storage import process_cache
from fuse_storage.parquet.foreign.thrift_footer import page_locations, parse_footer
from fuse_storage.parquet.reader import _ZoneReader
from tests.effort import in_turn

COUNT = 60_000


def rows(count: int = COUNT, seed: int = 0) -> pa.Table:
    """Keys that are anywhere, in a dictionary that a writer gives up, NULLs, and columns whose pages end elsewhere."""
    draw = np.random.default_rng(seed)
    keys = draw.permutation(count)
    return pa.table(
        {
            "id": pa.array(np.arange(count)),
            "key": [f"key {key:08} of somebody in particular" for key in keys.tolist()],
            "city": pa.array([None if city == 7 else f"city {city}" for city in draw.integers(0, 50, count).tolist()]),
            "amount": draw.random(count),
            "none": pa.nulls(count, pa.int32()),
            "many": pa.array([[number, number + 1][: number % 3] for number in range(count)], pa.list_(pa.int64())),
            "part": pa.array([{"a": number, "b": str(number)} for number in range(count)]),
        }
    )


CONDITIONS = [
    "key = 'key 00012345 of somebody in particular'",
    "key IN ('key 00000001 of somebody in particular', 'key 00059999 of somebody in particular')",
    "id = 47777",
    "id BETWEEN 29990 AND 30010",
    "city IS NULL AND id < 50",
    "none IS NULL AND id >= 59990",
    "none IS NOT NULL",
    "part.a = 55555",
    "id % 20000 = 0",
]


def attached(place: Path, **options: Any) -> tuple[fuse.Table, pa.Table]:
    """A table over one file, with an index on a key."""
    (place / "lake").mkdir()
    written = rows()
    settings = {"write_page_index": True, "row_group_size": COUNT, "data_page_size": 64 << 10} | options
    pq.write_table(written, place / "lake" / "a.parquet", **settings)
    table = fuse.attach(place / "lake", place / "table")
    table.create_index("by_key", "bloom", ["key"])
    return table, written


FILES: list[dict[str, Any]] = [
    {},
    {"data_page_version": "2.0", "compression": "zstd"},
    {"use_dictionary": False, "write_statistics": False},
    {"row_group_size": 33_333},
    {"write_page_index": False},
    {"data_page_size": 1 << 30, "max_rows_per_page": COUNT},
    {"data_page_size": 1 << 10, "max_rows_per_page": 500},
]


@pytest.mark.parametrize(("turn", "options"), list(enumerate(FILES)))
def test_rows_are_those_of_the_file_however_its_pages_lie(tmp_path: Path, turn: int, options: dict[str, Any]) -> None:
    table, written = attached(tmp_path, **options)
    assert_same(table, written, in_turn(CONDITIONS, turn, 3))


def test_a_lookup_decodes_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, _ = attached(tmp_path)
    told = table.explain(CONDITIONS[0]).to_dict()
    assert told["zones"]["total"] >= 3
    assert told["zones"]["kept"] == 1
    assert told["rows"]["kept"] <= 20_480
    decoded = list[int]()
    fetch = _ZoneReader._fetch_pages

    def counted(reader: _ZoneReader, ranges: Any, pages: Any) -> Any:
        decoded.append(sum(length for _, length in ranges))
        return fetch(reader, ranges, pages)

    monkeypatch.setattr(_ZoneReader, "_fetch_pages", counted)
    assert table.to_arrow(CONDITIONS[0], columns=["id", "key", "amount"]).num_rows == 1
    whole = (tmp_path / "lake" / "a.parquet").stat().st_size
    assert 0 < sum(decoded) < whole / 2


def test_a_dictionary_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another lookup reads only pages that refer to it, until the process forgets what it has read."""
    written = rows().select(["id"]).append_column("word", pa.array([f"word {n % 9000:09} so" for n in range(COUNT)]))
    (tmp_path / "lake").mkdir()
    place = tmp_path / "lake" / "a.parquet"
    settings = {"write_page_index": True, "data_page_size": 16 << 10, "write_page_checksum": True}
    pq.write_table(written, place, row_group_size=COUNT, **settings)
    table = fuse.attach(tmp_path / "lake", tmp_path / "table")
    table.create_index("by_id", "bloom", ["id"])
    process_cache.clear()
    fetched = list[int]()
    fetch = _ZoneReader._fetch_pages

    def counted(reader: _ZoneReader, ranges: Any, pages: Any) -> Any:
        fetched.append(sum(length for _, length in ranges))
        return fetch(reader, ranges, pages)

    monkeypatch.setattr(_ZoneReader, "_fetch_pages", counted)
    sizes = []
    for number in (31_234, 31_235, 31_236, 31_237):
        fetched.clear()
        if number == 31_237:
            process_cache.clear()
        found = table.scan(f"id = {number}", columns=["word"]).to_arrow()
        assert found["word"].to_pylist() == [written["word"][number].as_py()]
        sizes.append(sum(fetched))
    assert sizes[1] == sizes[2] < sizes[0] / 2
    assert sizes[3] == sizes[0]
    assert table.to_arrow().sort_by("id") == written.cast(table.schema)


def test_files_of_deltalake_are_read_by_the_page_from_version_to_version(tmp_path: Path) -> None:
    place = str(tmp_path / "lake")
    write_deltalake(place, rows().drop_columns(["none"]))
    table = fuse.attach(place, tmp_path / "table", format="delta")
    table.create_index("by_key", "bloom", ["key"])
    assert table.explain(CONDITIONS[0]).to_dict()["zones"] == {"total": table_zones(table), "kept": 1}
    assert table_zones(table) >= 3
    conditions = [each for each in CONDITIONS if "none" not in each]
    DeltaTable(place).delete("id = 47777")
    write_deltalake(place, rows(30_000, 1).drop_columns(["none"]), mode="append")
    table.sync()
    assert_same(table, DeltaTable(place).to_pyarrow_table().sort_by("key"), conditions, "key")


def assert_same(table: fuse.Table, expected: pa.Table, conditions: Iterable[str], order: str = "id") -> None:
    """The table has just these rows, and gives the same with indexes and without on each condition."""
    assert expected.cast(table.schema) == table.to_arrow().sort_by(order)
    for condition in conditions:
        used, unused = (table.scan(condition, indexes=each).to_arrow() for each in (True, False))
        assert used.sort_by(order) == unused.sort_by(order), condition
        assert table.count(condition) == len(unused)


def test_a_zone_map_has_bounds_of_pages_where_a_footer_has_those_of_a_row_group(tmp_path: Path) -> None:
    table, written = attached(tmp_path)
    conditions = ["id BETWEEN 29990 AND 30010", "amount IS NULL", "amount > 1.5", "amount = 0.25", "length(city) = 6"]
    assert table.explain(conditions[0]).zones.kept == table_zones(table)
    for column in ("id", "amount", "length(city)"):
        table.create_index(f"{column[:6]}_bounds", "zone_map", [column])
    assert table.explain(conditions[0]).zones.kept <= 2
    assert table.explain("amount > 1.5").zones.kept == 0
    assert_same(table, written, conditions)


def table_zones(table: fuse.Table) -> int:
    return int(table.explain("id = 1").to_dict()["zones"]["total"])


@pytest.mark.parametrize("damage", ["first rows", "lengths", "offsets", "noise"])
def test_an_index_of_pages_that_lies_costs_time_and_no_row(tmp_path: Path, damage: str) -> None:
    """Statistics of each chunk in turn are believed only where the pages say the same."""
    written = rows(60_000).select(["id", "key", "city"])
    file = io.BytesIO()
    pq.write_table(written, file, write_page_index=True, row_group_size=60_000, data_page_size=64 << 10)
    data = file.getvalue()
    length = int.from_bytes(data[-8:-4], "little")
    for chunk in parse_footer(data[-8 - length :], "here").groups[0].chunks:
        assert chunk.offset_index is not None
        start, size = chunk.offset_index
        spoilt = bytearray(data)
        assert len(page_locations(data[start : start + size])) > 1
        draw = np.random.default_rng(size)
        for at in draw.integers(start, start + size, 3 if damage == "noise" else 1).tolist():
            spoilt[at] = (spoilt[at] + {"first rows": 2, "lengths": 16, "offsets": 128}.get(damage, 77)) % 256
        place = tmp_path / str(start)
        (place / "lake").mkdir(parents=True)
        (place / "lake" / "a.parquet").write_bytes(bytes(spoilt))
        table = fuse.attach(place / "lake", place / "table")
        table.create_index("by_key", "bloom", ["key"])
        assert_same(table, written, ["id = 31234", "key = 'key 00012345 of somebody in particular'", "id < 3"])
