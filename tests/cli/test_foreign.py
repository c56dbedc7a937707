"""Tables over files of others on the command line: attached, synced, converted."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

import fuse_index as fuse
from tests.cli.conftest import Run
from tests.index.sources.one_table import OneTable, delete_equal_rows


def test_a_folder_is_attached_synced_and_converted(run: Run, tmp_path: Path) -> None:
    lake, table = tmp_path / "lake", str(tmp_path / "table")
    lake.mkdir()
    pq.write_table(pa.table({"id": range(10)}), lake / "0.parquet")

    assert run("attach", str(lake), table).out == "attached 1 files, 10 rows\n"
    pq.write_table(pa.table({"id": range(5)}), lake / "1.parquet")
    assert "1 files came, 0 went: 15 rows" in run("sync", table).out
    assert json.loads(run("sync", table, "--json").out)["kept_files"] == 2
    assert run("delete", table, "--where", "id = 3").code == 1
    assert "no longer follows its source" in run("convert", table).out
    assert run("sync", table).code == 1
    assert fuse.open_table(table).count() == 15


def test_no_table_is_made_below_a_file(run: Run, tmp_path: Path) -> None:
    lake, file = tmp_path / "lake", tmp_path / "file.txt"
    lake.mkdir()
    pq.write_table(pa.table({"id": range(10)}), lake / "0.parquet")
    file.write_text("x")

    refused = run("attach", str(lake), f"{file}/below/it")
    assert refused.code == 1
    told = f"{file}/below/it is below {file}, which is a file, and a table is a folder"
    assert told.replace(" ", "") in "".join(refused.err.split())


def test_versions_of_delta_and_names_of_a_warehouse(run: Run, tmp_path: Path) -> None:
    lake, warehouse = str(tmp_path / "lake"), str(tmp_path / "warehouse")
    write_deltalake(lake, pa.table({"id": range(10)}))
    write_deltalake(lake, pa.table({"id": range(5)}), mode="append")
    fuse.catalog(warehouse, create=True).create_namespace("db")

    run("attach", lake, f"{warehouse}#db.t", "--format", "delta")
    assert "10 rows at 0" in run("sync", f"{warehouse}#db.t", "--to", "0").out
    assert fuse.catalog(warehouse).load_table("db.t").count() == 10
    assert "--format delta" in run("attach", lake, str(tmp_path / "other")).err


def test_rows_that_iceberg_deletes_by_their_values_are_gone(run: Run, tmp_path: Path) -> None:
    source = OneTable("test").create(tmp_path / "lake", pa.schema([("id", pa.int64())]))
    source.append(pa.table({"id": range(10)}))
    delete_equal_rows(source, tmp_path / "keys.parquet", pa.table({"id": [3]}))
    metadata, table = source.metadata_location.removeprefix("file://"), str(tmp_path / "table")

    assert run("attach", metadata, table, "--format", "iceberg").out == "attached 1 files, 9 rows\n"
    assert run("query", table, "--where", "id = 3", "--json").out == ""


def test_a_source_is_indexed_listed_and_forgotten(run: Run, tmp_path: Path) -> None:
    lake, warehouse = str(tmp_path / "lake"), str(tmp_path / "warehouse")
    write_deltalake(lake, pa.table({"id": range(10)}))

    assert run("index-source", lake, "-w", warehouse, "-k", "bloom", "-c", "id").out == f"indexed 1 files of {lake}\n"
    assert "'bloom_id' already" in run("index-source", lake, "-w", warehouse, "-k", "bloom", "-c", "id").err
    run("index-source", lake, "-w", warehouse, "-k", "bloom", "-c", "id", "--name", "tight", "-o", "fpp=0.001")
    (found,) = json.loads(run("source-indexes", "-w", warehouse, "--json").out)
    assert (found["source"], found["format"], found["indexes"]) == (lake, "delta", ["bloom_id", "tight"])
    assert "tight" in run("source-indexes", "-w", warehouse).out
    told = json.loads(run("explain", found["url"], "--where", "id = 77", "--json").out)
    assert told["blocks"] == {"total": 1, "kept": 0}
    refused = run("query", found["url"], "--where", "id = 7")
    assert (refused.code, "`explain` tells the votes" in refused.err) == (1, True)
    assert "no indexes any more" in run("drop-source-index", lake, "-w", warehouse).out
    assert json.loads(run("source-indexes", "-w", warehouse, "--json").out) == []


def test_a_table_for_votes_alone_is_attached_to_a_place(run: Run, tmp_path: Path) -> None:
    lake, table = str(tmp_path / "lake"), str(tmp_path / "table")
    write_deltalake(lake, pa.table({"id": range(10)}))

    assert run("attach", lake, f"{tmp_path}/warehouse#t", "--format", "delta", "--votes-only").code == 1
    assert run("attach", lake, table, "--format", "delta", "--votes-only").code == 0
    assert "votes on the files" in run("convert", table).err


def test_files_that_nobody_can_look_into_are_told(run: Run, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    pq.write_table(pa.table({"id": range(10)}), lake / "0.parquet")
    (lake / "1.parquet").write_text("PAR1 and no more")
    (lake / "2.parquet").write_bytes(b"")

    told = " ".join(run("attach", str(lake), str(tmp_path / "table"), "--votes-only").out.split())
    assert told.startswith("attached 1 files, 10 rows; no votes on 2 more, which cannot be looked into: ")
    assert "1.parquet" in told
    assert "2.parquet" in told
    found = json.loads(run("attach", str(lake), str(tmp_path / "other"), "--votes-only", "--json").out)
    assert (found["files"], found["unknown_files"]["count"]) == (1, 2)
    assert sorted(found["unknown_files"]["reasons"]) == [str(lake / "1.parquet"), str(lake / "2.parquet")]


@pytest.mark.filterwarnings("default::fuse_index.LeftOutWarning")
def test_columns_and_ages_are_chosen_as_in_python(run: Run, tmp_path: Path) -> None:
    lake, warehouse = tmp_path / "lake", str(tmp_path / "warehouse")
    lake.mkdir()
    pq.write_table(pa.table({"id": [1, 2], "n": [1, 2], "at": pa.array([1, 2], pa.time64("us"))}), lake / "0.parquet")
    pq.write_table(pa.table({"id": [3], "n": [0.5]}), lake / "1.parquet")
    fuse.catalog(warehouse, create=True)

    for place in (str(tmp_path / "table"), f"{warehouse}#t"):
        assert "int64" in run("attach", str(lake), place).err
        assert run("attach", str(lake), place, "--columns", "at", "--widen").code == 1
        done = run("attach", str(lake), place, "--widen", "--max-age", "1m", "--json")
        told = json.loads(done.out)
        assert "'at'" in done.err
        assert (told["rows"], list(told["left_out"])) == (3, ["at"])
    table = fuse.catalog(warehouse).load_table("t")
    assert table.snapshot.properties["max_age_seconds"] == 60
    assert table.to_arrow("n < 1", columns=["n"]).to_pylist() == [{"n": 0.5}]
    narrow = str(tmp_path / "narrow")
    assert run("attach", str(lake), narrow, "--columns", "id", "--columns", "n", "--widen").code == 0
    assert fuse.open_table(narrow).schema.names == ["id", "n"]


@pytest.mark.parametrize("format_", ["parquet", "delta"])
def test_a_column_that_a_source_lacks_is_told_with_those_that_it_has(run: Run, tmp_path: Path, format_: str) -> None:
    lake, table = tmp_path / "lake", str(tmp_path / "table")
    rows = pa.table({"id": [1], "city": ["Bonn"], "price": [2.5]})
    if format_ == "delta":
        write_deltalake(lake, rows, partition_by=["city"])
    else:
        (lake / "city=Bonn").mkdir(parents=True)
        pq.write_table(rows.drop_columns("city"), lake / "city=Bonn" / "0.parquet")

    def error(columns: str) -> str:
        done = run("attach", str(lake), table, "--format", format_, "--columns", columns)
        assert done.code == 1
        return " ".join(done.err.split())

    assert "has no column 'prize'; did you mean ['price']?" in error("id,prize")
    for name in ("id", "city", "price"):
        assert f"'{name}'" in error("id,nope").partition("has no column 'nope'; it has ")[2]
    with pytest.raises(fuse.InputError, match=r"columns=\[\] names none: name some, or leave it out for all"):
        fuse.attach(lake, table, format_, columns=[])
