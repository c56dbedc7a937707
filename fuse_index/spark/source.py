"""``format("fuse")``: a table as a Python data source, for reading and writing, Spark Connect included.

Planning, reading and committing run in Python workers that are neither the driver nor each other, and no plugin needs to
be discoverable there. So the class that is registered carries what they need: index kinds (by reference), what
depends on the session, and whether Spark pushes filters. Pruning is the planner's (``fuse_index.plan``); Spark
evaluates the filters it pushes once more, and ``where`` is evaluated here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from fuse_index.errors import OpaqueError
from fuse_index.host import Host
from fuse_index.judge import leaves
from fuse_index.plan import plan
from fuse_index.predicate import And, Context, Opaque, Predicate
from fuse_index.scan import Scan
from fuse_index.spark import options, schemas
from fuse_index.spark.parts import cut
from fuse_index.spark.writer import Writer, writer
from fuse_index.where import parse
from fuse_storage import SchemaError, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import Filter

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
BATCH_ROWS = 65_536
"""At most so many rows are handed to Spark at once."""


class FuseSource(DataSource):
    """Options: ``path``, ``branch``, ``at``, ``where``, ``columns``, ``timezone`` and ``store.*``.

    A DataFrame reads the snapshot that was the head when it was loaded.
    """

    host: ClassVar[Host]
    context: ClassVar[Context]
    pushdown: ClassVar[bool]
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
        make = PushdownReader if self.pushdown else Reader
        return make(table, wanted, self._where(table), self.host, self._context())

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
        found = parse(text, table.snapshot.schema, self._context(), self.host.functions)
        for leaf in leaves(found):
            if isinstance(leaf, Opaque):
                raise OpaqueError(f"option where={text!r}: {leaf.sql} cannot be evaluated here; use DataFrame.where for it")
        return found


class Reader(DataSourceReader):
    """Plans in one process, reads in others: what a task needs travels in its partition."""

    def __init__(self, table: Table, schema: pa.Schema, where: Predicate | None, host: Host, context: Context) -> None:
        self.table, self.schema, self.where, self.host, self.context = table, schema, where, host, context
        self.pushed: And = And(())

    def partitions(self) -> list[InputPartition]:
        """Blocks that may hold an answer, about a million rows to a partition; if there are none, Spark runs one empty task."""
        terms = (*([self.where] if self.where is not None else []), *self.pushed.terms)
        made = plan(self.table, And(terms) if terms else None, self.host, self.context)
        return [Part(Scan(piece, tuple(self.schema.names), self.host.functions)) for piece in cut(replace(made, predicate=self.where))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, Part):
            for batch in partition.value.to_batches():
                yield from pa.Table.from_batches([batch]).cast(self.schema).to_batches(BATCH_ROWS)


class PushdownReader(Reader):
    """Where Spark pushes filters. A class that can take them fails every read where it does not, so there are two."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802  # Spark's name
        """Take all into account, and return them all: Spark evaluates them again, we only promise to skip."""
        from fuse_index.spark.source_filters import translate  # needs Spark 4.1

        known = translate(filters, self.table.snapshot.schema)
        self.pushed = And(tuple(term for term in known.terms if not isinstance(term, Opaque)))
        return filters


class Part(InputPartition):
    """The blocks of one task."""

    value: Scan


def register(spark: SparkSession, host: Host | None = None) -> type[FuseSource]:
    """Make ``format("fuse")`` known to this session, with the index kinds of ``host`` (default: all that are installed).

    What depends on the session is read now: its time zone (for ``where``), ANSI mode, case sensitivity, and whether it
    pushes filters. Registering again replaces the former.
    """
    made = source_class(
        host or Host.discover(),
        Context(
            spark.conf.get("spark.sql.session.timeZone") or "UTC",
            _is_on(spark, "spark.sql.ansi.enabled"),
            _is_on(spark, "spark.sql.caseSensitive"),
        ),
        _is_on(spark, PUSHDOWN),
    )
    spark.dataSource.register(made)
    return made


def source_class(host: Host, context: Context, pushdown: bool) -> type[FuseSource]:
    """A class of its own, found in no module: so it is pickled by value, with what it carries."""
    return type("RegisteredFuseSource", (FuseSource,), {"host": host, "context": context, "pushdown": pushdown, "__module__": "__main__"})


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
