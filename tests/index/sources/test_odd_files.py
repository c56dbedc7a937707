"""Files and paths that are right in a way that few writers have do not keep their folder from being attached."""

from pathlib import Path
from shutil import copy, rmtree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import fuse_index as fuse
from tests.index.sources.walks import assert_same_rows

ODD_FILES = Path(__file__).parents[2] / "golden" / "odd_files"
ROWS = pa.table({"id": pa.array(range(100), pa.int64()), "s": [str(n) for n in range(100)]})


def test_row_groups_without_rows_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    with pq.ParquetWriter(tmp_path / "lake" / "a.parquet", ROWS.schema) as writer:
        for start, count in [(0, 0), (0, 40), (0, 0), (0, 0), (40, 60), (0, 0)]:
            writer.write_table(ROWS.slice(start, count))
    with pq.ParquetWriter(tmp_path / "lake" / "b.parquet", ROWS.schema) as writer:
        writer.write_table(ROWS.slice(0, 0))

    table = fuse.attach(tmp_path / "lake", tmp_path / "table")
    table.create_index("by_s", "bloom", ["s"])
    assert_same_rows(table, ROWS, ["id = 77", "s = '7'", "id > 30 AND id < 50"])
    assert table.explain("id = 77").to_dict()["zones"] == {"total": 2, "kept": 1}


def test_an_empty_file_of_fastparquet_is_a_file_without_rows(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    copy(ODD_FILES / "fastparquet-2026.9.0-empty.parquet", tmp_path / "lake")
    pq.write_table(ROWS, tmp_path / "lake" / "rows.parquet")
    assert_same_rows(fuse.attach(tmp_path / "lake", tmp_path / "table"), ROWS, ["id = 5"])


def test_a_value_of_a_path_that_is_no_day_makes_all_of_them_texts(tmp_path: Path) -> None:
    for day in ("2018-02-28", "2018-02-30"):
        (tmp_path / "lake" / f"day={day}").mkdir(parents=True)
        pq.write_table(ROWS.slice(0, 1), tmp_path / "lake" / f"day={day}" / "a.parquet")

    table = fuse.attach(tmp_path / "lake", tmp_path / "table")
    assert table.schema.field("day").type == pa.string()
    assert table.scan("day = '2018-02-30'", columns=["day"]).to_arrow()["day"].to_pylist() == ["2018-02-30"]
    assert fuse.read_files(tmp_path / "lake", "parquet").read_all()["day"].to_pylist() == ["2018-02-28", "2018-02-30"]
    rmtree(tmp_path / "lake" / "day=2018-02-30")
    table.sync()
    assert table.count("day = '2018-02-28'") == table.count() == 1


def test_files_that_the_source_collected_are_told_with_what_to_do(tmp_path: Path) -> None:
    place = str(tmp_path / "lake")
    write_deltalake(place, ROWS)
    table = fuse.attach(place, tmp_path / "table", format="delta")
    table.create_index("by_s", "bloom", ["s"])
    write_deltalake(place, ROWS, mode="append")
    DeltaTable(place).optimize.compact()
    DeltaTable(place).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)

    told = r"there is no such file, although the table refers to it; sync the table if .* bring it back if"
    for read in (lambda: table.to_arrow(), lambda: table.to_arrow("s = '5'"), lambda: table.count("id = 5")):
        with pytest.raises(fuse.NotFound, match=told):
            read()
    with pytest.warns(fuse.PluginWarning, match=told):
        table.create_index("by_id", "bloom", ["id"])
    table.sync()
    assert table.count() == 200
    with pytest.raises(
        fuse.NotFound, match=r"version 0 of .*lake needs it.*sync to a later version \(the newest is 4\)"
    ):
        table.sync(to=0)
    for file in DeltaTable(place).file_uris():
        Path(file).unlink()
    with pytest.raises(fuse.NotFound, match=r"the newest version of .*lake lists it: bring it back there"):
        fuse.attach(place, tmp_path / "other", format="delta")


def test_a_version_whose_log_was_cleaned_up_is_told(tmp_path: Path) -> None:
    place = tmp_path / "lake"
    for _ in range(3):
        write_deltalake(str(place), ROWS, mode="append")
    table = fuse.attach(place, tmp_path / "table", format="delta")
    DeltaTable(str(place)).create_checkpoint()
    for version in (0, 1):
        (place / "_delta_log" / f"{version:020}.json").unlink()
    with pytest.raises(fuse.StorageError, match=r"lake has no log of version 0 any more: .*sync to a later version$"):
        table.sync(to=0)
    assert table.sync(to=2).rows == 300


def test_a_log_that_deltalake_cannot_read_is_told_without_its_frames(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "lake"), ROWS)
    log = tmp_path / "lake" / "_delta_log" / f"{0:020}.json"
    log.write_text(log.read_text().replace('"schemaString"', '"otherString"'))
    with pytest.raises(fuse.StorageError, match=r"cannot be read as a Delta table: .*schemaString") as told:
        fuse.attach(tmp_path / "lake", tmp_path / "table", format="delta")
    assert "<unknown>" not in str(told.value)
    assert "clone" not in str(told.value)
