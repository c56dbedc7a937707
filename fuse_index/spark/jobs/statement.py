"""A statement of Spark SQL that changes rows: begun at the snapshot that it was analysed on, and one commit.

Spark resolves its condition and its assignments, and gives the rows to add or, of DELETE, UPDATE and MERGE, the rows
that change. Which blocks it reads for that, indexes have told its scan.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from fuse_index.errors import OpaqueError
from fuse_index.expressions.evaluable import check_evaluable, may_raise
from fuse_index.ingest.schema_merge import evolved_table
from fuse_index.predicate import Compare, Literal, Predicate
from fuse_index.spark.jobs.write import task_slots
from fuse_index.spark.native.java_compiler import jvm_bridge
from fuse_index.spark.native.snapshot_planner import SnapshotPlanner
from fuse_index.table.table import Table
from fuse_storage import SchemaChange, StoredTable

ALWAYS = Compare("=", Literal(True, pa.bool_()), Literal(True, pa.bool_()))
"""What Spark's condition of all rows is here."""
_TASKS_PER_SLOT = 4


@dataclass(frozen=True)
class Statement:
    """A statement on a table, by a condition, None for all rows, and with rows under a number, empty if there are none.

    A ``HeapStatement`` or a ``KeyedStatement``, which have a method for each change that ``RowStatement.java`` names.
    ``step``: to the columns that its rows have, if these are others than the table's; it is of the same commit.
    """

    spark: SparkSession
    rows: str
    table: Table
    condition: Predicate | None
    step: SchemaChange | None
    planner: SnapshotPlanner

    def is_evaluable(self) -> bool:
        """Whether the rows of the condition are known here as Spark knows them, and Spark raises on none."""
        if self.condition is None or may_raise(self.condition, self.table.context):
            return False
        try:
            self.check_evaluable()
        except OpaqueError:
            return False
        return True

    def check_evaluable(self) -> None:
        """Raise OpaqueError if only Spark can evaluate the condition."""
        check_evaluable(self.condition, self.table.context, self.table.engine.functions)

    @property
    def task_count(self) -> int:
        return _TASKS_PER_SLOT * task_slots(self.spark)

    @property
    def evolved(self) -> StoredTable:
        """The table as its columns will be."""
        return evolved_table(self.table.stored, self.step)

    def dataframe(self) -> DataFrame:
        """The rows that came with the statement."""
        return DataFrame(jvm_bridge(self.spark).attachment(self.rows), self.spark)
