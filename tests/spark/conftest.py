"""One Spark session for all tests of Spark: starting one takes seconds."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from fuse_index.spark.native.java_compiler import jvm_bridge
from fuse_storage import Schema
from tests.spark.class_archive import jvm_options
from tests.spark.plain import FILES, Judge, by_id, read, rows, write
from tests.spark.servers import cluster

os.environ.setdefault("JDK_JAVA_OPTIONS", jvm_options())
os.environ.setdefault("FUSE_INDEX_SECONDS", "120")  # machines that test stand still for longer than 10 s at times
# Python workers, of these JVMs and of their executors, are forked with their imports done.
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(Path(__file__).parent / "python_path"), *filter(None, [os.environ.get("PYTHONPATH")])]
)


MANY_CASES = 2
"""Of a test with more cases than these every fifth is enough on the oldest Spark, unless EFFORT says more."""


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what the newest Spark is enough for: all that nobody marked for every Spark, and cases beyond a few."""
    here = Path(__file__).parent
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if here in item.path.parents:
            # PySpark 4.0 leaves the sockets of collected results to the garbage collector.
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"))
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
            if not item.get_closest_marker("every_spark"):
                item.add_marker(pytest.mark.any_spark)
    for of_one_test in cases.values():
        for number, item in enumerate(of_one_test):
            if number % 5 and len(of_one_test) > MANY_CASES:
                item.add_marker(pytest.mark.any_spark)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = (
        sys.executable
    )  # or workers take any python3 on the PATH
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.fuse.index.deadline", "120s")  # machines that test stand still for longer than 15 s at times
        .config("spark.fuse.index.join.minScanBytes", "0")  # or no table of these tests would wait for keys
        .config("spark.sql.shuffle.partitions", "4")
        .config(
            "spark.sql.codegen.cache.maxEntries", "2000"
        )  # tests ask alike, and of 100 classes a third is made anew
        .config("spark.sql.ui.explainMode", "simple")  # each plan is written out for an interface that is off
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        # Before 4.2, Spark may end the worker of an interrupted task when another task has it already (SPARK-54217).
        .config("spark.python.task.killTimeout", "60s")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def cluster_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of a standalone cluster of two workers, for one program after the other."""
    with cluster(tmp_path_factory.mktemp("cluster")) as url:
        yield url


@pytest.fixture(scope="session")
def plain_files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write(tmp_path_factory.mktemp("numbered"), [rows(n) for n in range(FILES)])


@pytest.fixture
def judge() -> Judge:
    return Judge(by_id)


@pytest.fixture
def plain(spark: SparkSession, plain_files: list[Path], judge: Judge) -> DataFrame:
    jvm_bridge(spark).optimize(spark._jsparkSession)
    return read(spark, plain_files, Schema.create(rows(0).schema), judge)


@pytest.fixture
def plain_view(plain: DataFrame) -> Iterator[str]:
    plain.createOrReplaceTempView("native")
    yield "native"
    plain.sparkSession.catalog.dropTempView("native")
