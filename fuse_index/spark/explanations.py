"""What the indexes removed from a query of Spark: out of its plan, and from the replies that its planning was given.

In: a DataFrame of a classic session. Out: an explanation for each scan and answered aggregate of our tables.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from fuse_index.errors import InputError
from fuse_index.pruning.account.uses import SourceUse
from fuse_index.pruning.explanation import Explanation, Vote
from fuse_index.reasons import Reason
from fuse_index.spark.accounts.statements import explain_rows, explain_target, mark_added
from fuse_index.spark.accounts.streams import explain_streams
from fuse_index.spark.native.java_compiler import jvm_bridge
from fuse_index.spark.native.planner_callback import switched_off
from fuse_index.spark.placement import active_session, is_connect
from fuse_index.spark.protocol.requests import ChangeRowsRequest, decode_request
from fuse_index.spark.protocol.words import Change
from fuse_index.spark.session import find_native_session, register_session
from fuse_index.sql.call_markers import name_marked_calls


class Explanations(tuple[Explanation, ...]):
    """The explanations of a query that scans several tables, or one with several predicates."""

    def __str__(self) -> str:
        return "\n\n".join(map(str, self))

    def to_dict(self) -> dict[str, Any]:
        return {"scans": [explanation.to_dict() for explanation in self]}

    def _repr_html_(self) -> str:
        return "<hr>".join(explanation._repr_html_() for explanation in self)


def explain(df: DataFrame) -> Explanation | Explanations:
    """Say what indexes removed from the scans of a DataFrame, in the plan that ran last or else would run now.

    So too of its aggregates, answered or not. Of a stream it tells what the first batch would read of a query that
    begins now. A condition that Spark evaluates without having asked about it is listed as NOT_PUSHED.

    Args:
        df: A DataFrame of a classic session.

    Returns:
        The explanation of its scan, or ``Explanations`` where it has several; ``print`` shows it.

    Raises:
        InputError: It is no DataFrame, nothing in its plan is of a table that was read natively, or the session is of
            Connect.

    Example:
        orders = fuse_spark.read(spark, "/data/orders").where("id = 7")
        print(fuse_spark.explain(orders))
    """
    if not hasattr(df, "sparkSession"):  # a stream that is written, or the query that does
        raise InputError(
            f"{type(df).__name__} cannot be explained: give the DataFrame. What a stream writes to a table is a commit "
            f"for each batch, for which nothing of the table is read"
        )
    if is_connect(df.sparkSession):
        raise InputError(
            "a Spark Connect session has no plan to look into: use fuse_index.open_table(url).explain(where)"
        )
    return _explain_rows(df)


def _explain_rows(df: DataFrame, statement: Any = None) -> Explanation | Explanations:
    explanations = _streams_of(df) if df.isStreaming else _scans_of(df, statement)
    if not explanations:
        raise InputError(f"nothing to explain: {_why_nothing(df)}")
    return _one_or_more(explanations)


def _why_nothing(df: DataFrame) -> str:
    if "UnionLoop" in df._jdf.queryExecution().analyzed().toString():
        return "Spark plans the steps of WITH RECURSIVE while the query runs: explain the SELECT of one step by itself"
    return "this query scans no table of ours natively, and no source that one of ours votes on"


def _scans_of(df: DataFrame, statement: Any = None) -> Sequence[Explanation]:
    """The explanations of what a DataFrame scans of ours; none if it scans nothing.

    ``statement``: the plan of which these are the rows, since who wrote it knows no other conditions.
    """
    bridge, execution = jvm_bridge(df.sparkSession), df._jdf.queryExecution()
    found = bridge.scans(execution) if statement is None else statement.scans(execution)
    aggregates, scans = json.loads(bridge.answers(execution)), json.loads(found)
    unanswered = [(line.get("snapshot"), _aggregate_votes(line)) for line in aggregates if not line.get("answered")]
    return [
        *(_explanation_of(line) for line in aggregates if line.get("answered")),
        *(_with_aggregate_votes(_explanation_of(scan), unanswered) for scan in scans),
    ]


def _streams_of(df: DataFrame) -> Sequence[Explanation]:
    return explain_streams(df, register_session(df.sparkSession).planner.host)


def _one_or_more(explanations: Sequence[Explanation]) -> Explanation | Explanations:
    return explanations[0] if len(explanations) == 1 else Explanations(explanations)


def explain_query(spark: SparkSession, text: str) -> Explanation | Explanations:
    """What indexes would remove from the scans of a query, or of a statement that changes or adds rows; nothing runs.

    Raises InputError for any other statement, what Spark raises for text that it does not understand, and as
    ``explain`` does.
    """
    if not text.strip():
        raise InputError("query is empty: give the text of a SELECT")
    bridge = jvm_bridge(spark)
    with active_session(spark):  # a procedure runs on a thread that has none, and its settings say what is off
        planned = bridge.query(spark._jsparkSession, text)
        if planned is not None:
            return explain(DataFrame(planned, spark))
        statement = bridge.statement(spark._jsparkSession, text)
        if statement is None:
            raise InputError(
                f"{text!r} is no query, and was not run: give the text of a SELECT, or of a DELETE, UPDATE, MERGE or "
                f"INSERT"
            )
        return _explain_statement(statement, spark)


def _explain_statement(statement: Any, spark: SparkSession) -> Explanation | Explanations:
    """What a statement would read: by its condition where Python does it, else by the query of its rows."""
    described, rows = statement.described(), DataFrame(statement.rows(), spark)
    if described is None:
        return _explain_rows(rows, statement)
    request, awaited = described
    asked = decode_request(request)
    assert isinstance(asked, ChangeRowsRequest), "so RowStatement.java writes it"
    with switched_off(asked):
        target = explain_target(spark, asked)
    if target is not None and asked.change is Change.DELETE:
        return target
    if target is not None:
        return _one_or_more([target, *_scans_of(rows, statement)])
    return _one_or_more(explain_rows(asked, _scans_of(rows, statement), awaited))


def _explanation_of(line: dict[str, Any]) -> Explanation:
    """The explanation of the reply to a request, as ``ScanReport.java`` and ``AggregateReport.java`` name it."""
    session = find_native_session(line["callback"])
    if session is None:
        raise InputError("this DataFrame was made by another Python process: read the table again here")
    explanation = session.callback.explain(line["request"])
    unpushed = tuple(
        Vote(name_marked_calls(text), "", "", Reason.NOT_PUSHED, why or "Spark kept it to itself")
        for text, why in line.get("unpushed", {}).items()
    )
    awaited = tuple(
        Vote(text, "", "", Reason.KEYS_AWAITED, "its keys are asked about while the query runs")
        for text in line.get("awaited", ())
    )
    table, alias = line.get("table", explanation.table), line.get("alias", "")
    votes = mark_added(explanation.votes, line["request"], line.get("added", ()), session.planner)
    return replace(
        explanation,
        votes=(*votes, *unpushed, *awaited),
        table=table,
        alias="" if alias == table or table.endswith((f".{alias}", f".`{alias}`")) else alias,
        source=SourceUse(**line["source"]) if "source" in line else None,
    )


def _aggregate_votes(aggregate: dict[str, Any]) -> tuple[Vote, ...]:
    """Votes that say why an aggregate was left to Spark."""
    if "refusal" in aggregate:
        return (Vote("(aggregate)", "", "", Reason.LEAF_UNSUPPORTED, aggregate["refusal"]),)
    return _explanation_of(aggregate).votes


def _with_aggregate_votes(scan: Explanation, unanswered: Sequence[tuple[str | None, tuple[Vote, ...]]]) -> Explanation:
    """The explanation of a scan, with the votes of the aggregates over it that Spark evaluates, by their snapshots."""
    votes = [vote for snapshot, votes in unanswered if snapshot in (scan.snapshot, None) for vote in votes]
    known = {(vote.leaf, vote.index) for vote in scan.votes}
    others = (vote for vote in dict.fromkeys(votes) if (vote.leaf, vote.index) not in known)
    return replace(scan, votes=(*scan.votes, *others))
