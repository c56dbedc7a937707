"""Whose statistics are believed: none of writers that are known to say something else, in any version of theirs."""

import base64
from dataclasses import replace

import pyarrow as pa
import pytest

from fuse_storage.parquet.foreign.thrift_footer import ForeignChunk, ForeignFooter, RawStatistics
from fuse_storage.parquet.foreign.writers import believed_statistics

TOLD = RawStatistics(b"a", b"b", 0)
CHUNK = ForeignChunk(("f",), 6, 0, 3, 4, 100, 20, True, None, TOLD)
ALL, NO_BOUNDS, NO_COUNT, NONE = (
    TOLD,
    RawStatistics(None, None, 0),
    RawStatistics(b"a", b"b", None),
    RawStatistics(None, None, None),
)


def kept_schema(kind: pa.DataType) -> bytes:
    return base64.b64encode(pa.schema([("f", kind)]).serialize())


CATEGORY, TEXT = kept_schema(pa.dictionary(pa.int8(), pa.string())), kept_schema(pa.string())
WITHIN = kept_schema(pa.struct([("g", pa.dictionary(pa.int8(), pa.string()))]))
ARROW2 = "Arrow2 - Native Rust implementation of Arrow"


@pytest.mark.parametrize(
    ("created_by", "arrow_schema", "expected"),
    [
        ("parquet-cpp-arrow version 10.0.1", CATEGORY, NONE),
        ("parquet-cpp-arrow version 10.0.1", WITHIN, NONE),
        ("parquet-cpp-arrow version 10.0.1", TEXT, ALL),
        ("parquet-cpp-arrow version 10.0.1", b"", NONE),
        ("parquet-cpp-arrow version 10.0.1", b"no schema", NONE),
        ("parquet-cpp-arrow version 9.0.0-SNAPSHOT", CATEGORY, NONE),
        ("parquet-cpp-arrow version 11.0.0", CATEGORY, ALL),
        ("parquet-cpp-arrow version 26.0.1", CATEGORY, ALL),
        ("parquet-cpp version 1.5.1-SNAPSHOT", CATEGORY, NONE),
        ("parquet-mr version 1.8.1 (build 4aba4dae)", b"", NONE),
        ("parquet-mr version 1.10.0 (build 031a6654)", b"", ALL),
        ("parquet-mr", b"", NONE),
        ("parquet-mr version null (build null)", b"", NONE),
        (ARROW2, CATEGORY, NONE),
        (ARROW2, TEXT, NO_BOUNDS),
        ("Polars", TEXT, NONE),
        ("Polars version 1.38.0", TEXT, NO_COUNT),
        ("Polars (python) version 2.1.0 (build 7f902bd3)", TEXT, ALL),
        ("parquet-rs version 4.0.0", b"", NONE),
        ("parquet-rs version 57.0.0", b"", ALL),
        ("parquet-go", b"", NONE),
        ("parquet-go version latest", b"", NONE),
        ("parquet-rs version 5.1.0", b"", NO_BOUNDS),
        ("parquet-rs version 5.2.0", b"", ALL),
        ("parquet-go version 18.0.0", b"", NONE),
        ("parquet-go version 18.6.0", b"", NO_BOUNDS),
        ("parquet-go version 18.4.1", TEXT, NO_BOUNDS),
        ("parquet-go version 18.7.0", b"", ALL),
        ("github.com/segmentio/parquet-go version 0.0.0(build 2b3)", b"", NO_BOUNDS),
        ("github.com/parquet-go/parquet-go", b"", NO_BOUNDS),
        ("github.com/parquet-go/parquet-go version 0.20.1(build )", b"", NO_BOUNDS),
        ("github.com/parquet-go/parquet-go version 0.32.0(build )", b"", ALL),
        ("hyparquet", b"", NO_BOUNDS),
        ("DuckDB version v1.4.0 (build b8a06e4a22)", b"", ALL),
        ("parquet-mr version 1." + "9" * 5000, b"", ALL),
        ("somebody\nelse version", b"", ALL),
        ("", b"", NONE),
    ],
)
def test_what_is_believed_depends_on_who_wrote_it(
    created_by: str, arrow_schema: bytes, expected: RawStatistics
) -> None:
    assert expected == believed_statistics(ForeignFooter((), False, False, created_by, arrow_schema), CHUNK, False)


@pytest.mark.parametrize(
    "created_by", ["parquet-go version 18.6.0", "github.com/parquet-go/parquet-go version 0.20.1(build )"]
)
def test_bounds_of_numbers_are_believed_of_writers_that_lose_those_of_text(created_by: str) -> None:
    footer = ForeignFooter((), False, False, created_by, b"")

    assert believed_statistics(footer, replace(CHUNK, physical_type=2), False) == TOLD


def test_a_column_without_a_dictionary_is_believed_where_no_schema_says_what_it_was() -> None:
    footer = ForeignFooter((), False, False, "parquet-cpp-arrow version 4.0.1", b"")

    assert believed_statistics(footer, replace(CHUNK, has_dictionary=False), False) == TOLD


@pytest.mark.parametrize(
    ("created_by", "expected"),
    [("ClickHouse v25.6.1.1-stable", NO_BOUNDS), ("ClickHouse v25.8.2.29-lts", ALL), ("ClickHouse", NO_BOUNDS)],
)
def test_bounds_of_decimals_of_older_clickhouse_are_not_believed(created_by: str, expected: RawStatistics) -> None:
    footer = ForeignFooter((), False, False, created_by, b"")

    assert expected == believed_statistics(footer, CHUNK, True)
    assert believed_statistics(footer, CHUNK, False) == TOLD
