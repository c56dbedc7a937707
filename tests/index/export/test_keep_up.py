"""Exports that a property keeps up: after each commit the other's reader finds what we do."""

import threading
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyiceberg.table import StaticTable

import fuse_index as fuse
from fuse_index.cli.program import main
from fuse_index.export import keep_up
from tests.index.export.readers import query_delta, read_delta, read_iceberg


def delta_ids(place: Path) -> list[int]:
    return sorted(DeltaTable(str(place)).to_pyarrow_table().column("id").to_pylist())


def iceberg_ids(place: Path) -> list[int]:
    version = (place / "metadata" / "version-hint.text").read_text()
    found = StaticTable.from_metadata(str(place / "metadata" / f"v{version}.metadata.json"))
    return sorted(found.scan().to_arrow().column("id").to_pylist())


def ids(place: Path) -> list[int]:
    return sorted(fuse.open_table(place).to_arrow(columns=["id"]).column("id").to_pylist())


def command(*words: str) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(list(words))


def test_each_commit_is_exported(tmp_path: Path) -> None:
    place = tmp_path / "table"
    table = fuse.create_table(place, "id BIGINT, s STRING", properties={"exports": "delta, iceberg", "block_rows": 10})
    steps = [
        lambda: table.append([{"id": n, "s": str(n)} for n in range(35)]),
        lambda: table.delete("id < 12"),
        lambda: table.update("id = 20", {"id": "-20"}),
        lambda: table.maintenance.compact(),
        lambda: table.create_index("by_s", "bloom", ["s"]),
        lambda: table.add_column("more", "INT"),
        lambda: command("delete", str(place), "--where", "id = 13"),
    ]
    for step in steps:
        step()
        table.refresh()
        assert ids(place) == delta_ids(place) == iceberg_ids(place)
    branch = table.branch("side")
    branch.append([{"id": 99}])
    assert 99 not in delta_ids(place)
    table.set_properties({"exports": None})
    table.append([{"id": 100}])
    assert 100 not in delta_ids(place)


def test_rows_of_hot_commits_are_exported_when_they_are_tiered(tmp_path: Path) -> None:
    table = fuse.create_table(tmp_path, "id BIGINT", properties={"exports": "delta", "hot_rows": 10, "tail_commits": 3})
    for n in range(3):
        table.append([{"id": n}])
    assert not (tmp_path / "_delta_log").exists()
    table.append([{"id": 3}])

    assert delta_ids(tmp_path) == ids(tmp_path) == [0, 1, 2, 3]


def test_who_is_slower_exports_what_others_committed_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = fuse.create_table(tmp_path, "id BIGINT", properties={"exports": "delta"})
    export, once = keep_up._EXPORTS["delta"], threading.Event()

    def slow(head):
        if not once.is_set():
            once.set()
            fuse.open_table(tmp_path).append([{"id": 2}])
        return export(head)

    monkeypatch.setattr(keep_up, "_EXPORTS", {"delta": slow})
    table.append([{"id": 1}])

    assert delta_ids(tmp_path) == [1, 2]


def test_a_commit_whose_export_is_hindered_stands_and_says_so(tmp_path: Path) -> None:
    table = fuse.create_table(tmp_path, "id BIGINT, s STRING", properties={"exports": "delta"})
    table.append([{"id": 1}])
    (tmp_path / "_delta_log" / f"{1:020}.json").write_text('{"commitInfo": {"engineInfo": "other"}}')
    with pytest.warns(fuse.ExportWarning, match=r"was made, and its export as delta was not: .* was written by other"):
        table.append([{"id": 2}])
    assert table.count() == fuse.open_table(tmp_path).count() == 2
    with pytest.raises(fuse.InvalidArgument, match=r"exports = 'hudi'.*delta or iceberg"):
        table.set_properties({"exports": "hudi"})
    with pytest.raises(fuse.InvalidArgument, match="exports = 1"):
        fuse.create_table(tmp_path / "other", "id BIGINT", properties={"exports": 1})


REPLACEMENTS: list[tuple[str, list[dict[str, Any]]]] = [
    ("id BIGINT, a INT, b STRUCT<x: INT, y: STRING>", [{"id": 1, "a": 5, "b": {"x": 1, "y": "k"}}]),
    ("id BIGINT, b STRING, a STRUCT<x: STRING, y: INT>", [{"id": 2, "b": "q", "a": {"x": "1", "y": 5}}]),
    ("id BIGINT, a INT, b STRUCT<x: INT, y: STRING>", [{"id": 3, "a": 6, "b": {"x": 2, "y": "l"}}]),
]
"""Types are exchanged, and back."""


@pytest.mark.parametrize("key", [{}, {"primary_key": ["id"]}], ids=["heap", "keyed"])
def test_what_takes_a_table_s_place_is_exported(tmp_path: Path, key: dict[str, Any]) -> None:
    catalog = fuse.catalog(tmp_path / "warehouse", create=True)
    catalog.create_table("t", "id BIGINT, c INT", **key)
    raced = catalog.stage_table("t", "id BIGINT, c STRING", **key, replace=True)
    exports = {"exports": "delta,iceberg"}
    for columns, rows in REPLACEMENTS:
        staged = catalog.stage_table("t", columns, properties=exports, **key, replace=True)
        put = staged.table.upsert if key else staged.table.append
        put(rows)
        if rows[0]["id"] == 1:
            raced.commit()
        staged.commit()
        if key:  # a put of the table itself is exported where it lies in blocks
            table = catalog.load_table("t")
            table.upsert([{**rows[0], "id": 9}])
            table.delete("id = 9")
            table.maintenance.tier()
        place = Path(staged.table.stored.store.url)
        for read in (read_delta, read_iceberg):
            assert {name: found for name, found in read(place) if found != rows} == {}
    assert query_delta(place, where="a = 6 AND b.x = 2") == rows
