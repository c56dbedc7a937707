"""Metadata of several files is read as if it stood in one, whatever of it is in memory and whatever is broken."""

from itertools import product
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuse_storage import Cache, NotFound, Store, meter_requests, open_store
from fuse_storage.metadata import metadata_table
from fuse_storage.metadata.file_ref import create_file

GROUPS = [("a",), ("b", "c")]


@pytest.fixture
def store() -> Store:
    return open_store(f"memory://columnar-{uuid4().hex}")


def part(store: Store, number: int) -> metadata_table.MetadataFile:
    rows = pa.table({"a": [number, number], "b": [number + 10, None], "c": ["x", "y"]})
    return metadata_table.MetadataFile(create_file(store, f"f{number}", metadata_table.encode_metadata(rows)), 2)


@pytest.mark.parametrize("known", list(product([False, True], repeat=3)))
def test_what_is_in_memory_is_not_read_and_each_table_is_in_its_place(store: Store, known: tuple[bool, ...]) -> None:
    parts = [part(store, number) for number in range(3)]
    cache, counted = Cache(1 << 20), meter_requests(store)
    for number, wanted in enumerate(known):
        if wanted:
            metadata_table.read_column_groups(
                counted, parts[number], GROUPS if number else GROUPS[:1], cache
            )  # of the first file, only a part
    counted.reset()
    rows = metadata_table.MetadataRows.all_rows(counted, [parts[0], None, *parts[1:]], np.array([2, 1, 2, 2]))

    found = rows.read(GROUPS, cache)

    assert found[1] is None
    for number, tables in zip(range(3), [found[0], *found[2:]], strict=True):
        assert isinstance(tables, list)
        assert [table.to_pydict() for table in tables] == [
            {"a": [number] * 2},
            {"b": [number + 10, None], "c": ["x", "y"]},
        ]
    assert {key for _, key, _ in counted.reads} == {"f0"} | {f"f{number}" for number in (1, 2) if not known[number]}


@pytest.mark.parametrize("gone", list(product([False, True], repeat=3)))
def test_a_file_that_is_gone_is_said_in_its_place(store: Store, gone: tuple[bool, ...]) -> None:
    parts = [part(store, number) for number in range(3)]
    store.delete([f"f{number}" for number, lost in enumerate(gone) if lost])

    found = metadata_table.MetadataRows.all_rows(store, parts, np.array([2, 2, 2])).read(GROUPS, Cache(1 << 20))

    assert [isinstance(each, NotFound) for each in found] == list(gone)


def test_whether_there_is_a_column() -> None:
    rows = pa.table({"a": [1], "c.1.min": [2]})

    assert [metadata_table.has_column(rows, name) for name in ("a", "c.1.min", "b", "")] == [True, True, False, False]


@pytest.mark.parametrize(("rows", "codecs"), [(1, {"UNCOMPRESSED"}), (16, {"UNCOMPRESSED"}), (100, {"ZSTD"})])
def test_few_rows_are_not_compressed_and_all_are_read_back(store: Store, rows: int, codecs: set[str]) -> None:
    found = pa.table({f"c.{number}.min": np.arange(rows) for number in range(50)})
    data = metadata_table.encode_metadata(found)

    group = pq.read_metadata(pa.BufferReader(data)).row_group(0)
    assert {group.column(number).compression for number in range(50)} == codecs
    file = metadata_table.MetadataFile(create_file(store, "f", data), rows)
    assert metadata_table.read_all_columns(store, file, Cache(1 << 20)).equals(found)


def test_a_large_summary_of_few_rows_is_compressed() -> None:
    data = metadata_table.encode_metadata(pa.table({"indexed": [True], "summary": [b"0123456789" * 1000]}))
    assert len(data) < 1000
