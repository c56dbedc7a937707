"""The rows that were inserted and deleted between two snapshots: net, whatever happened in between.

Only blocks that one of the two lacks are looked at. Where blocks came in the place of others, their rows are compared
by hashes, as multisets: rows that were merely copied, by a compaction or an update of their neighbours, are no change.

An example: block A holds the rows 1 and 2. Row 2 becomes 3, so that block B with 1 and 3 comes in the place of A; then
4 and 5 are appended as block C, and 5 is deleted, so that D with 4 replaces C. Between the first snapshot and the last
A went, and B and D came. Of the multisets {1, 2} and {1, 3, 4} the first has 2 more, the second 3 and 4: these are the
changes. 1 was copied, and 5 came and went. By a key under which 2 became 3, these are a pair of an update.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import fuse_storage as storage
from fuse_index.changes.appends import appended_blocks
from fuse_index.changes.by_commit import ChangesByCommit
from fuse_index.changes.columns import CHANGE_TYPE, DELETE, INSERT, UPDATE_POSTIMAGE
from fuse_index.changes.row_diff import ChangedBlocks, UpdatePairs, without_preimages, without_shared_rows
from fuse_index.errors import InputError
from fuse_index.expressions.evaluable import check_evaluable
from fuse_index.expressions.to_sql import predicate_sql
from fuse_index.expressions.variant.columns import text_schema, with_texts
from fuse_index.indexes.engine import Engine
from fuse_index.predicate import Predicate
from fuse_index.pruning.planner import plan_scan
from fuse_storage import BlockFrame, Operation

if TYPE_CHECKING:
    import pandas

_ROWS_COMPARED_PER_COMMIT = 50_000
"""Rows that are compared in about the time that it takes to look at one commit in between."""


def check_is_ancestor(before: storage.StoredTable, after: storage.StoredTable) -> None:
    """Raise InvalidArgument unless the one snapshot led to the other."""
    if not storage.is_ancestor(before, after):
        raise storage.InvalidArgument(
            f"snapshot {after.snapshot.id} did not come of {before.snapshot.id}: give an older "
            f"snapshot of its branch as since"
        )


@dataclass(frozen=True, repr=False)
class Changes(storage.Shown):
    """The net changes between two snapshots, of which nothing is read before one of the methods is called.

    ``schema_table``: the snapshot in whose columns rows come, and which ``columns``, ``key`` and ``predicate`` are
    about. ``with_tail``: both have the rows that are not tiered yet; to who leaves them out, tiering brings rows.
    ``preimages``: whether it is looked up what rows were. ``texts``: whether VARIANT is told as JSON text.
    Where blocks were replaced by commits that may have changed rows, up to some 100 bytes are held for each of their
    rows, besides the blocks at hand; otherwise the blocks at hand alone.
    """

    _offered = "by_commit columns count key predicate schema to_arrow to_batches to_pandas"

    before: storage.StoredTable
    after: storage.StoredTable
    schema_table: storage.StoredTable
    columns: tuple[str, ...]
    key: tuple[str, ...]
    predicate: Predicate | None
    engine: Engine
    with_tail: bool = True
    preimages: bool = True
    texts: bool = False

    def _facts(self) -> Mapping[str, Any]:
        where = None if self.predicate is None else predicate_sql(self.predicate)
        versions = {"since version": self.before.snapshot.version, "to version": self.after.snapshot.version}
        return {**versions, "columns": self.columns, "key": self.key, "where": where}

    def validate(self) -> Changes:
        """Check that these changes can be told; returns itself. Raises SchemaError, InputError or OpaqueError."""
        if CHANGE_TYPE in self.schema_table.snapshot.schema.names:
            raise storage.SchemaError(
                f"the table has a column {CHANGE_TYPE!r}, which is what changes are told by: rename it"
            )
        if narrowed := storage.narrowed_columns(self.before.snapshot.schema, self.schema_table.snapshot.schema):
            raise storage.SchemaError(
                f"column {narrowed[0]!r} had a wider type at snapshot {self.before.snapshot.id}, so that its rows "
                f"do not fit the columns of "
                f"{self.schema_table.snapshot.id}: ask for the changes until before it was restored, and since then"
            )
        for name in self.key:
            data_type = self.schema_table.snapshot.schema.find([name]).type
            if not storage.is_exact_type(data_type):
                raise InputError(f"column {name!r} is {data_type}, which cannot be in a key: choose another column")
        check_evaluable(self.predicate, self.engine.context, self.engine.functions)
        if not self.preimages:
            check_without_preimages(self.schema_table.snapshot, self.key, self.predicate)
        return self

    @property
    def schema(self) -> pa.Schema:
        """The columns of the later snapshot and the type of change; NULL is allowed where it was in the earlier one."""
        old_schema = self.before.snapshot.schema.arrow
        fields = [self.schema_table.snapshot.schema.arrow.field(name) for name in self.columns]
        fields = [
            field.with_nullable(True)
            if (field.name in old_schema.names and old_schema.field(field.name).nullable)
            or not (self.preimages or field.name in self.key)
            else field
            for field in fields
        ]
        return text_schema(pa.schema([*fields, pa.field(CHANGE_TYPE, pa.string(), nullable=False)]), self.texts)

    def by_commit(self) -> ChangesByCommit:
        """Tell the changes of each commit instead of the net ones, with its number and time.

        Returns:
            The changes of each commit, with the columns ``_commit_version`` and ``_commit_timestamp``.

        Raises:
            SchemaError: A column has one of these names.

        Example:
            >>> table = fuse.create_table("memory://changes-by-commit", "id BIGINT")
            >>> snapshot = table.append([{"id": 1}])
            >>> table.changes(1).by_commit().to_arrow().column("_commit_version").to_pylist()
            [2]
        """

        def net_changes(before: storage.StoredTable, after: storage.StoredTable) -> Iterator[pa.RecordBatch]:
            return replace(self, before=before, after=after).to_batches()

        return ChangesByCommit(self.before, self.after, self.schema, net_changes, self.with_tail).validate()

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield what was deleted, block after block, then what came, with updated rows next to what they were.

        Yields:
            Batches that are not empty, with the column ``_change_type``.

        Raises:
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://changes-batches", "id BIGINT")
            >>> snapshot = table.append([{"id": 1}, {"id": 2}])
            >>> [batch.num_rows for batch in table.changes(1).to_batches()]
            [2]
        """
        for rows in map(with_texts, self._tables()) if self.texts else self._tables():
            yield from (batch for batch in rows.cast(self.schema).to_batches() if len(batch))

    def to_arrow(self) -> pa.Table:
        """Read the changes into one table.

        Returns:
            The rows that ``to_batches`` gives.

        Raises:
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://changes-arrow", "id BIGINT", key=["id"])
            >>> snapshot = table.append([{"id": 1}])
            >>> table.changes(1).to_arrow().to_pylist()
            [{'id': 1, '_change_type': 'insert'}]
        """
        return pa.Table.from_batches(list(self.to_batches()), self.schema)

    def to_pandas(self) -> pandas.DataFrame:
        """Read the changes into a DataFrame of pandas.

        Returns:
            The rows that ``to_batches`` gives.

        Raises:
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://changes-pandas", "id BIGINT")
            >>> snapshot = table.append([{"id": 1}])
            >>> len(table.changes(1).to_pandas())
            1
        """
        return self.to_arrow().to_pandas()

    def count(self) -> int:
        """Count the rows that ``to_batches`` gives; a pair counts twice.

        Returns:
            Their number.

        Raises:
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://changes-count", "id BIGINT")
            >>> snapshot = table.append([{"id": 1}, {"id": 2}])
            >>> table.changes(1).count()
            2
        """
        return sum(rows.num_rows for rows in self._tables())

    def _tables(self) -> Iterator[pa.Table]:
        if not self.columns:  # tables without columns forget how many rows they have
            some = replace(self, columns=tuple(self.schema_table.snapshot.schema.names[:1]))
            return (pa.table([batch.column(CHANGE_TYPE)], [CHANGE_TYPE]) for batch in some.to_batches())
        return self._compared_rows() if self.preimages else self._operations()

    def key_operations(self) -> storage.KeyOperations | None:
        """What was put and deleted, where hot commits alone tell it, and it is not to be looked up what rows were."""
        return storage.key_operations(self.before, self.after) if self.with_tail and not self.preimages else None

    def _operations(self) -> Iterator[pa.Table]:
        """Give what was put and deleted, by the hot commits alone; by comparison where rows changed otherwise."""
        done = self.key_operations()
        if done is None:
            yield from (without_preimages(rows, self.key) for rows in self._compared_rows())
        elif done.row_count:
            fields = [self.schema_table.snapshot.schema.arrow.field(name) for name in self.columns]
            wanted = tuple(dict.fromkeys([*self.columns, *self.key]))
            for is_delete, rows in done.last_of_each_key(self.schema_table, wanted):
                columns = {
                    field.name: rows.column(field.name)
                    if field.name in rows.column_names
                    else pa.nulls(len(rows), field.type)
                    for field in fields
                }
                kind = pa.scalar(DELETE if is_delete else UPDATE_POSTIMAGE, pa.string())
                yield pa.table({**columns, CHANGE_TYPE: pa.repeat(kind, len(rows))})

    def _compared_rows(self) -> Iterator[pa.Table]:
        removed, added, appended = self.blocks_to_read()
        if appended is not None:
            for blocks in appended:
                yield from ChangedBlocks(self, blocks).to_tables(INSERT)
            return
        if len(removed.blocks) and len(added.blocks):
            removed.compare(added)
            if self.key:
                yield from UpdatePairs(removed, added, self.key).to_tables()
                return
        yield from removed.to_tables(DELETE)
        yield from added.to_tables(INSERT)

    def blocks_to_read(self) -> tuple[ChangedBlocks, ChangedBlocks, list[BlockFrame] | None]:
        """Find the blocks that only the earlier snapshot has, and those that only the later one has.

        And the blocks of each append in between, which are read in their place where there were only appends.
        """
        removed, added = without_shared_rows(
            *(self._changed_blocks(blocks) for blocks in storage.changed_blocks(self.before, self.after))
        )
        if not (len(removed.blocks) and len(added.blocks) and self.with_tail):
            return removed, added, None
        compared_rows = int(removed.blocks.row_counts.sum() + added.blocks.row_counts.sum())
        max_commits = 20 + compared_rows // _ROWS_COMPARED_PER_COMMIT
        return removed, added, appended_blocks(self.before, self.after, max_commits)

    def _changed_blocks(self, blocks: BlockFrame) -> ChangedBlocks:
        return ChangedBlocks(self, blocks.take(np.flatnonzero(np.isin(blocks.ids, self._candidate_blocks(blocks)))))

    def _candidate_blocks(self, blocks: BlockFrame) -> list[str]:
        """List the ids of blocks that may hold rows on which the predicate is true, by the votes."""
        owner = self.before if blocks.segments.snapshot.id == self.before.snapshot.id else self.after
        if self.predicate is None or not len(blocks) or owner.snapshot.schema != self.schema_table.snapshot.schema:
            return blocks.ids  # the predicate is on columns that this snapshot may call otherwise
        return plan_scan(owner, self.predicate, self.engine).blocks.ids


def check_without_preimages(snapshot: storage.Snapshot, key: Sequence[str], where: Predicate | None) -> None:
    """Raise InputError where changes cannot be told without looking up what rows were."""
    if not storage.is_keyed(snapshot):
        raise InputError(
            Operation.argument("changes", preimages=False) + " is for tables with a primary key: leave it out"
        )
    if tuple(key) != snapshot.key:
        raise InputError(f"key={list(key)}: without preimages changes are by the primary key, {list(snapshot.key)}")
    if where is not None:
        raise InputError(
            "where and "
            + Operation.argument("changes", preimages=False)
            + " do not go together, as nothing tells whether a row matched before: leave where out, and choose among "
            "the changes"
        )
