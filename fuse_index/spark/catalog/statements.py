"""Statements that change rows, as Spark jobs: each begins at the snapshot it was analysed on, and is one commit.

In: requests of ``RowStatement.java``, which come with a DataFrame: the rows to add or, of DELETE, UPDATE and MERGE, the
rows that change, as Spark has resolved them. Out: commits. What a condition or an assignment means is Spark's own
doing; which blocks it reads for that, indexes have told its scan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

import fuse_storage as storage
from fuse_index.after_commit import after_commit
from fuse_index.errors import InputError, OpaqueError
from fuse_index.expressions.evaluable import check_evaluable, may_raise
from fuse_index.hot.append import hot_row_limit
from fuse_index.ingest.schema_merge import evolved_table
from fuse_index.operations.dml_job import DmlJob
from fuse_index.operations.row_edits import RowCondition
from fuse_index.predicate import Compare, Literal, Predicate
from fuse_index.spark.answers import Sealed
from fuse_index.spark.jobs.changed_keys import KeyedTable, put_changed_rows, put_new_rows
from fuse_index.spark.jobs.changed_rows import stage_changed_rows
from fuse_index.spark.jobs.dml import overwrite_rows, run_dml_job, stage_in_tasks, stage_unless_few
from fuse_index.spark.jobs.partitions import partition_condition
from fuse_index.spark.jobs.upsert import put_in_tasks
from fuse_index.spark.jobs.write import task_slots
from fuse_index.spark.native.java_compiler import jvm_bridge
from fuse_index.spark.native.relation import quote_path
from fuse_index.spark.native.snapshot_planner import SnapshotPlanner
from fuse_index.spark.placement import is_on_driver
from fuse_index.spark.session import find_native_session
from fuse_index.spark.source.hot_rows import commit_few, stage_handed
from fuse_index.spark.source.keyed_rows import TaskPuts, commit_keyed
from fuse_index.table.table import Table
from fuse_storage import Conflict, PartitionSpec, SchemaChange, StoredTable

_TASKS_PER_SLOT = 4
_MERGE_SCHEMA = "mergeschema"
_MERGE_SCHEMA_ADVICE = (
    "Spark takes no other columns for a name, so add them by ALTER TABLE … ADD COLUMNS, or write to the table's place "
    "by df.write.format('fuse').option('mergeSchema', 'true').mode('append').save(place)"
)
_ALWAYS = Compare("=", Literal(True, pa.bool_()), Literal(True, pa.bool_()))
"""What Spark's condition of all rows is here."""


def run_statement(spark: SparkSession, request: Mapping[str, Any]) -> bytes:
    """Do what a statement says. Raises what the same method of ``Table`` raises, and what Spark says of its rows."""
    for option in request["options"]:
        advice = _MERGE_SCHEMA_ADVICE if option == _MERGE_SCHEMA else "leave it out"
        raise InputError(f"the option {option!r} means nothing to {request['name']}: {advice}")
    session = find_native_session(request["session"])
    assert session is not None, "whoever loaded the table registered it"
    statement = _Statement(spark, request["rows"], *session.planner.table_to_change(request), session.planner)
    try:
        match request["change"]:
            case "append":
                statement.append()
            case "insert unmatched":
                statement.insert_unmatched()
            case "overwrite":
                statement.overwrite()
            case "overwrite partitions":
                statement.overwrite_partitions()
            case "truncate":
                statement.delete()
            case "delete" if statement.is_evaluable():
                statement.delete()
            case change:
                statement.change_rows(change)
    except PySparkException as failure:
        raise InputError(_refusal(failure, request["name"])) from failure
    return b""


class _Statement:
    """A statement on a table, by a condition, None for all rows, and with rows under a number, empty if there are none.

    ``step``: to the columns that its rows have, if these are others than the table's; it is of the same commit. What it
    writes becomes visible in its last step, and not at all if nobody waits for it any more.
    """

    def __init__(
        self,
        spark: SparkSession,
        rows: str,
        table: Table,
        condition: Predicate | None,
        step: SchemaChange | None,
        planner: SnapshotPlanner,
    ) -> None:
        self._spark, self._rows, self._table, self._condition, self._planner = spark, rows, table, condition, planner
        self._step, self._evolved = step, evolved_table(table.stored, step)
        self._task_count = _TASKS_PER_SLOT * task_slots(spark)

    def is_evaluable(self) -> bool:
        """Whether the rows of the condition are known here as Spark knows them, and Spark raises on none."""
        if self._condition is None or may_raise(self._condition):
            return False
        try:
            check_evaluable(self._condition, self._table.context, self._table.engine.functions)
        except OpaqueError:
            return False
        return True

    def append(self) -> None:
        """Add rows: by a hot commit if the table allows it for so few. With a primary key they are put."""
        if self._is_keyed:
            tasks = put_in_tasks(self._evolved, self._dataframe())
            return self._commit_by_key(tasks, unless_changed=False)
        job, stored = self._start("append", None), self._table.stored
        limit = hot_row_limit(stored.snapshot, None) if self._step is None else 0
        answers = stage_unless_few(Sealed(job), self._rows_to_add(), limit)
        self._check_awaited()
        handed = [answer for answer in answers if isinstance(answer, bytes)]
        staged = list(chain.from_iterable(answer for answer in answers if not isinstance(answer, bytes)))
        if handed and not staged and commit_few(stored, self._table.host, handed, limit) is not None:
            return
        staged = [*staged, *stage_handed(stored, job.builders, handed)]
        transaction = stored.transaction(job.builders, job.commit_id)
        if staged and self._step is not None:
            transaction.evolve_schema(self._step)
        transaction.append(staged)
        after = transaction.commit("append")
        after_commit(after, ())

    def insert_unmatched(self) -> None:
        """Add rows that the table lacks: unlike an append, this has read the table."""
        if self._is_keyed:
            table = KeyedTable(self._evolved, self._table.host)
            return self._commit_by_key(put_new_rows(table, self._dataframe()))
        job = self._start("merge", self._condition)
        staged = stage_in_tasks(
            Sealed(replace(job, condition=RowCondition(None, job.condition.engine))), self._rows_to_add()
        )
        self._check_awaited()
        for segments in staged:
            job.add_staged(segments.open())
        while job.commit([]):
            pass
        after_commit(job.table, ())

    def overwrite(self) -> None:
        """Replace rows by others. With a primary key there may be none: Spark fills a table so that it makes anew."""
        if self._is_keyed and self._condition in (None, _ALWAYS) and not self._table.snapshot.row_count:
            return self._commit_by_key(put_in_tasks(self._evolved, self._dataframe()))
        self._check_not_keyed("INSERT OVERWRITE")
        overwrite_rows(
            self._spark, lambda: self._start_overwrite(self._condition), self._rows_to_add(), self._task_count
        )

    def overwrite_partitions(self) -> None:
        """Replace the partitions that rows come for; all rows, in a table that has none."""
        spec = PartitionSpec.from_snapshot(self._table.snapshot)
        if spec is None:
            return self.overwrite()
        self._check_not_keyed("INSERT OVERWRITE")
        staged = stage_in_tasks(Sealed(self._start("overwrite", None)), self._rows_to_add())
        self._check_awaited()
        segments = list(chain.from_iterable(each.open() for each in staged))
        if segments:
            found = storage.staged_partitions(self._table.stored.store, segments, spec)
            job = self._start_overwrite(partition_condition(spec, found))
            job.add_staged(segments)
            run_dml_job(self._spark, lambda: job, self._task_count)

    def delete(self) -> None:
        table, condition = self._table, self._condition
        if self._is_keyed:
            table.delete("true" if condition is None else condition)
            return
        run_dml_job(self._spark, lambda: table.deleting(condition), self._task_count)

    def change_rows(self, operation: str) -> None:
        """Put the rows that change into the place of those that they were, wherever these lie by the commit."""
        if self._is_keyed:
            table = KeyedTable(self._evolved, self._table.host)
            return self._commit_by_key(put_changed_rows(table, self._dataframe(), self._task_count))
        job, rows = self._start(operation, self._condition), self._dataframe()
        while True:
            read = job.table
            outcomes, inserted = stage_changed_rows(Sealed(job), rows, self._task_count)
            self._check_awaited()
            job.added = list(chain.from_iterable(inserted))
            if not job.commit(outcomes):
                break
            rows = self._moved_rows(rows, read, job.table)
        after_commit(job.table, ())

    def _start(self, operation: str, condition: Predicate | None) -> DmlJob:
        return replace(self._table.changing(operation, condition), schema_change=self._step)

    def _start_overwrite(self, condition: Predicate | None) -> DmlJob:
        return replace(self._table.overwriting(condition), schema_change=self._step)

    @property
    def _is_keyed(self) -> bool:
        return storage.is_keyed(self._table.snapshot)

    def _check_not_keyed(self, statement: str) -> None:
        if self._is_keyed:
            raise InputError(
                f"{statement} is not for tables with a primary key: INSERT INTO puts rows by their keys, and DELETE "
                f"deletes those that are to go"
            )

    def _commit_by_key(self, tasks: list[TaskPuts], unless_changed: bool = True) -> None:
        """Commit puts and deletes; if they follow from what was read, only where it is as it was."""
        self._check_awaited()
        stored, host = self._table.stored, self._table.host
        commit_keyed(stored, host, tasks, unless_changed=unless_changed, schema_change=self._step)

    def _moved_rows(self, rows: DataFrame, read: StoredTable, head: StoredTable) -> DataFrame:
        """Ask the query of a later state, in which the rows that it is about lie elsewhere."""
        files, url = self._planner.register_state(head), head.store.url
        moved = jvm_bridge(self._spark).movedRows(rows._jdf, url, read.snapshot.id, head.snapshot.id, files)
        if moved is None:
            raise Conflict(f"the rows of {url} were moved while this statement ran: run it again", head.snapshot.id)
        return DataFrame(moved, self._spark)

    def _dataframe(self) -> DataFrame:
        return DataFrame(jvm_bridge(self._spark).attachment(self._rows), self._spark)

    def _rows_to_add(self) -> DataFrame:
        """The rows, in one task where Spark knows that they fit into one block and they are not here already."""
        rows = self._dataframe()
        if is_on_driver(rows):
            return rows
        spec = PartitionSpec.from_snapshot(self._table.snapshot)
        most = rows._jdf.queryExecution().optimizedPlan().maxRows()
        if most.isDefined() and most.get() <= self._table.snapshot.properties.get("block_rows", 1_000_000):
            return rows.coalesce(1)
        if spec is not None:  # each partition into few tasks, though a large one into several
            return rows.hint("rebalance", *(col(quote_path([name])) for name in spec.names))
        return rows

    def _check_awaited(self) -> None:
        """Raise InputError if the statement was cancelled while its rows were written."""
        if self._rows and jvm_bridge(self._spark).attachment(self._rows) is None:
            raise InputError("the statement was cancelled: nothing was changed")


def _refusal(failure: PySparkException, name: str) -> str:
    """What Spark found wrong with the rows, in one line."""
    if "MERGE_CARDINALITY_VIOLATION" in str(failure):
        return f"several rows of the source match one row of {name}: leave one for each"
    text = str(failure).partition("JVM stacktrace")[0].strip()
    if "Traceback (most recent call last)" in text:  # of a function of the user's: what it raised is at the end
        return [line for line in text.splitlines() if line and not line[0].isspace()][-1]
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [type(failure).__name__]
    return " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]
