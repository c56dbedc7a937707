"""One Spark session for all tests of Spark: starting one takes seconds."""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import fuse_index as fuse
from fuse_index.spark.native.java_compiler import jvm_bridge
from fuse_storage import Schema
from tests.spark.plain import FILES, Judge, by_id, read, rows, write
from tests.spark.servers import PROGRAMS, cluster, process
from tests.spark.settings import SETTINGS, prepare_environment

prepare_environment()


MANY_CASES = 2
"""Of a test with more cases than these every tenth is enough on the oldest Spark, unless EFFORT says more."""


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
            if number % 10 and len(of_one_test) > MANY_CASES:
                item.add_marker(pytest.mark.any_spark)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    session = (
        SparkSession.builder.master("local[2]")
        .config(map=SETTINGS)
        .config("spark.fuse.index.join.minScanBytes", "0")  # or no table of these tests would wait for keys
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
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
def killed_halfway(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tables that a driver was about to add rows to, and to change, and to follow, when it was killed."""
    folder = tmp_path_factory.mktemp("killed")
    fuse.create_table(folder / "added", "id BIGINT").append([{"id": number} for number in range(5)])
    updated = fuse.create_table(folder / "updated", "id BIGINT, kind STRING", properties={"block_rows": 5})
    updated.append([{"id": number, "kind": "a"} for number in range(20)])
    followed = fuse.create_table(folder / "stream" / "followed", "id BIGINT, city STRING")
    for number in range(0, 8, 2):
        followed.append([{"id": number, "city": "Bonn"}, {"id": number + 1, "city": "Oslo"}])
    with process([sys.executable, str(PROGRAMS / "killed_halfway.py"), str(folder)], folder / "log") as driver:
        driver.wait(240)
        assert driver.returncode == -signal.SIGKILL, (folder / "log").read_text()[-3000:]
    return folder


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
