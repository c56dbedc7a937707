"""``format("fuse")``: a table as a Python data source, for reading and writing, Spark Connect included.

Planning, reading and committing run in Python workers that are neither the driver nor each other, and no plugin needs to
be discoverable there. So the class that is registered carries what they need: index kinds (by reference), and what
depends on the session. Blocks are skipped for the ``where`` option alone. Filters that Spark pushes are not taken: Spark
keeps one plan for all scans of a relation, the last one made, so that a filter of one query removes rows from the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from fuse_index.errors import OpaqueError
from fuse_index.host import Host
from fuse_index.judge import leaves
from fuse_index.plan import plan
from fuse_index.predicate import Context, Opaque, Predicate
from fuse_index.scan import Scan
from fuse_index.spark import options, schemas
from fuse_index.spark.near import active
from fuse_index.spark.parts import cut
from fuse_index.spark.writer import Writer, writer
from fuse_storage import SchemaError, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCH_ROWS = 65_536
"""At most so many rows are handed to Spark at once."""


class FuseSource(DataSource):
    """Options: ``path``, ``branch``, ``at``, ``where``, ``columns``, ``timezone`` and ``store.*``.

    A DataFrame reads the snapshot that was the head when it was loaded.
    """

    host: ClassVar[Host]
    context: ClassVar[Context]
    pinned: str | None = None

    @classmethod
    def name(cls) -> str:
        return "fuse"

    def schema(self) -> StructType:
        """Also checks ``where`` and ``columns``, so that a mistake shows at ``load``. Raises OptionError, StorageError, WhereError."""
        table, names = self._table()
        self._where(table)
        self.pinned = table.snapshot.id
        return schemas.to_spark(_picked(table, names))

    def reader(self, schema: StructType) -> Reader:
        """``schema`` is ours, or the user's own: then it picks columns, by name."""
        table, names = self._table()
        wanted = schemas.to_arrow(schema)
        _check_asked(wanted, _picked(table, names))
        return Reader(table, wanted, self._where(table), self.host, self._context())

    def writer(self, schema: StructType, overwrite: bool) -> Writer:
        """Checks the schema at once; creates the table if there is none. Raises OptionError, StorageError."""
        return writer(options.place(self.options, options.WRITING), schema, overwrite, self.host)

    def _table(self) -> tuple[Table, tuple[str, ...]]:
        """The table at the snapshot that is read, and the columns that the options ask for."""
        place = options.place(self.options, options.READING)
        table = (replace(place, at=self.pinned) if self.pinned else place).open()
        return table, options.columns(self.options.get("columns"), table.snapshot.schema, self.context.case_sensitive)

    def _context(self) -> Context:
        return replace(self.context, time_zone=self.options.get("timezone") or self.context.time_zone)

    def _where(self, table: Table) -> Predicate | None:
        text = self.options.get("where")
        if not text:
            return None
        from fuse_index.where import parse  # the SQL parser takes a while to import, in every planning process

        found = parse(text, table.snapshot.schema, self._context(), self.host.functions)
        for leaf in leaves(found):
            if isinstance(leaf, Opaque):
                raise OpaqueError(f"option where={text!r}: {leaf.sql} cannot be evaluated here; use DataFrame.where for it")
        return found


class Reader(DataSourceReader):
    """Plans in one process, reads in others: what a task needs travels in its partition."""

    def __init__(self, table: Table, schema: pa.Schema, where: Predicate | None, host: Host, context: Context) -> None:
        self.table, self.schema, self.where, self.host, self.context = table, schema, where, host, context

    def partitions(self) -> list[InputPartition]:
        """Blocks that may hold an answer, about a million rows to a partition; if there are none, Spark runs one empty task."""
        made = plan(self.table, self.where, self.host, self.context)
        return [Part(Scan(piece, tuple(self.schema.names), self.host.functions)) for piece in cut(made)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, Part):
            for batch in partition.value.to_batches():
                yield from pa.Table.from_batches([batch]).cast(self.schema).to_batches(BATCH_ROWS)


class Part(InputPartition):
    """The blocks of one task."""

    value: Scan


def register(spark: SparkSession, host: Host | None = None) -> type[FuseSource]:
    """Make ``format("fuse")`` known to this session, with the index kinds of ``host`` (default: all that are installed).

    What ``where`` depends on is read now: the session's time zone, ANSI mode and case sensitivity. Registering again
    replaces the former.
    """
    made = source_class(
        host or Host.discover(),
        Context(
            spark.conf.get("spark.sql.session.timeZone") or "UTC",
            _is_on(spark, "spark.sql.ansi.enabled"),
            _is_on(spark, "spark.sql.caseSensitive"),
        ),
    )
    with active(spark):  # or another session's source of this name is taken for a stranger's
        spark.dataSource.register(made)
    return made


def source_class(host: Host, context: Context) -> type[FuseSource]:
    """A class of its own, found in no module: so it is pickled by value, with what it carries."""
    return type("RegisteredFuseSource", (FuseSource,), {"host": host, "context": context, "__module__": "__main__"})


def _is_on(spark: SparkSession, name: str) -> bool:
    return str(spark.conf.get(name, "false")).lower() == "true"


def _picked(table: Table, names: tuple[str, ...]) -> pa.Schema:
    whole = table.snapshot.schema.arrow
    return pa.schema([whole.field(name) for name in names])


def _check_asked(asked: pa.Schema, offered: pa.Schema) -> None:
    for field in asked:
        if field.name not in offered.names:
            raise SchemaError(f"the schema given to load() has a column {field.name!r} that the table lacks: it has {offered.names}")
        held = offered.field(field.name)
        if held.type != field.type:
            raise SchemaError(f"column {field.name!r} is {held.type}, and the schema given to load() says {field.type}: leave it out")
        if held.nullable and not field.nullable:
            raise SchemaError(f"column {field.name!r} may be NULL, and the schema given to load() says NOT NULL")
