"""Tables over files of others on the command line: attached, synced, converted."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
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


def test_versions_of_delta_and_names_of_a_warehouse(run: Run, tmp_path: Path) -> None:
    lake, warehouse = str(tmp_path / "lake"), str(tmp_path / "warehouse")
    write_deltalake(lake, pa.table({"id": range(10)}))
    write_deltalake(lake, pa.table({"id": range(5)}), mode="append")
    fuse.catalog(warehouse, create=True).create_namespace("db")

    run("attach", lake, f"{warehouse}#db.t", "--format", "delta")
    assert "10 rows at 0" in run("sync", f"{warehouse}#db.t", "--to", "0").out
    assert fuse.catalog(warehouse).load_table("db.t").count() == 10
    assert "--format delta" in run("attach", lake, str(tmp_path / "other")).err


def test_equality_deletes_of_iceberg_are_refused_in_one_line(run: Run, tmp_path: Path) -> None:
    source = OneTable("test").create(tmp_path / "lake", pa.schema([("id", pa.int64())]))
    source.append(pa.table({"id": range(10)}))
    delete_equal_rows(source, tmp_path / "keys.parquet", pa.table({"id": [3]}))
    metadata = source.metadata_location.removeprefix("file://")
    refused = run("attach", metadata, str(tmp_path / "table"), "--format", "iceberg")

    assert refused.code == 1
    assert "keys.parquet has equality deletes (by id)" in refused.err
    assert len(refused.err.splitlines()) == 1
