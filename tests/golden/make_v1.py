"""Makes the golden table of format version 1: run once, when the format was settled, and never again.

    python tests/golden/make_v1.py

Another run gives other ids and times. A change that needs one is a new format version, with a script of its own.
"""

import json
import shutil
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from fuse_storage import StoredTable
from tests.storage.small import Totals, build_missing

FOLDER = Path(__file__).parent / "v1"

COLUMNS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("flag", pa.bool_()),
        ("tiny", pa.int8()),
        ("small", pa.int16()),
        ("whole", pa.int32()),
        ("single", pa.float32()),
        ("real", pa.float64()),
        ("price", pa.decimal128(12, 2)),
        ("huge", pa.decimal128(38, 6)),
        ("name", pa.string()),
        ("code", pa.binary()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("place", pa.struct([("lat", pa.float64()), ("Name", pa.string()), ("name", pa.string())])),
        ("tags", pa.list_(pa.string())),
        ("scores", pa.map_(pa.string(), pa.int64())),
    ]
)

NAN, INFINITE = float("nan"), float("inf")
CYCLES: dict[str, list[Any]] = {
    "flag": [True, False, None],
    "tiny": [-128, 127, None, 0],
    "small": [-32768, 32767, None],
    "whole": [-(2**31), 2**31 - 1, None, 7],
    "single": [1.5, NAN, None, -0.0, INFINITE],
    "real": [NAN, -0.0, None, 0.0, -INFINITE, 2.5],
    "price": [Decimal("-1.50"), None, Decimal("9999999999.99")],
    "huge": [Decimal("12345678901234567890123456789012.345678"), None],
    "name": ["", "Zürich", None, "x" * 100, "\U0010ffff" * 12, "日本", "I\u0307", "\U0001f600" * 9],
    "code": [b"", b"\xff" * 40, None, b"\x00\x80"],
    "day": [date(1, 1, 1), date(2026, 11, 21), None, date(9999, 12, 31), date(1582, 10, 10)],
    "at": [datetime(1970, 1, 1, tzinfo=UTC), datetime(2026, 3, 29, 1, 0, 0, 1, tzinfo=UTC), None],
    "local": [datetime(1883, 11, 18, 12), None, datetime(2262, 4, 12)],
    "place": [{"lat": 47.4, "Name": "A", "name": "a"}, None, {"lat": None, "Name": None, "name": "b"}],
    "tags": [[], ["a", None], None, ["b"]],
    "scores": [[], [("x", 1), ("y", None)], None],
}


def rows(first: int, count: int) -> pa.Table:
    ids = range(first, first + count)
    columns = {"id": list(ids)} | {
        name: [cycle[row_id % len(cycle)] for row_id in ids] for name, cycle in CYCLES.items()
    }
    return pa.table([pa.array(columns[field.name], field.type) for field in COLUMNS], schema=COLUMNS)


def appended(table: StoredTable, first: int, count: int, *builders: Totals, **commit: Any) -> StoredTable:
    with table.writer(builders) as writer:
        writer.write(rows(first, count))
        return table.transaction(builders).append(writer.finish()).commit(**commit)


def make() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    properties = {"block_rows": 5, "zone_rows": 2, "owner": "nobody"}
    table = StoredTable.create(FOLDER / "table", COLUMNS, ["day", "place.lat"], properties)
    table = appended(table, 0, 9)
    table = table.transaction().add_index("totals", {"key": "70a1", "kind": "totals", "columns": [1]}).commit()
    table = table.transaction([Totals()]).attach_sidecars("70a1", build_missing(table, Totals())).commit("refresh")
    table.tag("first-nine")
    for first in range(9, 17):  # enough for segments to merge
        table = appended(table, first, 1, *([Totals()] if first % 4 else []), application=("golden", first))
    table = appended(table, 17, 12, Totals(), summary={"of": "people"})
    found = [json.dumps(row, default=str) for row in rows(0, 29).to_pylist()]
    texts = {"history": [entry.operation for entry in table.history()], "rows": found}
    (FOLDER / "expected.json").write_text(json.dumps(texts, indent=1) + "\n")
    shutil.rmtree(FOLDER / "table" / "_tmp")


if __name__ == "__main__":
    make()
