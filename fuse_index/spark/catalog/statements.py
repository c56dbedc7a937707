"""Statements that change rows, as Spark jobs: each begins at the snapshot it was analysed on, and is one commit.

In: requests of ``RowStatement.java``, which come with a DataFrame: the rows to add or, of DELETE, UPDATE and MERGE, the
rows that change, as Spark has resolved them. Out: commits. What a condition or an assignment means is Spark's own
doing; which blocks it reads for that, indexes have told its scan.
"""

from __future__ import annotations

from textwrap import shorten

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from fuse_index.errors import InputError, OpaqueError
from fuse_index.spark.failures import refusal
from fuse_index.spark.jobs.heap_statement import HeapStatement
from fuse_index.spark.jobs.keyed_statement import KeyedStatement
from fuse_index.spark.native.planner_callback import switched_off
from fuse_index.spark.protocol.requests import ChangeRowsRequest
from fuse_index.spark.protocol.words import Change
from fuse_index.spark.session import find_native_session

_MERGE_SCHEMA = "mergeschema"
_MERGE_SCHEMA_ADVICE = (
    "Spark takes no other columns for a name, so add them by ALTER TABLE … ADD COLUMNS, or write to the table's place "
    "by df.write.format('fuse').option('mergeSchema', 'true').mode('append').save(place)"
)


def run_statement(spark: SparkSession, request: ChangeRowsRequest) -> bytes:
    """Do what a statement says. Raises what the same method of ``Table`` raises, and what Spark says of its rows."""
    for option in request.options:
        advice = _MERGE_SCHEMA_ADVICE if option == _MERGE_SCHEMA else "leave it out"
        raise InputError(f"the option {option!r} means nothing to {request.name}: {advice}")
    session = find_native_session(request.session)
    assert session is not None, "whoever loaded the table registered it"
    table, condition, step = session.planner.table_to_change(request)
    kind = HeapStatement if table.row_store.rewrites_blocks else KeyedStatement
    statement = kind(spark, request.rows, table, condition, step, session.planner)
    try:
        with switched_off(request):
            _run(statement, request)
    except PySparkException as failure:
        raise refusal(failure, _in_one_line(failure, request.name)) from failure
    return b""


def _run(statement: HeapStatement | KeyedStatement, request: ChangeRowsRequest) -> None:
    match change := request.change:
        case Change.APPEND:
            statement.append()
        case Change.INSERT_UNMATCHED:
            statement.insert_unmatched()
        case Change.OVERWRITE:
            try:
                statement.check_evaluable()
            except OpaqueError:
                raise OpaqueError(
                    f"only Spark can evaluate {shorten(request.condition, 500)}, by which rows cannot be replaced: "
                    f"DELETE them first, then INSERT"
                ) from None
            statement.overwrite()
        case Change.OVERWRITE_PARTITIONS:
            statement.overwrite_partitions()
        case Change.TRUNCATE:
            statement.delete()
        case Change.DELETE if statement.is_evaluable():
            statement.delete()
        case _:
            statement.change_rows(change)


def _in_one_line(failure: PySparkException, name: str) -> str:
    """What Spark found wrong with the rows, in one line."""
    if "MERGE_CARDINALITY_VIOLATION" in str(failure):
        return f"several rows of the source match one row of {name}: leave one for each"
    text = str(failure).partition("JVM stacktrace")[0].strip()
    if "Traceback (most recent call last)" in text:  # of a function of the user's: what it raised is at the end
        return [line for line in text.splitlines() if line and not line[0].isspace()][-1]
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [type(failure).__name__]
    return " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]
