"""Files by writers at hand, in each way in which these can write: rows are found in them, with indexes and without."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuse_index as fuse
from tests.index.sources.corpora import assert_right, fitted

START = datetime(1999, 12, 31, tzinfo=UTC)
ROWS = pa.table(
    {
        "id": pa.array([None if n % 11 == 5 else n for n in range(300)], pa.int64()),
        "small": pa.array([n % 7 - 3 for n in range(300)], pa.int8()),
        "name": pa.array([None if n % 3 == 0 else f"näme {n // 9}" for n in range(300)], pa.string()),
        "price": pa.array([Decimal(n * n) / 100 for n in range(300)], pa.decimal128(12, 2)),
        "data": pa.array([bytes([n % 256]) * (n % 5) for n in range(300)], pa.binary()),
        "f": pa.array([n / 7 if n % 5 else float("nan") for n in range(300)], pa.float64()),
        "flag": pa.array([n < 150 for n in range(300)], pa.bool_()),
        "day": pa.array([date(1969, 12, 1) + timedelta(days=n) for n in range(300)], pa.date32()),
        "at": pa.array([START + timedelta(minutes=n) for n in range(300)], pa.timestamp("us", "UTC")),
        "empty": pa.nulls(300, pa.string()),
        "l": pa.array([[n, None] if n % 4 else None for n in range(300)], pa.list_(pa.int64())),
        "s": pa.array([{"a": n, "b": str(n)} for n in range(300)], pa.struct([("a", pa.int32()), ("b", pa.string())])),
    }
)
PYARROW = {
    "plain": {"use_dictionary": False},
    "pages of version 2": {"data_page_version": "2.0", "data_page_size": 256},
    "page index": {"write_page_index": True, "data_page_size": 256},
    "no statistics": {"write_statistics": False},
    "checksums": {"write_page_checksum": True, "compression": "gzip"},
    "differences": {
        "use_dictionary": False,
        "column_encoding": {
            "id": "DELTA_BINARY_PACKED",
            "name": "DELTA_BYTE_ARRAY",
            "data": "DELTA_LENGTH_BYTE_ARRAY",
            "f": "BYTE_STREAM_SPLIT",
        },
    },
    "decimals as integers": {"store_decimal_as_integer": True, "compression": "lz4"},
    "INT96": {"use_deprecated_int96_timestamps": True},
    "format 1.0": {"version": "1.0", "compression": "brotli"},
    "sizes of bytes": {"compression": "zstd", "use_byte_stream_split": ["f"], "use_dictionary": ["name"]},
}
Writer = Callable[[pa.Table, Path], None]
WRITERS: dict[str, Writer] = {
    **{
        f"pyarrow, {name}": lambda rows, place, options=options: pq.write_table(
            rows, place, row_group_size=60, **options
        )
        for name, options in PYARROW.items()
    },
    "Polars": lambda rows, place: pl.from_arrow(rows).write_parquet(place, row_group_size=60),
    "Polars, without statistics": lambda rows, place: pl.from_arrow(rows).write_parquet(place, statistics=False),
    "DuckDB": lambda rows, place: duckdb.sql(f"COPY rows TO '{place}' (FORMAT parquet, ROW_GROUP_SIZE 60)"),
    "DuckDB, format 2": lambda rows, place: duckdb.sql(f"COPY rows TO '{place}' (FORMAT parquet, PARQUET_VERSION v2)"),
}


@pytest.mark.parametrize("name", WRITERS)
def test_rows_are_found_in_files_of_each_writer(name: str, tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    for number in range(2):
        WRITERS[name](ROWS.slice(number * 150, 150), tmp_path / "lake" / f"{number}.parquet")
    table = fuse.attach(tmp_path / "lake", tmp_path / "table")
    expected = fitted(ROWS, table)

    assert_right(table, expected)
    for column in ("price", "data", "day", "at"):
        low, high = (repr_sql(ROWS[column][row].as_py()) for row in (100, 104))
        condition = f"{column} >= {low} AND {column} < {high}"
        right = table.scan(condition, indexes=False, columns=["id"]).to_arrow()
        assert table.scan(condition, columns=["id"]).to_arrow().equals(right)
        assert right.num_rows == 4 or column == "data"


def repr_sql(value: object) -> str:
    match value:
        case bytes():
            return f"X'{value.hex()}'"
        case datetime():
            return f"TIMESTAMP'{value.isoformat(' ')}'"
        case date():
            return f"DATE'{value}'"
    return str(value)
