"""Sources in S3, and indexes of sources there: files are left out before anybody asks the store for them."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyarrow.fs import S3FileSystem
from pyiceberg.io.pyarrow import ArrowScan

import fuse_index as fuse
from tests.index.sources.one_table import OneTable
from tests.s3 import REGION, s3_server

FILES, ROWS = 4, 50


def rows(number: int) -> pa.Table:
    """Of a file: keys in no order."""
    ids = range(number * ROWS, (number + 1) * ROWS)
    return pa.table({"id": list(ids), "key": [f"k{each * 7919 % 1009:04d}" for each in ids]})


KEY = rows(2).column("key")[7].as_py()


@pytest.fixture(scope="module")
def options() -> Iterator[dict[str, str]]:
    """Options of a server of S3 with the buckets lake and tables."""
    with s3_server("lake", "tables") as options:
        yield {**options, "shared_places": "s3://lake"}


def index(source: str, place: str | Path, options: dict[str, str], **about: Any) -> fuse.Table:
    table = fuse.attach(source, place, votes_only=True, options=options, **about)
    table.create_index("by_key", "bloom", ["key"])
    return fuse.open_table(place, options=options)


@pytest.mark.parametrize("place", ["s3://tables/delta", "local"])
def test_a_delta_table(options: dict[str, str], tmp_path: Path, place: str) -> None:
    lake = f"s3://lake/delta-{place[:2]}"
    storage = {
        "AWS_ENDPOINT_URL": options["endpoint"],
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": REGION,
        "AWS_ALLOW_HTTP": "true",
        "AWS_S3_ALLOW_UNSAFE_RENAME": "true",
    }
    for number in range(FILES):
        write_deltalake(lake, rows(number), mode="append", storage_options=storage)
    table = index(lake, tmp_path / "table" if place == "local" else place, options, format="delta")
    write_deltalake(lake, rows(9), mode="append", storage_options=storage)

    pruned = fuse.prune_files(table, f"key = '{KEY}'", DeltaTable(lake, storage_options=storage))

    assert len(list(pruned.get_fragments())) == 2  # one is not known
    assert pruned.to_table(filter=ds.field("key") == KEY).column("id").to_pylist() == [2 * ROWS + 7]


def test_an_iceberg_table(options: dict[str, str]) -> None:
    keys = {"s3.access-key-id": "test", "s3.secret-access-key": "test", "s3.region": REGION}
    catalog = OneTable("buckets", **keys, **{"s3.endpoint": options["endpoint"]})
    source = catalog.create("s3://lake/ice", rows(0).schema)
    for number in range(FILES):
        source.append(rows(number))
    assert catalog.table is not None
    table = index(catalog.table.metadata_location, "s3://tables/iceberg", options, format="iceberg")
    scan = source.scan(row_filter=f"key == '{KEY}'")

    tasks = fuse.prune_files(table, f"key = '{KEY}'", scan)

    assert len(tasks) == 1
    found = ArrowScan(scan.table_metadata, scan.io, scan.projection(), scan.row_filter).to_table(tasks)
    assert found.column("id").to_pylist() == [2 * ROWS + 7]


def test_a_folder(options: dict[str, str]) -> None:
    system = S3FileSystem(
        endpoint_override=options["endpoint"], access_key="test", secret_key="test", region=REGION, scheme="http"
    )
    for number in range(FILES):
        file = io.BytesIO()
        pq.write_table(rows(number), file)
        with system.open_output_stream(f"lake/folder/{number}.parquet") as stream:
            stream.write(file.getvalue())
    table = index("s3://lake/folder", "s3://tables/folder", options)

    pruned = fuse.prune_files(table, f"key = '{KEY}'", ds.dataset("lake/folder", filesystem=system))

    assert [Path(each).name for each in pruned.files] == ["2.parquet"]
    assert pruned.to_table(filter=ds.field("key") == KEY).column("id").to_pylist() == [2 * ROWS + 7]
