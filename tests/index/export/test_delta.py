"""What is exported as a Delta table is read by Delta's own reader as we read it."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from pyiceberg.table import StaticTable

import fuse_index as fuse
from fuse_index.cli.program import main

pytestmark = pytest.mark.any_spark  # its readers are not those that come with the oldest Spark: DuckDB's extensions

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("small", pa.int8()),
        ("f", pa.float32()),
        ("name", pa.string()),
        ("data", pa.binary()),
        ("on", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("price", pa.decimal128(10, 2)),
        ("flag", pa.bool_()),
        ("s", pa.struct([("a", pa.int32()), ("l", pa.list_(pa.string()))])),
        ("m", pa.map_(pa.string(), pa.int64())),
    ]
)


def row(n: int) -> dict[str, Any]:
    if n % 5 == 4:
        return {"id": n}
    return {
        "id": n,
        "small": n % 100,
        "f": n / 4,
        "name": "ü" * (n + 20),
        "data": bytes([n]) * 40,
        "on": date(2026, 1, 1 + n % 20),
        "at": datetime(2026, 1, 1, n % 24, tzinfo=UTC),
        "price": Decimal(n) / 4,
        "flag": n % 2 == 0,
        "s": {"a": n, "l": ["x", None]},
        "m": [("k", n)],
    }


@pytest.fixture
def table(tmp_path: Path) -> fuse.Table:
    made = fuse.create_table(tmp_path / "a table", SCHEMA, properties={"block_rows": 10})
    made.append(pa.Table.from_pylist([row(n) for n in range(40)], SCHEMA))
    return made


def delta(table: fuse.Table, **named: Any) -> list[dict[str, Any]]:
    found = pa.table(DeltaTable(table.stored.store.url, **named).to_pyarrow_table())
    return sorted(found.to_pylist(), key=lambda each: each["id"])


def ours(table: fuse.Table) -> list[dict[str, Any]]:
    return sorted(table.to_arrow().to_pylist(), key=lambda each: each["id"])


def test_delta_reads_what_we_read(table):
    assert table.export_delta() == 0

    assert delta(table) == ours(table)
    reader = DeltaTable(table.stored.store.url)
    assert pa.schema(reader.schema().to_arrow()).names == SCHEMA.names
    adds = pa.table(reader.get_add_actions(flatten=True))
    assert adds.column("num_records").to_pylist() == [10] * 4
    assert sorted(zip(adds["min.id"].to_pylist(), adds["max.id"].to_pylist(), strict=True)) == [
        (0, 9),
        (10, 19),
        (20, 29),
        (30, 39),
    ]
    files = table.inspect.files()
    assert duckdb.sql(f"SELECT sum(id) FROM read_parquet({files!r})").fetchall() == [(780,)]


def test_deltalake_skips_no_file_for_bounds_that_it_lacks(tmp_path):
    columns = "id BIGINT, x DOUBLE, flag BOOLEAN, `a b` INT, name STRING"
    table = fuse.create_table(tmp_path / "t", columns, properties={"block_rows": 4, "exports": "delta"})
    whole = {"x": 2.5, "flag": True, "a b": 7, "name": "n"}
    table.append([{"id": n, **whole} for n in range(4)] + [{"id": n} for n in range(4, 9)])
    table.add_column("late", "int")
    table.append([{"id": 20, **whole, "late": 3}, {"id": None, "name": "z"}])

    dataset = DeltaTable(str(tmp_path / "t")).to_pyarrow_dataset()
    name = pc.field
    for condition in [
        *(name("x") > 1.0, name("x").is_null(), name("x").is_valid(), ~(name("x") > 3.0)),
        *(name("flag"), name("flag").is_null(), name("a b") == 7, name("a b").is_null(), name("late") == 3),
        *(name("late").is_null(), name("late").is_valid(), ~(name("late") < 3), name("id").is_null()),
        *(name("name").is_null(), name("name") >= "n", name("id") > 3, (name("id") > 3) & name("late").is_null()),
    ]:
        found = dataset.to_table(filter=condition).num_rows
        assert found == table.to_arrow().filter(condition).num_rows > 0 or "late < 3" in str(condition), condition
    pruned = dataset.get_fragments(filter=name("id") > 10)
    assert len(list(pruned)) == 1


def test_each_export_is_a_version(table):
    table.export_delta()
    first = ours(table)
    table.delete("id < 15")
    table.append([row(50)])

    assert table.export_delta() == 1
    assert delta(table) == ours(table)
    assert delta(table, version=0) == first
    assert table.export_delta() == 1
    table.add_column("more", "int")
    assert table.export_delta() == 2
    table.append([{"id": 60, "more": 1}])
    assert table.export_delta() == 3
    assert delta(table) == ours(table)
    table.maintenance.vacuum(dry_run=False)
    assert delta(table) == ours(table)


def test_an_empty_table_and_an_older_snapshot_are_exported(table, tmp_path):
    empty = fuse.create_table(tmp_path / "empty", SCHEMA)
    empty.export_delta()
    assert delta(empty) == []
    then, rows = table.snapshot.id, ours(table)
    table.delete("id >= 0")
    old = fuse.open_table(table.stored.store, at=then)
    old.export_delta()
    assert delta(table) == rows


def test_a_clone_names_files_of_its_source(table, tmp_path):
    table.clone(str(tmp_path / "clone")).export_delta()

    log = (tmp_path / "clone" / "_delta_log" / "00000000000000000000.json").read_text().splitlines()
    paths = [json.loads(line)["add"]["path"] for line in log if '"add"' in line]
    assert [Path(unquote(urlsplit(path).path)) for path in paths] == [Path(name) for name in table.inspect.files()]


def test_what_delta_cannot_say_is_refused(table):
    table.add_column("country", "string", default="DE")
    with pytest.raises(
        fuse.SchemaError, match=r"column 'country' is 'DE' in rows that were there before it.*table.update"
    ):
        table.export_delta()
    table.update(None, {"country": "country"})
    table.export_delta()
    assert delta(table) == ours(table)


def test_a_log_of_somebody_else_is_left_alone(table):
    table.export_delta()
    log = Path(table.stored.store.url, "_delta_log", "00000000000000000001.json")
    log.write_text('{"commitInfo": {"engineInfo": "other"}}\n')

    with pytest.raises(fuse.Conflict, match="was written by other"):
        table.export_delta()
    log.rename(log.with_name("00000000000000000007.json"))
    with pytest.raises(fuse.Conflict, match="not of exports only"):
        table.export_delta()


def test_a_command_exports_too(table, capsys):
    url = table.stored.store.url
    for arguments in (["--format", "delta"], ["--format", "iceberg", "--json"]):
        with pytest.raises(SystemExit) as ended:
            main(["export", url, *arguments])
        assert ended.value.code in (None, 0)

    first, second = capsys.readouterr().out.split("\n", 1)
    assert first == "version 0"
    assert json.loads(second)["written"].endswith("/metadata/v1.metadata.json")
    assert delta(table) == ours(table)


def test_days_that_python_has_not_are_exported(tmp_path):
    table = fuse.create_table(tmp_path / "t", "id BIGINT, d DATE", properties={"exports": "delta, iceberg"})
    for day in ("DATE '2020-01-02'", "'infinity'::DATE", "'-infinity'::DATE", "NULL::DATE"):
        rows = duckdb.sql(f"SELECT 1::BIGINT AS id, {day} AS d").to_arrow_table()
        table.append(rows)
    expected = sorted(table.to_arrow()["d"].cast(pa.int32()).to_pylist(), key=str)
    found = DeltaTable(str(tmp_path / "t")).to_pyarrow_table()["d"].cast(pa.int32()).to_pylist()
    assert sorted(found, key=str) == expected
    iceberg = StaticTable.from_metadata(table.export_iceberg()).scan().to_arrow()["d"].cast(pa.int32()).to_pylist()
    assert sorted(iceberg, key=str) == expected
