"""What users of Spark call: ``install``, ``read`` and ``explain``.

A classic session reads natively; where that is not possible, the Python data source does, with a warning that says why.
"""

from __future__ import annotations

import json
import os
import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from fuse_index.errors import InputError
from fuse_index.indexes.registry import Host
from fuse_index.pruning.explanation import Explanation, Vote
from fuse_index.reasons import Reason
from fuse_index.spark import functions
from fuse_index.spark.native import relation
from fuse_index.spark.native.java_compiler import jvm_bridge
from fuse_index.spark.native.planner_callback import PlannerCallback
from fuse_index.spark.native.snapshot_planner import INDEXED_MODE, SnapshotPlanner
from fuse_index.spark.placement import is_connect, run_where_reachable
from fuse_index.spark.schemas import to_spark_schema
from fuse_index.spark.source import data_source
from fuse_index.spark.source.options import STORE_PREFIX, TableLocation
from fuse_index.table.arguments import check_arguments
from fuse_index.table.open import open_table
from fuse_storage import StoredTable

_MASTER_PATTERN = re.compile(r"local(\[(\*|\d+)(, *\d+)?\]|-cluster\[.*\])?|yarn|(spark|k8s|sc)://.+")
_MASTER_HINT = "give one such as local[4], spark://host:7077 or sc://host"
_HADOOP_SCHEMES = {"": ("file",), "file": ("file",), "s3": ("s3", "s3a"), "gs": ("gs",)}
"""By the scheme of a table's URL, what Hadoop may call it, the likeliest first."""


class FallbackWarning(UserWarning):
    """A table is read through the slower Python source; the message says why."""


@dataclass(frozen=True)
class _Session:
    key: str
    planner: SnapshotPlanner
    callback: PlannerCallback


_lock = Lock()
_sessions: dict[str, _Session] = {}
"""By key: the JVM asks for votes long after whoever made a DataFrame has forgotten it."""


def start_session(master: str) -> SparkSession:
    """A session of a program's own, with this Python for its workers, installed. ``master``: such as ``local[4]`` or
    ``sc://host``.

    Raises InputError where Spark cannot be had.
    """
    if not _MASTER_PATTERN.fullmatch(master):  # or the JVM says so, in a page
        raise InputError(f"no Spark at {master!r}: {_MASTER_HINT}")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # or workers take any python3 on the PATH
    builder = SparkSession.builder.appName("fuse-index")
    try:
        spark = (builder.remote(master) if master.startswith("sc://") else builder.master(master)).getOrCreate()
    except (PySparkException, Py4JError) as refusal:
        said = str(refusal).strip().split("\n")[0]
        raise InputError(f"no Spark at {master!r}: {said}; {_MASTER_HINT}") from refusal
    install(spark)
    return spark


def install(spark: SparkSession, host: Host | None = None) -> None:
    """Make a session know ``format("fuse")`` and, if it is a classic one, let its optimizer ask indexes.

    ``host`` has the index kinds to use; by default all that are installed. Safe to call twice: a host given later
    replaces the former, also for DataFrames that are there already.
    """
    data_source.register_source(spark, host)
    functions.register_functions(spark, host or Host.discover())
    if not is_connect(spark):
        _session(spark, host)


@check_arguments
def read(
    spark: SparkSession,
    url: str | Path,
    branch: str = "main",
    at: str | datetime | None = None,
    *,
    indexes: bool = True,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """A DataFrame over a table, for Spark SQL and DataFrames alike: each query reads only blocks that may hold an
    answer.

    It reads the head of ``branch`` as it is now; ``REFRESH TABLE`` on a view of it moves to the head of then. ``at`` is
    a snapshot id, a tag or a time: then it stays. ``indexes=False`` reads everything, to compare with. ``options`` are
    those of the object store for us; Spark has its own. Raises StorageError.
    """
    if is_connect(spark):
        place = TableLocation(str(url), branch, _at_text(at), _option_pairs(options))
        return _through_source(spark, place, "Spark Connect has no JVM here to ask indexes from")
    table = StoredTable.open(url, branch=branch, at=at, options=options)
    pinned = TableLocation(str(url), branch, table.snapshot.id, _option_pairs(options))
    scheme = _scheme(spark, table.store.url)
    if scheme is None:
        return _through_source(spark, pinned, f"Spark has no file system for {table.store.url}")
    older = relation.schemas_with_null_struct_bug(spark, table.snapshot.schemas.values())
    if why := relation.unsupported_reason(table.snapshot.schema, older):
        return _through_source(spark, pinned, why)
    session = _session(spark)
    return relation.snapshot_dataframe(
        spark,
        session.key,
        table.store.url,
        branch if at is None else "",
        INDEXED_MODE if indexes else "everything",
        table.snapshot.id,
        session.planner.register_table(table, scheme, dict(options or {})),
        table.snapshot.schema,
        older,
    )


def search(
    spark: SparkSession,
    url: str,
    columns: str | Sequence[str],
    query: str,
    limit: int = 10,
    where: str | None = None,
    select: Sequence[str] | None = None,
    options: str | None = None,
    highlight: tuple[str, str] | None = None,
    branch: str = "main",
    at: str | datetime | None = None,
) -> DataFrame:
    """The best rows for a query, best first, as a DataFrame with ``_score``: what ``Table.search`` gives, and
    raises.
    """

    def found() -> pa.Table:
        return open_table(url, branch=branch, at=at).search(columns, query, limit, where, select, options, highlight)

    rows = run_where_reachable(spark, found)
    return spark.createDataFrame(rows, to_spark_schema(rows.schema))


class Explanations(tuple[Explanation, ...]):
    """The accounts of a query that scans several tables, or one with several predicates."""

    def __str__(self) -> str:
        return "\n\n".join(map(str, self))

    def to_dict(self) -> dict[str, Any]:
        return {"scans": [each.to_dict() for each in self]}

    def _repr_html_(self) -> str:
        return "<hr>".join(each._repr_html_() for each in self)


def explain(df: DataFrame) -> Explanation | Explanations:
    """What indexes removed from the scans of ``df``, in the plan that ran last or else would run now.

    So too of its aggregates, answered or not. A condition that Spark evaluates without having asked about it is listed
    as NOT_PUSHED. Raises InputError if nothing in the plan is of a table that was read natively.
    """
    if is_connect(df.sparkSession):
        raise InputError(
            "a Spark Connect session has no plan to look into: use fuse_index.open_table(url).explain(where)"
        )
    jvm, execution = jvm_bridge(df.sparkSession), df._jdf.queryExecution()
    answers, scans = json.loads(jvm.answers(execution)), json.loads(jvm.scans(execution))
    found = Explanations(_explanation_of(each) for each in answers if each.get("answered"))
    left = [(each.get("snapshot"), _aggregate_votes(each)) for each in answers if not each.get("answered")]
    found = Explanations((*found, *(_with_aggregate_votes(_explanation_of(scan), left) for scan in scans)))
    if not found:
        raise InputError("no scan in this plan comes from fuse_index.spark.read: nothing to explain")
    return found[0] if len(found) == 1 else found


def _explanation_of(scan: dict[str, Any]) -> Explanation:
    session = _sessions.get(scan["voter"])
    if session is None:
        raise InputError("this DataFrame was made by another Python process: read the table again here")
    explanation = session.callback.explain(scan["request"])
    unpushed = tuple(
        Vote(text, "", "", Reason.NOT_PUSHED, "Spark kept it to itself") for text in scan.get("unpushed", ())
    )
    return replace(explanation, votes=(*explanation.votes, *unpushed))


def _aggregate_votes(aggregate: dict[str, Any]) -> tuple[Vote, ...]:
    """Why an aggregate was left as it was."""
    if "refusal" in aggregate:
        return (Vote("(aggregate)", "", "", Reason.LEAF_UNSUPPORTED, aggregate["refusal"]),)
    return _explanation_of(aggregate).votes


def _with_aggregate_votes(scan: Explanation, left: Sequence[tuple[str | None, tuple[Vote, ...]]]) -> Explanation:
    """The scan's account, with that of the aggregates over it."""
    votes = (vote for snapshot, votes in left if snapshot in (scan.snapshot, None) for vote in votes)
    return replace(scan, votes=tuple(dict.fromkeys((*scan.votes, *votes))))


def _session(spark: SparkSession, host: Host | None = None) -> _Session:
    jvm = jvm_bridge(spark)
    key = f"{spark._jsparkSession.sessionUUID()}/{os.getpid()}"
    with _lock:
        if host is not None or key not in _sessions:
            tables = SnapshotPlanner(host or Host.discover())
            _sessions[key] = _Session(key, tables, PlannerCallback(tables))
            jvm.register(key, _sessions[key].callback)
    jvm.optimize(spark._jsparkSession)
    return _sessions[key]


def _scheme(spark: SparkSession, url: str) -> str | None:
    """What Spark calls the scheme of ``url``; None if it has no file system for it."""
    jvm: Any = spark.sparkContext._jvm
    configuration = spark._jsparkSession.sessionState().newHadoopConf()
    own, rest = url.split(":", 1) if "://" in url else ("", url)
    for scheme in _HADOOP_SCHEMES.get(own, (own,)):
        try:
            jvm.org.apache.hadoop.fs.FileSystem.get(
                jvm.org.apache.hadoop.fs.Path(f"{scheme}:{rest}").toUri(), configuration
            )
        except Py4JJavaError:
            continue
        return scheme
    return None


def _through_source(spark: SparkSession, place: TableLocation, why: str) -> DataFrame:
    data_source.register_source(spark)
    warnings.warn(
        f"{place.url} is read through format('fuse'), which skips less and copies more: {why}",
        FallbackWarning,
        stacklevel=3,
    )
    reader = (
        spark.read.format("fuse")
        .option("branch", place.branch)
        .options(**{f"{STORE_PREFIX}{key}": value for key, value in place.store_options})
    )
    return (reader.option("at", place.at) if place.at else reader).load(place.url)


def _at_text(at: str | datetime | None) -> str | None:
    return at.isoformat() if isinstance(at, datetime) else at


def _option_pairs(options: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    return tuple((options or {}).items())
