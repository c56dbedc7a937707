"""Other engines that read what is exported, and what they read."""

import glob
import json
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from pyiceberg.table import StaticTable

import fuse_index as fuse

Rows = list[dict[str, Any]]

POLARS_LACKS = {"columnMapping", "typeWidening"}
DELTALAKE_LACKS = {"typeWidening"}
ARROW_LACKS = {"columnMapping", "typeWidening", "deletionVectors"}
"""Features of Delta that these readers refuse by name, in the versions that are pinned."""


def sorted_rows(rows: Rows) -> Rows:
    """The rows in one order, with maps as dicts, which PyArrow gives as pairs."""
    rows = [{name: _plain(value) for name, value in row.items()} for row in rows]
    return sorted(rows, key=lambda row: (row["id"] is None, row["id"], str(row)))


def _plain(value: Any) -> Any:
    is_map = isinstance(value, list) and bool(value) and isinstance(value[0], tuple)
    return dict(value) if is_map else value


def our_rows(place: Path) -> Rows:
    return sorted_rows(fuse.open_table(place).to_arrow().to_pylist())


def delta_features(place: Path) -> set[str]:
    protocol = DeltaTable(str(place)).protocol()
    return set(protocol.reader_features or ({"columnMapping"} if protocol.min_reader_version == 2 else ()))


def read_delta(place: Path) -> Iterator[tuple[str, Rows]]:
    """What each reader of Delta reads that has the features of the newest version."""
    features, readers = delta_features(place), dict[str, Callable[[], Rows]]()
    if not features & ARROW_LACKS:
        readers["deltalake's Arrow reader"] = lambda: DeltaTable(str(place)).to_pyarrow_table().to_pylist()
    if not features & DELTALAKE_LACKS:
        readers["deltalake's query engine"] = lambda: query_delta(place)
    if not features & POLARS_LACKS:
        readers["Polars"] = lambda: pl.scan_delta(str(place)).collect().to_dicts()
    if has_duckdb("delta"):
        readers["DuckDB"] = lambda: query_duckdb(f"FROM delta_scan('{place}')", "delta")
    for name, read in readers.items():
        yield name, sorted_rows(read())


def query_delta(place: Path, version: int | None = None, where: str = "true") -> Rows:
    table = DeltaTable(str(place), version=version)
    found = QueryBuilder().register("t", table).execute(f"SELECT * FROM t WHERE {where}")
    return pa.table(found.read_all()).to_pylist()


def read_iceberg(place: Path) -> Iterator[tuple[str, Rows]]:
    """What each reader of Iceberg reads."""
    url = str(latest_metadata(place))
    readers: dict[str, Callable[[], Rows]] = {
        "PyIceberg": lambda: StaticTable.from_metadata(url).scan().to_arrow().to_pylist(),
        "Polars": lambda: _scan_iceberg(url),
    }
    if has_duckdb("iceberg"):
        readers["DuckDB"] = lambda: query_duckdb(f"FROM iceberg_scan('{url}')", "avro", "iceberg")
    for name, read in readers.items():
        yield name, sorted_rows(read())


def latest_metadata(place: Path) -> Path:
    version = (place / "metadata" / "version-hint.text").read_text()
    return place / "metadata" / f"v{version}.metadata.json"


def iceberg_version(place: Path) -> int:
    return json.loads(latest_metadata(place).read_text())["format-version"]


def _scan_iceberg(url: str) -> Rows:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pl.exceptions.PerformanceWarning)  # that there is a faster planner
        return pl.scan_iceberg(url).collect().to_dicts()


def has_duckdb(extension: str) -> bool:
    """Whether DuckDB's extension is there, as a package of the very version."""
    return find_spec(f"duckdb_extension_{extension}") is not None


def query_duckdb(sql: str, *extensions: str) -> Rows:
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for name in extensions:
        folder = Path(find_spec(f"duckdb_extension_{name}").origin).parent
        connection.load_extension(glob.glob(f"{folder}/extensions/*/{name}.duckdb_extension")[0])
    return connection.sql(sql).to_arrow_table().to_pylist()
