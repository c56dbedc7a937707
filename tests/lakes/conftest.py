"""One Spark session with the connectors of Delta and Iceberg, which ``make`` fetches for the oldest supported Spark."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.class_archive import jvm_options
from tests.spark.foreign.ways import Ways

os.environ.setdefault("JDK_JAVA_OPTIONS", jvm_options())
os.environ.setdefault("FUSE_INDEX_SECONDS", "120")  # machines that test stand still for longer than 10 s at times

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
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.fuse.index.deadline", "120s")  # machines that test stand still for longer than 15 s at times
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
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.fuse.index.transparent.maxAge", "0s")  # tests change the tables that vote
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def ways(spark: SparkSession) -> Ways:
    return Ways(spark)
