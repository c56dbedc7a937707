"""Blocks that are damaged or gone are an error in Spark, whatever the session thinks of such files."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from fuse_index import Table, create_table
from fuse_index import spark as fuse_spark
from fuse_index.spark.native.file_listing import ListedFiles, pack_file_listing
from fuse_index.spark.native.relation import NativeScan, snapshot_dataframe
from tests.effort import effort

LENIENT = {
    "spark.sql.files.ignoreMissingFiles": "true",
    "spark.sql.files.ignoreCorruptFiles": "true",
    "spark.hadoop.parquet.page.verify-checksum.enabled": "false",
}
ROWS = pa.table({"id": np.arange(4000), "value": np.random.default_rng(5).random(4000)})
DAMAGES = effort(12)
FAILED = (PySparkException, Py4JJavaError)


@pytest.fixture
def lenient(spark: SparkSession) -> Iterator[SparkSession]:
    """A session that would rather lose rows than fail."""
    for name, value in LENIENT.items():
        spark.conf.set(name, value)
    fuse_spark.install(spark)
    yield spark
    for name in LENIENT:
        spark.conf.unset(name)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    table = create_table(str(tmp_path / "t"), ROWS.schema, properties={"block_rows": 2000})
    table.append(ROWS)
    return table


def block_paths(table: Table) -> list[Path]:
    return [
        Path(table.stored.store.url.removeprefix("file://")) / key
        for key in table.inspect.blocks()["location"].to_pylist()
    ]


def values(spark: SparkSession, table: Table) -> list[float]:
    return [row.value for row in fuse_spark.read(spark, table.stored.store.url).orderBy("id").collect()]


def test_a_flipped_bit_in_a_data_page_is_an_error_or_changes_nothing(lenient: SparkSession, table: Table) -> None:
    expected = ROWS["value"].to_pylist()
    path = block_paths(table)[0]
    whole = path.read_bytes()
    outcomes = []
    for position in np.linspace(4, len(whole) * 0.9, DAMAGES).astype(int).tolist():
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 4]) + whole[position + 1 :])
        try:
            outcomes.append("same" if values(lenient, table) == expected else "wrong")
        except FAILED:
            outcomes.append("error")
    path.write_bytes(whole)

    assert "wrong" not in outcomes
    assert outcomes.count("error") > DAMAGES // 2
    assert values(lenient, table) == expected


def test_a_missing_block_is_an_error(lenient: SparkSession, table: Table) -> None:
    rows = fuse_spark.read(lenient, table.stored.store.url)
    missing = block_paths(table)[1]
    missing.unlink()

    with pytest.raises(PySparkException, match=rf"{missing.name} is gone, so that this snapshot cannot be") as told:
        rows.collect()
    assert "\tat " not in str(told.value).partition("JVM stacktrace")[0]


def test_a_block_cut_short_is_an_error(lenient: SparkSession, table: Table) -> None:
    rows = fuse_spark.read(lenient, table.stored.store.url)
    path = block_paths(table)[1]
    path.write_bytes(path.read_bytes()[:-100])

    with pytest.raises(FAILED):
        rows.collect()


def swap(first: Path, second: Path) -> None:
    data = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(data)


@pytest.mark.every_spark
@pytest.mark.parametrize("way", ["changed places", "another", "a shorter one", "a longer one"])
def test_another_block_under_the_name_of_a_block_is_an_error(lenient: SparkSession, tmp_path: Path, way: str) -> None:
    rows = {"a shorter one": 500, "a longer one": 2000}.get(way, 1000)
    table = create_table(str(tmp_path / "t"), "id BIGINT, s STRING", properties={"block_rows": 1000})
    table.append(pa.table({"id": np.arange(1000), "s": ["x"] * 1000}))
    strange = create_table(str(tmp_path / "other"), "id BIGINT, s STRING", properties={"block_rows": 2000})
    strange.append(pa.table({"id": np.arange(rows) + 5000, "s": ["y"] * rows}))
    table.append(pa.table({"id": np.arange(1000, 2000), "s": ["x"] * 1000}))
    first, second = block_paths(table)
    if way == "changed places":
        swap(first, second)
    else:
        first.write_bytes(block_paths(strange)[0].read_bytes())
    native = fuse_spark.read(lenient, str(tmp_path / "t"))
    source = lenient.read.format("fuse").load(str(tmp_path / "t"))

    for df in (native, native.where("id < 10"), source, native.groupBy("s").max("id")):
        with pytest.raises(FAILED, match=first.name):
            df.collect()
    if way != "changed places":
        assert native.where("id >= 1500").count() == 500


def test_blocks_that_change_places_after_they_were_read_are_an_error(lenient: SparkSession, table: Table) -> None:
    url = table.stored.store.url
    assert fuse_spark.read(lenient, url).count() == 4000
    paths = block_paths(table)
    swap(*paths)

    with pytest.raises(FAILED, match=paths[0].name):
        fuse_spark.read(lenient, url).where("value > 0 OR id >= 0").collect()
    swap(*paths)

    assert len(fuse_spark.read(lenient, url).collect()) == 4000


def test_blocks_of_a_table_that_remembers_no_seals_are_read(lenient: SparkSession, table: Table) -> None:
    url = table.stored.store.url
    blocks = table.stored.blocks()
    paths = [f"file:{path}" for path in block_paths(table)]
    listing = pack_file_listing(ListedFiles(paths, blocks.sizes, blocks.row_counts, np.zeros(2, np.int64)))
    assert np.count_nonzero(table.stored.blocks().seals) == 2
    scan = NativeScan("nobody", url, "main", "indexes", "s1", listing, table.stored.snapshot.schema)
    swap(*block_paths(table))

    assert snapshot_dataframe(lenient, scan).count() == 4000
