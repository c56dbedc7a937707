"""Makes a golden table of format version 1 whose blocks have each codec, encoding and repetition: run once.

    python tests/golden/make_encodings_v1.py

``v1`` beside it was written when all blocks had zstd and plain values. Another run gives other ids and times.
"""

import shutil
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from fuse_storage import StoredTable
from fuse_storage.parquet.column_encoding import COMPRESSIONS

FOLDER = Path(__file__).parent / "encodings_v1"
BLOCK_ROWS = 1_024

COLUMNS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("small", pa.int16()),
        ("price", pa.decimal128(12, 2)),
        ("code", pa.int64()),
        ("real", pa.float64()),
        ("word", pa.string()),
        ("few", pa.string()),
        ("day", pa.date32()),
        ("place", pa.struct([("x", pa.int32()), ("name", pa.string())])),
        ("tags", pa.list_(pa.int32())),
    ]
)


def row(row_id: int) -> dict[str, Any]:
    """The row with this id; in every second block, each fifth has NULL throughout."""
    code = (row_id + 1) * 0x9E3779B97F4A7C15 % (1 << 63)
    values = {
        "small": row_id // 3,
        "price": Decimal(row_id).scaleb(-2),
        "code": code,
        "real": float("nan") if row_id % 9 == 0 else code / 1024,
        "word": f"word-{code % (1 << 32):08x}",
        "few": ["new", "paid", "sent"][row_id % 3],
        "day": date(1500, 1, 1) + timedelta(row_id),
        "place": {"x": row_id, "name": str(row_id % 10)},
        "tags": [row_id, None, 1][: row_id % 4],
    }
    is_null = row_id // BLOCK_ROWS % 2 and row_id % 5 == 0
    return {"id": row_id} | (dict.fromkeys(values) if is_null else values)


def make() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    table = StoredTable.create(FOLDER / "table", COLUMNS, properties={"block_rows": BLOCK_ROWS, "page_rows": 300})
    for number, compression in enumerate(COMPRESSIONS):
        first = 2 * number * BLOCK_ROWS
        rows = pa.Table.from_pylist([row(row_id) for row_id in range(first, first + 2 * BLOCK_ROWS)], COLUMNS)
        with table.writer(compression=compression) as writer:
            writer.write(rows)
            table = table.transaction().append(writer.finish()).commit()
    shutil.rmtree(FOLDER / "table" / "_tmp")


if __name__ == "__main__":
    make()
