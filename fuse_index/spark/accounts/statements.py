"""Accounts of statements that write rows: by a condition, where Python does it, or by the query of their rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import msgspec
from pyspark.sql import SparkSession

from fuse_index.expressions.to_sql import predicate_sql
from fuse_index.expressions.traversal import predicate_leaves
from fuse_index.pruning.account.uses import StatementUse
from fuse_index.pruning.explanation import Explanation, Vote
from fuse_index.reasons import Reason
from fuse_index.spark.jobs.heap_statement import HeapStatement
from fuse_index.spark.jobs.statement import ALWAYS
from fuse_index.spark.native.snapshot_planner import SnapshotPlanner
from fuse_index.spark.protocol.questions import Prune, decode_question
from fuse_index.spark.protocol.requests import ChangeRowsRequest
from fuse_index.spark.protocol.words import Change
from fuse_index.spark.session import find_native_session
from fuse_index.sql.catalyst_terms import CatalystTree
from fuse_index.statements.explain import explain_append

_WHEN_IT_RUNS = "the rows of the source say its keys when the statement runs"
_WRITES = {
    Change.APPEND: "its rows, and nothing of the table is read for them",
    Change.OVERWRITE: "its rows; which others go is found when it runs",
    Change.OVERWRITE_PARTITIONS: "its rows; all others of the partitions that these are in go when it runs",
}


def explain_target(spark: SparkSession, request: ChangeRowsRequest) -> Explanation | None:
    """What a statement reads of its table to put rows there, or to take them by a condition that Python evaluates.

    None of a statement whose rows are found by its query.
    """
    planner = _planner(request)
    table, condition, step = planner.table_to_change(request)
    is_evaluable = HeapStatement(spark, "", table, condition, step, planner).is_evaluable()
    match request.change:
        case Change.DELETE if is_evaluable and condition is not None:
            told = table.row_store.explain(table.deleting(condition))
        case Change.OVERWRITE if is_evaluable:
            told = table.row_store.explain(table.overwriting(None if condition == ALWAYS else condition))
        case Change.APPEND | Change.OVERWRITE | Change.OVERWRITE_PARTITIONS:
            told = explain_append(table.stored, request.change, _WRITES[request.change])
        case _:
            return None
    return replace(told, table=request.name)


def explain_rows(request: ChangeRowsRequest, scans: Sequence[Explanation], awaited: str) -> list[Explanation]:
    """The scans of the query of a statement's rows, those of its own table with what becomes of them.

    ``awaited``: a list of joins by keys of a source, as JSON, that are asked about only when the statement runs.
    """
    table, _, _ = _planner(request).table_to_change(request)
    keys = [Vote(text, "", "", Reason.KEYS_AWAITED, _WHEN_IT_RUNS, added=True) for text in json.loads(awaited)]
    use = StatementUse(request.change, 0, table.row_store.writes)
    return [
        replace(scan, statement=use, votes=(*scan.votes, *keys)) if scan.table == request.name else scan
        for scan in scans
    ]


def mark_added(
    votes: Sequence[Vote], request: str, added: Sequence[CatalystTree], planner: SnapshotPlanner
) -> list[Vote]:
    """The votes on a scan's filters, marked where only filters that nobody wrote, ``added``, have the leaf."""
    question = decode_question(request)
    if not added or not isinstance(question, Prune):
        return list(votes)
    parts: tuple[list[CatalystTree], list[CatalystTree]] = ([], [])
    for condition in question.filters:
        parts[condition in added].append(condition)
    own, others = (_leaves(msgspec.structs.replace(question, filters=filters), planner) for filters in parts)
    return [_as_added(vote) if vote.leaf in others - own else vote for vote in votes]


def _as_added(vote: Vote) -> Vote:
    """A vote on a condition that nobody wrote: it is no loss that an index knows nothing of it."""
    if vote.reason not in (Reason.LEAF_UNSUPPORTED, Reason.NO_INDEX):
        return replace(vote, added=True)
    return replace(vote, added=True, reason=Reason.NOT_NEEDED, detail="it follows from what was asked")


def _leaves(question: Prune, planner: SnapshotPlanner) -> frozenset[str]:
    _, predicate, _ = planner.decode(question)
    return frozenset() if predicate is None else frozenset(map(predicate_sql, predicate_leaves(predicate)))


def _planner(request: ChangeRowsRequest) -> SnapshotPlanner:
    session = find_native_session(request.session)
    assert session is not None, "whoever loaded the table registered it"
    return session.planner
