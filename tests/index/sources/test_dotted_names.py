"""Columns with dots in their names, as flattened JSON has them, beside structs whose paths look the same."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import fuse_index as fuse
from tests.index.sources.walks import assert_same_rows

CONDITIONS = ["`a.b` = 'y7'", "`a.b` IS NULL", "a.b = 7", "`t.x` > TIMESTAMP'2024-01-01 00:00:05Z'", "`s.t`.u < 4"]


def rows(first: int, **others: Any) -> pa.Table:
    numbers = range(first, first + 20)
    times = pa.array([datetime(2024, 1, 1, 0, 0, n % 60) for n in numbers], pa.timestamp("ns", "UTC"))
    columns = {
        "id": pa.array(numbers, pa.int64()),
        "a.b": [None if n % 9 == 0 else f"y{n}" for n in numbers],
        "t.x": times,
        "l.m": [[n, None] for n in numbers],
        "s.t": [{"u": n} for n in numbers],
    }
    return pa.table(columns | others)


def structs(first: int) -> pa.Array:
    return pa.array([{"b": n} for n in range(first, first + 20)])


def as_read(*tables: pa.Table) -> pa.Table:
    """The rows as the table has them: times in microseconds."""
    whole = pa.concat_tables(tables, promote_options="default")
    at = whole.schema.get_field_index("t.x")
    return whole.set_column(at, "t.x", whole.column(at).cast(pa.timestamp("us", "UTC")))


def test_dotted_names_go_by_quoting(tmp_path: Path) -> None:
    """Some files have the struct ``a`` with ``b`` in it, some the column ``a.b``, and one has both."""
    files = [rows(0), rows(20, a=structs(20)), rows(40, a=structs(40)).drop_columns(["a.b"])]
    for number, each in enumerate(files):
        (tmp_path / "lake").mkdir(exist_ok=True)
        pq.write_table(each, tmp_path / "lake" / f"{number}.parquet", row_group_size=7)
    table = fuse.attach(tmp_path / "lake", tmp_path / "table")
    assert not table.inspect.left_out()
    table.create_index("by_text", "bloom", ["`a.b`"])
    table.create_index("by_number", "bloom", ["a.b"])
    assert_same_rows(table, as_read(*files), CONDITIONS)
    assert table.scan("`a.b` = 'y7'", ["id"]).to_arrow().column("id").to_pylist() == [7]
    assert table.scan("a.b = 47", ["id"]).to_arrow().column("id").to_pylist() == [47]
    assert table.scan("a.b = 7").count() == table.scan("`a.b` = 'y47'").count() == 0
    assert table.count("`a.b` IS NULL") == 5 + 20
    assert table.count("a IS NULL") == 20
    assert table.explain("`a.b` = 'y7x'").blocks.kept == 0

    pq.write_table(rows(60, a=structs(60)), tmp_path / "lake" / "3.parquet")
    table.sync()
    assert_same_rows(table, as_read(*files, rows(60, a=structs(60))), CONDITIONS)
    with pytest.raises(fuse.Unsupported, match=r"'a\.b'.*a dot in its name"):
        table.convert()


def test_a_struct_that_was_not_wanted_is_no_column_with_a_dot(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    pq.write_table(rows(0), tmp_path / "lake" / "0.parquet")
    pq.write_table(pa.table({"id": range(20, 40), "a": structs(20)}), tmp_path / "lake" / "1.parquet")
    table = fuse.attach(tmp_path / "lake", tmp_path / "table", columns=["id", "a.b"])
    assert table.count("`a.b` IS NULL") == 3 + 20
    assert table.to_arrow("id = 21").to_pylist() == [{"id": 21, "a.b": None}]


def test_dotted_names_within_structs_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    pq.write_table(pa.table({"id": [1], "s": [{"u.v": 1}]}), tmp_path / "lake" / "0.parquet")
    with pytest.warns(fuse.LeftOutWarning, match=r"'s\.u\.v'"):
        table = fuse.attach(tmp_path / "lake", tmp_path / "table")
    assert table.schema.names == ["id"]


@pytest.mark.parametrize("partitioned", [False, True])
def test_delta_tables_with_dotted_names(tmp_path: Path, partitioned: bool) -> None:
    lake, by = str(tmp_path / "lake"), ["p.q"] if partitioned else None
    first, second = (
        pa.table({"id": range(n, n + 10), "a.b": [f"y{i}" for i in range(n, n + 10)], "p.q": ["x", "z"] * 5})
        for n in (0, 10)
    )
    write_deltalake(lake, first, partition_by=by)
    table = fuse.attach(lake, tmp_path / "table", format="delta")
    table.create_index("by_text", "bloom", ["`a.b`"])
    write_deltalake(lake, second, mode="append")
    table.sync()
    expected = DeltaTable(lake).to_pyarrow_table()
    assert_same_rows(table, expected, ["`a.b` = 'y7'", "`p.q` = 'z'", "`a.b` > 'y3' AND `p.q` = 'x'"])
    assert table.count("`p.q` = 'z'") == 10
