"""One Spark session with the connectors of Delta and Iceberg, which ``make`` fetches for the oldest supported Spark."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.foreign.ways import Ways
from tests.spark.settings import SETTINGS, prepare_environment

prepare_environment()

CONNECTORS = Path(sys.prefix) / "lakes"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        # PySpark 4.0 leaves the sockets of collected results to the garbage collector.
        item.add_marker(pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"))


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where all tables of the session are: one of Iceberg's has its place by its name."""
    return tmp_path_factory.mktemp("lakes")


@pytest.fixture(scope="session")
def spark(home: Path) -> Iterator[SparkSession]:
    jars = sorted(map(str, CONNECTORS.glob("*.jar")))
    assert jars, f"{CONNECTORS} has no connectors of Delta and Iceberg: run make install"
    session = (
        SparkSession.builder.master("local[2]")
        .config(map=SETTINGS)
        .config("spark.jars", ",".join(jars))
        .config(
            "spark.sql.extensions",
            "io.delta.sql.DeltaSparkSessionExtension,org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        )
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.sql.catalog.ice", "org.apache.iceberg.spark.SparkCatalog")
        .config("spark.sql.catalog.ice.type", "hadoop")
        .config("spark.sql.catalog.ice.warehouse", f"{home}/ice")
        .config("spark.sql.warehouse.dir", f"{home}/warehouse")
        .config("spark.databricks.delta.snapshotPartitions", "2")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.fuse.index.transparent.maxAge", "0s")  # tests change the tables that vote
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def ways(spark: SparkSession) -> Ways:
    return Ways(spark)
