"""What the sessions of all Spark's tests have in common."""

import os
import sys
from pathlib import Path

from tests.spark.class_archive import jvm_options

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.fuse.index.deadline": "120s",  # machines that test stand still for longer than 15 s at times
    "spark.sql.codegen.cache.maxEntries": "2000",  # tests ask alike, and of 100 classes a third is made anew
    "spark.sql.ui.explainMode": "simple",  # each plan is written out for an interface that is off
    "spark.buffer.pageSize": "1m",  # each sort and hash table takes a page, of 8 MB where nobody says how large
    # Room from the beginning: a heap that starts small is collected as a whole each time that it grows.
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": "-Xms1g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


def prepare_environment() -> None:
    """Set what JVMs, and Python workers of theirs and of their executors, take from the environment."""
    os.environ.setdefault("JDK_JAVA_OPTIONS", jvm_options())
    os.environ.setdefault("FUSE_INDEX_SECONDS", "120")  # machines that test stand still for longer than 10 s at times
    # Python workers are forked with their imports done.
    forked = str(Path(__file__).parent / "python_path")
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join([forked, *(path for path in paths if path and path != forked)])
    # or workers take any python3 on the PATH
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
