"""What users open: a table with its indexes. Everything here hands on to the modules that know how."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import pyarrow as pa

import fuse_storage as storage
from fuse_index.aggregates.state import Aggregation, Unaggregatable
from fuse_index.changes.changes import Changing
from fuse_index.clustering.key import ClusterKey
from fuse_index.clustering.recluster import Reclustering
from fuse_index.clustering.report import ClusterKeys
from fuse_index.clustering.sorted_writer import write_runs
from fuse_index.errors import DefinitionError, InputError
from fuse_index.expressions.normalize import normalize
from fuse_index.indexes.builder import Builder, builders
from fuse_index.indexes.definition import Definition, Unavailable, define, load
from fuse_index.indexes.inputs import read_term
from fuse_index.indexes.registry import Host
from fuse_index.operations import arrow_input, build_index
from fuse_index.operations.advise import Suggestions
from fuse_index.operations.compact import Compaction
from fuse_index.operations.dml import Mutations
from fuse_index.operations.verify_index import Verification, verify
from fuse_index.predicate import Column, Context, Predicate
from fuse_index.pruning.explanation import Explanation
from fuse_index.pruning.planner import Plan, plan
from fuse_index.query.aggregate import Answer, answer, titled
from fuse_index.query.scan import Scan
from fuse_index.query.search import search
from fuse_index.table import inspect
from fuse_index.table.arguments import checking
from fuse_index.table.inspect import Looking
from fuse_index.table.refs import History
from fuse_index.table.schema import Columns, adding
from fuse_storage import ReadOnly, Snapshot

Progress = Callable[[int, int], None]
"""Told after each step how many blocks are done, and how many there are to do."""


@checking
@dataclass
class Table(History, Columns, Mutations, Compaction, Changing, ClusterKeys, Reclustering, Looking, Suggestions):
    """One snapshot of a table, and the way to its next one.

    A handle reads the snapshot that it was opened at; a write through it moves it to the snapshot that the write made.
    ``pinned``: it was opened at an older state, and stays there.
    """

    stored: storage.Table
    host: Host
    context: Context = field(default_factory=Context)
    pinned: bool = False

    def __repr__(self) -> str:
        return f"Table({self.stored.store.url!r}, branch={self.stored.branch!r}, snapshot={self.snapshot.id!r})"

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot this handle reads."""
        return self.stored.snapshot

    @property
    def schema(self) -> pa.Schema:
        return self.snapshot.schema.arrow

    def refresh(self) -> Table:
        """Move to the newest snapshot of the branch, if this handle is not pinned to an older one."""
        if not self.pinned:
            self.stored = self.stored.refresh()
        return self

    # --- rows -------------------------------------------------------------------------------------------------

    def append(
        self, data: Any, application: tuple[str, int] | None = None, *, strict: bool = False, evolve: bool = False
    ) -> Snapshot:
        """Add rows, indexed as they are written, in one commit; nothing happens if there are none.

        By a clustering key they are sorted, as many at a time as the property ``sort_bytes`` (256 MiB) allows.

        ``data``: a pa.Table, RecordBatchReader, pandas DataFrame or Parquet path(s), with the table's columns by name.
        ``application``: (id, version) of a writer that wants each version written once. ``strict``: an index that fails
        on a block raises IndexFault, instead of leaving it out with a PluginWarning. ``evolve``: columns that the table
        lacks are added, NULL in all older rows. Raises InputError, SchemaError naming the column that does not fit,
        Conflict, CommitUnknown and other StorageErrors."""
        self._writable()
        building = builders(self.snapshot, self.host, strict)
        coming = arrow_input.batches(data, self.schema)
        transaction = self.stored.transaction(building)
        schema = self.snapshot.schema
        if evolve and (first := next(coming, None)) is not None:
            coming = chain([first], coming)
            if first.num_rows and (step := adding(first.schema, schema.names)) is not None:
                schema = step(self.snapshot).schema
                transaction.evolve(step)
        with self.stored.writer(building, schema) as writer:
            write_runs(writer, coming, ClusterKey.of(self.snapshot))
            staged = writer.finish()
        return self._move(transaction.append(staged).commit("append", application=application))

    def scan(
        self,
        where: str | Predicate | None = None,
        columns: Sequence[str] | None = None,
        limit: int | None = None,
        indexes: bool = True,
        strict: bool = False,
    ) -> Scan:
        """Matching rows, read when asked for. ``where``: Spark SQL; ``indexes=False`` reads every block.

        Raises WhereError showing the place, SchemaError naming near columns; ``strict`` raises IndexFault for an index
        that does something wrong, which otherwise only costs time.
        """
        if limit is not None and limit < 0:
            raise InputError(f"limit={limit!r}: give a number of rows, 0 or more, or None for all")
        names = tuple(self.schema.names) if columns is None else self._columns(columns)
        return Scan(self._plan(where, indexes, strict), names, self.host.functions, limit)

    def search(
        self,
        columns: str | Sequence[str],
        query: str,
        limit: int = 10,
        where: str | Predicate | None = None,
        select: Sequence[str] | None = None,
        options: str | None = None,
        highlight: tuple[str, str] | None = None,
    ) -> pa.Table:
        """The best rows for a query, best first, with their ``_score``: from indexes that rank, such as ``full_text``.

        Of several ``columns`` the scores are added. ``where`` leaves rows out and changes no score; ``select``: the
        columns wanted, by default all; ``options``: of the index's function; ``highlight``: signs before and after what
        matches, in a column ``_highlight`` of the first column's text. Raises DefinitionError where no index ranks, and
        as ``scan`` does."""
        if limit < 0:
            raise InputError(f"limit={limit!r}: give a number of rows")
        names = tuple(self.schema.names) if select is None else self._columns(select)
        searched = [columns] if isinstance(columns, str) else columns
        found = [self.snapshot.schema.find([name], self.context.case_sensitive) for name in searched]
        terms = [Column((field.name,), field.type) for field in found]
        return search(
            self.stored, self.host, self.context, terms, query, options, limit, self._predicate(where), names, highlight
        )

    def aggregate(
        self,
        group_by: Sequence[str],
        aggregates: Sequence[str],
        where: str | Predicate | None = None,
        indexes: bool = True,
        strict: bool = False,
    ) -> pa.Table:
        """One row for each combination of values of ``group_by``, without any of those for all rows, as Spark would
        have it.

        ``group_by``: columns, or terms such as ``date_trunc('day', ts)``; ``aggregates``: ``count(*)``, or count, sum,
        min, max, avg, hll_sketch_agg or hll_union_agg of a term. Columns are named as they are asked for. Statistics
        and indexes that keep aggregates answer what they can, other rows are read. Raises WhereError, OpaqueError for
        what only Spark can evaluate, and as ``scan`` does."""
        found = self._answer(group_by, aggregates, where, indexes, strict)
        try:
            return found.table([*group_by, *aggregates], self.host.functions)
        except Unaggregatable as refusal:
            raise InputError(f"{titled(found.asked)}: {refusal}") from refusal

    def explain(
        self, where: str | Predicate | None = None, group_by: Sequence[str] = (), aggregates: Sequence[str] = ()
    ) -> Explanation:
        """What a scan would read, or with ``aggregates`` what ``aggregate`` would; which index removed how much, and
        why no other could.
        """
        if aggregates or group_by:
            return self._answer(group_by, aggregates, where, True, False).explanation
        return self._plan(where, True, False).explanation

    def _answer(
        self,
        group_by: Sequence[str],
        aggregates: Sequence[str],
        where: str | Predicate | None,
        indexes: bool,
        strict: bool,
    ) -> Answer:
        if twice := [
            text for place, text in enumerate([*group_by, *aggregates]) if text in [*group_by, *aggregates][:place]
        ]:
            raise InputError(f"{twice[0]!r} is asked for twice: name it once")
        from fuse_index.sql.parser import parse_aggregate  # the SQL parser takes a while to import

        schema, functions = self.snapshot.schema, self.host.functions
        groups = tuple(read_term(text, schema, self.host, self.context) for text in group_by)
        asked = Aggregation(
            groups, tuple(parse_aggregate(text, schema, self.context, functions) for text in aggregates)
        )
        try:
            return answer(
                self.stored, asked, self._predicate(where), self.host, self.context, indexes=indexes, strict=strict
            )
        except Unaggregatable as refusal:
            raise InputError(f"{titled(asked)}: {refusal}") from refusal

    def _plan(self, where: str | Predicate | None, indexes: bool, strict: bool) -> Plan:
        return plan(self.stored, self._predicate(where), self.host, self.context, indexes=indexes, strict=strict)

    def _predicate(self, where: str | Predicate | None) -> Predicate | None:
        if where is None:
            return None
        if isinstance(where, Predicate):
            return normalize(where, self.context)
        from fuse_index.sql.parser import parse  # the SQL parser takes a while to import

        return parse(where, self.snapshot.schema, self.context, self.host.functions)

    def _columns(self, names: Sequence[str]) -> tuple[str, ...]:
        found = [self.snapshot.schema.find([name], self.context.case_sensitive).name for name in names]
        if twice := [name for place, name in enumerate(found) if name in found[:place]]:
            raise storage.SchemaError(f"column {twice[0]!r} is asked for twice: name it once")
        return tuple(found)

    # --- indexes ----------------------------------------------------------------------------------------------

    def create_index(
        self, name: str, kind: str, columns: Sequence[str], build: bool = True, **options: Any
    ) -> Snapshot:
        """Define an index, and with ``build`` index the blocks that are there. New blocks are indexed as they come.

        ``columns``: names, or terms such as ``lower(email)``. Raises DefinitionError or WhereError for what cannot be,
        Conflict if somebody else just took the name.
        """
        self._writable()
        self.refresh()
        if name in self.snapshot.definitions:
            raise DefinitionError(f"there is an index {name!r} already: drop it first, or choose another name")
        definition = define(name, kind, columns, options, self.snapshot.schema, self.host, self.context)
        transaction = self.stored.transaction().define(name, definition.content)
        self._move(transaction.commit("create index", summary={"index": name, "kind": kind}))
        return self.refresh_index(name) if build else self.snapshot

    def refresh_index(
        self, name: str | None = None, processes: int = 1, progress: Progress | None = None, *, strict: bool = False
    ) -> Snapshot:
        """Index the blocks that an index lacks, and only those; without a name, of every index that can be used here.

        ``progress`` is told how many blocks are done, and of how many. ``strict`` as in ``append``. Raises
        DefinitionError, BuildError, StorageError."""
        self._writable()
        self.refresh()
        for definition in [self._definition(name)] if name is not None else self._definitions():
            self._move(build_index.refresh(self.stored, definition, self.host, processes, progress, strict=strict))
        return self.snapshot

    def rebuild_index(
        self, name: str, processes: int = 1, progress: Progress | None = None, *, strict: bool = False
    ) -> Snapshot:
        """Index every block anew, with the kind as it is installed; no row is rewritten. Raises as
        ``refresh_index``.
        """
        self._writable()
        self.refresh()
        return self._move(
            build_index.rebuild(self.stored, self._found(name), self.host, processes, progress, strict=strict)
        )

    def index_tasks(self, name: str, rebuild: bool = False, processes: int = 1) -> list[build_index.Task]:
        """What ``refresh_index`` or ``rebuild_index`` would do, for others to run and commit. Raises as they do."""
        self._writable()
        self.refresh()
        if rebuild:
            return build_index.rebuilding(self.stored, self._found(name), self.host, processes)
        return build_index.refreshing(self.stored, self._definition(name), self.host, processes)

    def drop_index(self, name: str) -> Snapshot:
        """Forget an index. Only metadata changes; its files stay for older snapshots. Raises DefinitionError."""
        self._writable()
        self.refresh()
        self._found(name)
        return self._move(self.stored.transaction().undefine(name).commit("drop index", summary={"index": name}))

    def verify_index(self, name: str, blocks: int = 16, seed: int = 0) -> Verification:
        """Judge an index anew, by the oracle, on up to so many blocks; and every byte of its payloads by its
        checksum.
        """
        return verify(self.stored, self._definition(name), self.host, blocks, seed)

    def indexes(self) -> pa.Table:
        """One row per index: what it is on, its options, coverage, sizes, and what stands in its way."""
        return inspect.indexes(self.stored, self.host)

    def inspect_index(self, name: str) -> Mapping[str, Any]:
        """All that is known of one index, and what its kind says of its contents. Raises DefinitionError."""
        self._found(name)
        return inspect.inspect(self.stored, self.host, name)

    def builders(self) -> tuple[Builder, ...]:
        """What indexes rows as they are written: for whoever writes through ``stored``."""
        return builders(self.snapshot, self.host)

    def _definitions(self) -> list[Definition]:
        return [found for found in load(self.snapshot, self.host) if isinstance(found, Definition)]

    def _definition(self, name: str) -> Definition:
        found = self._found(name)
        if isinstance(found, Unavailable):
            raise DefinitionError(f"index {name!r} cannot be used here: {found.refusal.detail or found.refusal.reason}")
        return found

    def _found(self, name: str) -> Definition | Unavailable:
        for found in load(self.snapshot, self.host):
            if found.name == name:
                return found
        near = difflib.get_close_matches(name, self.snapshot.definitions, 1)
        hint = (
            f"did you mean {near[0]!r}?" if near else f"the table has {', '.join(self.snapshot.definitions) or 'none'}"
        )
        raise DefinitionError(f"no index {name!r}: {hint}")

    def _writable(self) -> None:
        if self.pinned:
            raise ReadOnly(
                f"this handle reads snapshot {self.snapshot.id} as it was: open the table without at= to change it"
            )
        if isinstance(self.stored.store, storage.ReadOnlyStore):
            raise ReadOnly(
                f"{self.stored.store.url} was opened to be read only: open it without read_only to change it"
            )

    def _move(self, stored: storage.Table) -> Snapshot:
        self.stored = stored
        return self.snapshot
