"""Each kind of index on each kind of source: built on files of others, followed by syncs, asked, and never wrong."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

import fuse_index as fuse
from tests.index.sources.one_table import OneTable
from tests.index.sources.walks import assert_same_rows

SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string()), ("text", pa.string()), ("body", pa.string())])
WHERE = {
    "words": "match(text, 'order17')",
    "paths": "CAST(get_json_object(body, '$.user') AS BIGINT) = 17",
    "keys": "id = 17",
}
"""A condition that each index answers, which rows of one file alone fulfil."""
Append = Callable[[pa.Table], object]


def some_rows(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    rows = {
        "id": list(numbers),
        "city": ["Bern" if n % 3 else None if first else "Neuchâtel" for n in numbers],
        "text": [f"a late order{n}" if n % 4 else None for n in numbers],
        "body": [json.dumps({"user": n, "tags": [f"t{n % 7}"]}) if n % 5 else "no JSON" for n in numbers],
    }
    return pa.table(rows, SCHEMA)


def folder(place: Path) -> Append:
    place.mkdir()
    return lambda rows: pq.write_table(rows, place / f"{rows.column('id')[0]}.parquet", row_group_size=20)


def delta(place: Path) -> Append:
    return lambda rows: write_deltalake(place, rows, mode="append")


def iceberg(place: Path) -> Append:
    catalog = OneTable("one")
    source = catalog.create(place, SCHEMA)

    def append(rows: pa.Table) -> None:
        source.append(rows)
        (place / "metadata" / "version-hint.text").write_text(source.metadata_location.rpartition("/")[2])

    return append


@pytest.mark.parametrize(("format_", "make"), [("parquet", folder), ("delta", delta), ("iceberg", iceberg)])
def test_indexes_of_each_kind_are_built_asked_and_followed(
    tmp_path: Path, format_: str, make: Callable[[Path], Append]
) -> None:
    append = make(tmp_path / "lake")
    append(some_rows(0, 50))
    append(some_rows(100, 50))
    table = fuse.attach(tmp_path / "lake", tmp_path / "table", format=format_)
    table.create_index("words", "full_text", ["text"])
    table.create_index("paths", "json_path", ["body"], paths=["$.user", "$.tags[*]"])
    table.create_index("keys", "bloom", ["id"])
    table.create_index("totals", "aggregate", ["city"], aggregates=["count(*)", "sum(id)", "max(text)"])
    append(some_rows(200, 50))
    assert table.sync().added_files == 1

    expected = pa.concat_tables([some_rows(first, 50) for first in (0, 100, 200)])
    assert_same_rows(table, expected, [*WHERE.values(), "json_contains(body, '$.tags[*]', 't3') AND NOT id = 3"])
    for name, condition in WHERE.items():
        assert table.maintenance.verify_index(name).sound
        assert table.explain(condition).to_dict()["blocks"] == {"total": 3, "kept": 1}, name
        assert name in str(table.explain(condition))
    asked = ["count(*)", "sum(id)", "max(text)"]
    grouped, without = (table.aggregate(["city"], asked, indexes=used).to_pylist() for used in (True, False))
    assert sorted(map(str, grouped)) == sorted(map(str, without))
    assert table.maintenance.verify_index("totals").sound
    before = sorted((tmp_path / "lake").rglob("*.parquet"))
    for file in before:
        file.unlink()
    assert sorted(map(str, table.aggregate(["city"], asked).to_pylist())) == sorted(map(str, grouped))  # no row is read
