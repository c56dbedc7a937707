"""Functions on their way to Spark's Python workers, and what is said where those lack a package that they need.

A worker loads a function of ours by importing our modules, and where it has none, Spark tells a trace of that. So
functions travel within one that needs nothing of ours and says in a sentence what to install, and where.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark import cloudpickle
from pyspark.errors import PySparkException

from fuse_index.errors import FuseIndexError
from fuse_storage import CodedError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_T = TypeVar("_T")
_Batches = Iterator["pa.RecordBatch"]

_SENTENCE = re.compile(r"Spark's Python worker on .+")
_SPARKS_OWN = re.compile(
    r"No module named '[\w.]+'|Cannot run program \"[^\"\n]+\""
    r"|\[(?:PACKAGE_NOT_INSTALLED|UNSUPPORTED_PACKAGE_VERSION|PYTHON_VERSION_MISMATCH)\] .+"
)
"""What Spark says, in the middle of a trace, of workers that do not get as far as our functions."""
_WITHOUT_FRAMES = "SPARK_HIDE_TRACEBACK"
"""The variable by which Spark's workers leave frames out."""


def for_workers(function: Callable[..., _T]) -> Callable[..., _T]:
    """Wrap a function for workers: in one that cannot load it, it raises ImportError in a sentence."""
    pickled, loaded, explain = cloudpickle.dumps(function), list[Any](), _explanation()  # type: ignore[no-untyped-call]

    def run(*arguments: Any) -> Any:  # travels by its value, and may name nothing of this module
        if not loaded:
            import pickle

            try:
                loaded.append(pickle.loads(pickled))
            except (ImportError, AttributeError) as problem:
                raise ImportError(explain(problem)) from None
        return loaded[0](*arguments)

    return run


class ExplainedInWorkers:
    """Readers and writers on their way to workers: one that cannot load them raises ImportError in a sentence."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[()]]:
        return for_workers(partial(_restore, type(self), vars(self))), ()


def _restore(kind: type[_T], members: dict[str, Any]) -> _T:
    restored = object.__new__(kind)
    vars(restored).update(members)
    return restored


def map_in_workers(df: DataFrame, function: Callable[[_Batches], _Batches], schema: StructType | str) -> DataFrame:
    """``df.mapInArrow`` by a function of ours."""
    return df.mapInArrow(for_workers(function), schema)


def explain_missing_package(problem: Exception) -> str:
    """What this process, a worker, lacks to load what the driver sent: a sentence that says where to install what."""
    return _explanation()(problem)


def _explanation() -> Callable[[Exception], str]:
    def explain(problem: Exception) -> str:  # travels by its value, too
        import platform
        import sys

        name = problem.name if isinstance(problem, ModuleNotFoundError) and problem.name else None
        if name is None or name.partition(".")[0] in ("fuse_index", "fuse_storage", "fuse_plugins"):
            what = "fuse-index"
        else:
            what = f"the package that brings {name.partition('.')[0]!r}"
        return (
            f"Spark's Python worker on {platform.node()}, {sys.executable}, cannot load what the driver sent "
            f"({problem}): install {what} there, in the driver's version, or set PYSPARK_PYTHON to a Python that has it"
        )

    return explain


@contextmanager
def told_without_frames() -> Iterator[None]:
    """In a worker, have an error of ours told as its sentence alone: Spark tells the frames that led to it, too.

    A worker ends when it has told an error, so what is set here is for nobody else.
    """
    try:
        yield
    except CodedError:
        if is_worker():
            os.environ[_WITHOUT_FRAMES] = "1"
        raise


def is_worker() -> bool:
    """Whether this process is one that Spark started, to run or to plan what is written in Python."""
    program = getattr(sys.modules.get("__main__"), "__spec__", None)
    return program is not None and program.name.startswith("pyspark.")


@contextmanager
def worker_problems_explained() -> Iterator[None]:
    """Raise FuseIndexError, in a sentence, where a job of Spark fails since its workers lack a package or a Python."""
    try:
        yield
    except PySparkException as failure:
        text = str(failure)
        if sentence := _SENTENCE.search(text):
            raise FuseIndexError(sentence[0].strip()) from None
        if found := _SPARKS_OWN.search(text):
            raise FuseIndexError(
                f"Spark's Python workers cannot run ({found[0].strip()}): on all executors, install what the driver "
                f"has, or set PYSPARK_PYTHON to a Python that has it"
            ) from None
        raise
