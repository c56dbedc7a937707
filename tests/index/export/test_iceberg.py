"""What is exported as an Iceberg table is read by PyIceberg as we read it."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.expressions import EqualTo, GreaterThanOrEqual
from pyiceberg.table import StaticTable

import fuse_index as fuse
from tests.index.export.test_delta import SCHEMA, ours, row

pytestmark = pytest.mark.any_spark  # its reader is not one that comes with the oldest Spark: DuckDB's extensions


@pytest.fixture
def table(tmp_path: Path) -> fuse.Table:
    made = fuse.create_table(tmp_path / "table", SCHEMA, properties={"block_rows": 10})
    made.append(pa.Table.from_pylist([row(n) for n in range(40)], SCHEMA))
    return made


def read(url: str, **named: Any) -> list[dict[str, Any]]:
    found = StaticTable.from_metadata(url).scan(**named).to_arrow()
    return sorted(found.to_pylist(), key=lambda each: each["id"])


def test_pyiceberg_reads_what_we_read(table):
    url = table.export_iceberg()

    assert url.endswith("/metadata/v1.metadata.json")
    assert read(url) == ours(table)
    assert [each["id"] for each in read(url, row_filter=GreaterThanOrEqual("id", 35))] == list(range(35, 40))
    tasks = StaticTable.from_metadata(url).scan(row_filter=EqualTo("id", 5)).plan_files()
    assert len(list(tasks)) == 1
    assert Path(table.stored.store.url, "metadata", "version-hint.text").read_text() == "1"
    assert table.export_iceberg() == url


def test_columns_that_changed_are_read_by_their_ids(table):
    table.rename_column("name", "called")
    table.rename_column("s.a", "b")
    table.move_column("called", first=True)
    table.change_type("s.b", "bigint")
    table.drop_column("flag")
    table.add_column("name", "int")
    table.add_column("s.c", "string")
    table.append([{"id": 60, "name": 7, "s": {"b": 1 << 40, "c": "new"}}])
    table.delete("id < 5")

    assert read(table.export_iceberg()) == ours(table)
    table.maintenance.vacuum(dry_run=False)
    assert read(table.export_iceberg()) == ours(table)


def test_an_empty_table_and_an_older_snapshot_are_exported(table, tmp_path):
    empty = fuse.create_table(tmp_path / "empty", SCHEMA)
    assert read(empty.export_iceberg()) == []
    then, rows = table.snapshot.id, ours(table)
    table.delete("id >= 0")
    assert read(fuse.open_table(table.stored.store, at=then).export_iceberg()) == rows
    assert read(table.export_iceberg()) == []


def test_a_clone_is_read_with_the_files_of_its_source(table, tmp_path):
    clone = table.clone(str(tmp_path / "clone"))
    clone.append([row(70)])

    assert read(clone.export_iceberg()) == ours(clone)


def test_what_iceberg_cannot_say_is_refused(table):
    table.change_type("small", "double")
    with pytest.raises(fuse.SchemaError, match="column 'small' was int8 in some blocks and is double"):
        table.export_iceberg()


def test_metadata_of_somebody_else_is_left_alone(table):
    url = Path(table.export_iceberg().removeprefix("file://"))
    url.with_name("v2.metadata.json").write_text(url.read_text().replace("fuse-index.snapshot", "other"))

    with pytest.raises(fuse.Conflict, match="not of exports only"):
        table.export_iceberg()
