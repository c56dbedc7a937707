"""What is said where Python workers lack a package: a sentence that names the place and the package."""

import pickle
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.functions import col

import fuse_index as fuse
from fuse_index.errors import FuseIndexError
from fuse_index.plugin import Function
from fuse_index.spark import functions
from fuse_index.spark.answers import Sealed
from fuse_index.spark.placement import run_as_tasks
from fuse_index.spark.source.batch_writer import BatchWriter
from fuse_index.spark.source.change_feed import ChangesReader
from fuse_index.spark.source.data_source import BatchReader
from fuse_index.spark.source.stream_reader import StreamReader
from fuse_index.spark.source.stream_writer import StreamWriter
from fuse_index.spark.workers import ExplainedInWorkers, for_workers, worker_problems_explained

ELSEWHERE = """
import pickle, sys
sys.modules["fuse_index"] = sys.modules["fuse_storage"] = None
print(pickle.load(open(sys.argv[1], "rb"))("id BIGINT"))
"""


@pytest.fixture
def only_here(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A module that workers do not find."""
    module = types.ModuleType("only_here")
    exec("def same(value): return value", vars(module))
    monkeypatch.setitem(sys.modules, "only_here", module)
    return module


def test_a_python_without_us_is_told_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "sent").write_bytes(cloudpickle.dumps(for_workers(fuse.open_table)))  # type: ignore[no-untyped-call]

    done = subprocess.run([sys.executable, "-c", ELSEWHERE, tmp_path / "sent"], capture_output=True, text=True)

    said = done.stderr.splitlines()[-1]
    assert said.startswith("ImportError: Spark's Python worker on ")
    assert f"{sys.executable}, cannot load what the driver sent" in said
    assert "install fuse-index there, in the driver's version, or set PYSPARK_PYTHON" in said


SOURCES = [BatchReader, ChangesReader, StreamReader, BatchWriter, StreamWriter]


@pytest.mark.parametrize("kind", SOURCES, ids=lambda kind: kind.__name__)
def test_readers_and_writers_of_the_source_travel_so_too(tmp_path: Path, kind: type) -> None:
    made = object.__new__(kind)
    vars(made).update(table="any", columns=("id",))
    sent = cloudpickle.dumps(made)  # type: ignore[no-untyped-call]

    assert issubclass(kind, ExplainedInWorkers)
    assert vars(pickle.loads(sent)) == vars(made)
    assert type(pickle.loads(sent)) is kind
    if kind is BatchReader:
        (tmp_path / "sent").write_bytes(sent)
        done = subprocess.run([sys.executable, "-c", ELSEWHERE, tmp_path / "sent"], capture_output=True, text=True)
        assert "install fuse-index there, in the driver's version" in done.stderr.splitlines()[-1]


def test_a_job_says_in_one_sentence_what_executors_lack(spark: SparkSession, only_here: types.ModuleType) -> None:
    told = r"^Spark's Python worker on .*'only_here'.* install the package that brings 'only_here' there, .*has it$"

    with pytest.raises(FuseIndexError, match=told):
        run_as_tasks(spark, only_here.same, [None])
    sealed = Sealed(only_here.same)
    with pytest.raises(FuseIndexError, match=told):
        run_as_tasks(spark, lambda _: sealed.open()(1), [None])


def test_a_function_in_a_query_says_what_executors_lack(spark: SparkSession, only_here: types.ModuleType) -> None:
    same = Function("same", (pa.bool_(),), only_here.same)

    with pytest.raises(PySparkException, match="install the package that brings 'only_here' there"):
        spark.range(1).select(functions._unbound_udf(same)(col("id") > 0)).collect()


def test_what_spark_says_of_its_workers_is_a_sentence_too(spark: SparkSession) -> None:
    def lacking(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise ModuleNotFoundError("No module named 'fuse_index'")

    told = r"^Spark's Python workers cannot run \(No module named 'fuse_index'\): on all executors, install"
    with pytest.raises(FuseIndexError, match=told), worker_problems_explained():
        spark.range(1).mapInArrow(lacking, "id long").collect()
    with pytest.raises(PySparkException, match="DIVIDE_BY_ZERO"), worker_problems_explained():
        spark.sql("SELECT 1 / id FROM range(1)").collect()


EARLY = """
import os, sitecustomize, sys
sitecustomize.import_early(sys.argv[1])
print(sitecustomize.__file__, len(os.listdir("/proc/self/task")), *sys.modules)
"""


@pytest.mark.parametrize("worker", ["pyspark.worker", "pyspark.sql.worker.write_into_data_source"])
def test_a_daemon_that_imports_early_has_one_thread_when_it_forks(worker: str) -> None:
    done = subprocess.run([sys.executable, "-c", EARLY, worker], capture_output=True, text=True)

    file, threads, *modules = done.stdout.split()
    assert file == str(Path(__file__).parent / "python_path" / "sitecustomize.py")
    assert threads == "1"
    assert {"pandas", "pyarrow", "fuse_index.table", worker} <= set(modules)
