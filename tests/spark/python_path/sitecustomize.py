"""Runs when a Python starts that has this folder on its path. In a daemon of Spark's, imports what its workers need
before it forks them: 0.1 s of CPU a worker in place of 1.

Spark leaves imports to each worker, as a library may start threads when it is imported, and a fork has no thread but
its own. Here none does. ``spark.python.daemon.module`` names a daemon for the workers of queries, and none for those
that plan and commit a data source.
"""

import gc
import importlib
import os
import sys

IMPORTED = ("fuse_index.spark.jobs.dml", "fuse_index.spark.source.data_source", "fuse_index.table", "pandas")


def import_early(worker: str) -> None:
    # Without these NumPy and PyArrow start a thread each when they are imported.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")
    try:
        for name in (worker, *IMPORTED):
            importlib.import_module(name)
    except ImportError:
        pass  # its workers say so where a test can read it
    gc.freeze()  # a worker collects garbage after each task, and would look at all that was imported


if sys.orig_argv[1:3] == ["-m", "pyspark.daemon"]:
    import_early(sys.orig_argv[3])
