"""Files of writers that are known to write wrong statistics: no row is lost to them, and of others all is believed."""

from __future__ import annotations

import base64
from pathlib import Path
from shutil import copy

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuse_index as fuse
from fuse_storage.parquet.foreign.known_liars import Writer

GOLDEN = Path(__file__).parents[2] / "golden" / "known_liars"
CONDITIONS = (
    "f = 'zzz'",
    "f = 'rusty'",
    "f = 'aa'",
    "f > 'sean'",
    "f < 'frank'",
    "f <> 'aa'",
    "NOT (f > 'sean')",
    "f IS NULL",
    "f IS NOT NULL",
    "f IN ('zzz', 'nobody') OR f IS NULL",
    "f <=> NULL",
)


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("file", sorted(GOLDEN.glob("*.parquet")), ids=lambda file: file.stem)
def test_no_row_is_lost_to_a_footer_that_lies(file: Path, indexed: bool, tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    copy(file, tmp_path / "lake")
    table = fuse.attach(tmp_path / "lake", tmp_path / "table")
    if indexed:
        table.create_index("by_f", "bloom", ["f"])
    for condition in CONDITIONS:
        plain = condition.replace("f ", "s ")  # the same values, of which no writer lied
        expected = table.scan(plain, indexes=False).to_arrow()

        assert table.scan(condition).to_arrow().equals(expected), condition
        assert table.count(condition) == table.count(plain) == expected.num_rows
    assert table.aggregate([], ["count(f)", "min(f)", "max(f)"]).to_pylist() == [
        {"count(f)": 165, "min(f)": "aa", "max(f)": "zzz"}
    ]


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("*.parquet")), ids=lambda file: file.stem)
def test_the_golden_files_lie(file: Path) -> None:
    found = pq.read_metadata(file).row_group(0).column(1).statistics

    assert (found.max, found.null_count) != ("zzz", 35)
    assert pq.read_table(file).column("f").null_count == 35


def kept(**fields: pa.DataType) -> bytes:
    return base64.b64encode(pa.schema(fields).serialize().to_pybytes())


CATEGORY = pa.dictionary(pa.int32(), pa.string())
ARROW = "parquet-cpp-arrow version 10.0.1"


@pytest.mark.parametrize(
    ("created_by", "schema", "dictionary", "bounds", "null_counts"),
    [
        (ARROW, kept(f=CATEGORY), True, False, False),
        (ARROW, kept(f=pa.struct({"g": pa.list_(CATEGORY)})), True, False, False),
        (ARROW, b"", True, False, False),
        (ARROW, b"not Base64", True, False, False),
        (ARROW, kept(f=CATEGORY), False, True, True),
        (ARROW, kept(f=pa.string()), True, True, True),
        ("parquet-cpp version 1.5.1-SNAPSHOT", b"", True, False, False),
        ("parquet-cpp-arrow version 11.0.0", kept(f=CATEGORY), True, True, True),
        ("parquet-cpp-arrow version 11.0.0-SNAPSHOT", b"", True, True, True),
        ("Arrow2 - Native Rust implementation of Arrow", kept(f=CATEGORY), True, True, False),
        ("Arrow2 - Native Rust implementation of Arrow", kept(f=pa.string()), True, True, True),
        ("Polars", kept(f=CATEGORY), True, True, False),
        ("parquet-mr version 1.13.1 (build db4183109d5b734ec5930d870cdae161e408ddba)", b"", True, True, True),
        ("parquet-rs version 53.0.0", b"", True, True, True),
        ("DuckDB version v1.1.0 (build fa5c2fe15f)", b"", True, True, True),
        ("", b"", True, True, True),
    ],
)
def test_what_is_believed_of_whom(
    created_by: str, schema: bytes, dictionary: bool, bounds: bool, null_counts: bool
) -> None:
    writer = Writer.parse(created_by, schema)

    assert writer.has_true_bounds(("f", "g"), dictionary, False) is bounds
    assert writer.has_true_null_counts(("f", "g"), dictionary) is null_counts


@pytest.mark.parametrize(
    ("created_by", "believed"), [("ClickHouse v25.6.1", False), ("ClickHouse v25.8.2.1", True), ("impala", True)]
)
def test_bounds_of_decimals_of_older_clickhouse_are_not_believed(created_by: str, believed: bool) -> None:
    writer = Writer.parse(created_by)

    assert writer.has_true_bounds(("d",), False, True) is believed
    assert writer.has_true_bounds(("i",), False, False)
