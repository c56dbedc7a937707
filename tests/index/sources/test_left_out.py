"""What a file holds that no table can: the column is left out and named, and the table attaches; or it is read."""

from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuse_index as fuse
from tests.index.sources.walks import assert_same_rows

TIMES = [datetime(2024, 1, 1, hour, 0, 0, hour) for hour in range(5)]


def folder(tmp_path: Path, *tables: pa.Table) -> Path:
    (tmp_path / "lake").mkdir(exist_ok=True)
    for number, each in enumerate(tables):
        pq.write_table(each, tmp_path / "lake" / f"{number}.parquet")
    return tmp_path / "lake"


def attach(tmp_path: Path, *tables: pa.Table, **more: Any) -> fuse.Table:
    return fuse.attach(folder(tmp_path, *tables), tmp_path / "table", **more)


def test_pandas_own_files_are_read(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "id": range(5),
            "at": pd.to_datetime(TIMES).astype("datetime64[ns]"),
            "in_utc": pd.to_datetime(TIMES).astype("datetime64[ns]").tz_localize("UTC"),
            "kind": pd.Categorical(["a", "b", "a", None, "b"]),
            "none": [None] * 5,
            "f": [0.5, None, 2.0, float("nan"), 4.0],
            "day": [date(2024, 1, day + 1) for day in range(5)],
            "words": [["a"], [], None, ["b", "c"], ["d"]],
        }
    )
    (tmp_path / "lake").mkdir()
    frame.to_parquet(tmp_path / "lake" / "a.parquet")
    table = fuse.attach(tmp_path / "lake", tmp_path / "table")
    table.create_index("by_at", "bloom", ["at"])

    assert table.schema.field("at").type == pa.timestamp("us")
    assert table.schema.field("in_utc").type == pa.timestamp("us", "UTC")
    assert table.to_arrow().column("none").null_count == 5
    found = table.to_arrow("at = TIMESTAMP_NTZ'2024-01-01 03:00:00.000003'")
    assert found.column("id").to_pylist() == [3]
    assert found.column("in_utc").to_pylist() == [TIMES[3].replace(tzinfo=UTC)]
    assert table.count("at > TIMESTAMP_NTZ'2024-01-01 02:30:00'") == 2
    assert table.maintenance.verify_index("by_at").sound

    own = fuse.create_table(tmp_path / "own", table.schema.remove(table.schema.get_field_index("none")))
    own.append(frame.drop(columns="none"))
    assert own.to_arrow().column("at").to_pylist() == TIMES


def test_times_finer_than_microseconds_are_left_out_or_an_error(tmp_path: Path) -> None:
    times = pa.array([1_000, 2_001, 3_000], pa.timestamp("ns"))
    told = "has times finer than microseconds"
    with pytest.warns(fuse.LeftOutWarning, match=rf"'at'.*{told}"):
        table = attach(tmp_path, pa.table({"id": [1, 2, 3], "at": pa.array([1_001, 2_001, 3_001], pa.timestamp("ns"))}))
    assert table.schema.names == ["id"]
    pq.write_table(pa.table({"id": [1, 2, 3], "at": times}), tmp_path / "lake" / "0.parquet")
    other = fuse.attach(tmp_path / "lake", tmp_path / "other")
    assert other.count("id > 1") == 2
    with pytest.raises(fuse.Unsupported, match=rf"0\.parquet: column 'at' {told}"):
        other.to_arrow()
    assert other.scan(columns=["id"]).to_arrow().num_rows == 3


def test_columns_that_nobody_reads_are_left_out_and_named(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "id": [1, 2],
            "clock": [time(1), time(2)],
            "half": pa.array(np.array([1, 2], np.float16)),
            "dots": [{"a.b": 1}, None],
            "parts": pa.array([{"x": time(3)}, None]),
        }
    )
    with pytest.warns(fuse.LeftOutWarning, match="'half'") as warned:
        table = attach(tmp_path, rows)
    assert [str(each.message).count("left out of") for each in warned] == [1]
    assert table.to_arrow().to_pylist() == [{"id": 1}, {"id": 2}]
    assert set(table.inspect.left_out()) == {"clock", "half", "dots", "parts"}
    assert "column 'half' is of type halffloat" in table.inspect.left_out()["half"]
    with pytest.raises(fuse.WhereError, match=r"(?s)'half' was left out .* halffloat"):
        table.count("half = 1")
    with pytest.raises(fuse.WhereError, match=r"(?s)'half' was left out .* halffloat"):
        table.create_index("by_half", "bloom", ["half"])
    assert "left out" in str(table.explain("id = 1"))
    pq.write_table(rows, tmp_path / "lake" / "1.parquet")
    assert table.sync().rows == 4
    pq.write_table(
        rows.drop_columns("half").append_column("half", pa.array([1.0, 2.0])), tmp_path / "lake" / "2.parquet"
    )
    assert table.sync().rows == 6
    assert table.schema.names == ["id"]


def test_columns_are_chosen(tmp_path: Path) -> None:
    one = pa.table({"id": [1], "x": [1], "clock": [time(1)], "y": [7]})
    two = pa.table({"id": [2], "x": ["text"], "y": [8], "z": [9]})
    with pytest.raises(fuse.SchemaError, match=r"column 'x' is int64 in .* and string"):
        attach(tmp_path, one, two)
    with pytest.raises(fuse.InputError, match=r"no column 'yy'; did you mean \['y'\]"):
        attach(tmp_path, one, two, columns=["id", "yy"])
    with pytest.raises(fuse.Unsupported, match="column 'clock' is of type time"):
        attach(tmp_path, one, two, columns=["id", "clock"])
    table = attach(tmp_path, one, two, columns=["y", "id"])
    assert sorted(table.schema.names) == ["id", "y"]
    pq.write_table(pa.table({"id": [3], "w": [9]}), tmp_path / "lake" / "2.parquet")
    table.sync()
    rows = [{"id": 1, "y": 7}, {"id": 2, "y": 8}, {"id": 3, "y": None}]
    assert sorted(table.to_arrow().select(["id", "y"]).to_pylist(), key=lambda row: row["id"]) == rows
    assert table.inspect.left_out() == {}


def test_columns_without_a_type_are_null(tmp_path: Path) -> None:
    nothing = pa.table({"id": [1, 2], "n": pa.nulls(2)})
    table = attach(tmp_path, nothing)
    assert table.count("n IS NULL") == 2
    assert table.schema.field("n").type == pa.string()
    pq.write_table(pa.table({"id": [3], "n": [7]}), tmp_path / "lake" / "1.parquet")
    table.sync()
    table.create_index("by_n", "bloom", ["n"])
    expected = pa.table({"id": [1, 2, 3], "n": pa.array([None, None, 7], pa.int64())})
    assert_same_rows(table, expected, ["n = 7", "n IS NULL", "n > 7", "id = 2"])
    pq.write_table(nothing, tmp_path / "lake" / "2.parquet")
    table.sync()
    assert_same_rows(table, pa.concat_tables([expected, nothing.cast(expected.schema)]), ["n = 7", "n IS NULL"])
    other = fuse.attach(tmp_path / "lake", tmp_path / "other")
    assert other.schema == table.schema


def test_whole_numbers_beside_doubles_are_doubles_where_it_is_said(tmp_path: Path) -> None:
    whole, doubles = pa.table({"id": [1, 2], "n": [3, 4]}), pa.table({"id": [3, 4], "n": [0.5, float("nan")]})
    with pytest.raises(fuse.SchemaError, match="widen=True"):
        attach(tmp_path, whole, doubles)
    table = attach(tmp_path, whole, doubles, widen=True)
    table.create_index("by_n", "bloom", ["n"])
    expected = pa.concat_tables([whole.cast(doubles.schema), doubles])
    assert_same_rows(table, expected, ["n = 3", "n = 0.5", "n > 3.5", "n < 1", "id = 4"])
    pq.write_table(pa.table({"id": [5], "n": [2**53 + 1]}), tmp_path / "lake" / "2.parquet")
    table.sync(indexes=False)
    assert table.count("id = 5") == 1
    with pytest.raises(fuse.Unsupported, match=r"2\.parquet: column 'n' has whole numbers beyond"):
        table.to_arrow("id = 5")


def test_spark_leaves_what_it_does_not_read_to_python(tmp_path: Path) -> None:
    from fuse_index.spark.native.file_listing import hidden_column

    at = pa.array(TIMES, pa.timestamp("ns"))
    assert hidden_column(attach(tmp_path, pa.table({"id": range(5), "at": at})).stored) == "at"
