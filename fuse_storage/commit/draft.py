"""The next snapshot in the making: what actions are applied to, again on each newer head.

Knows what rows of the list of segments are, and how to merge small ones. Knows no action, and not how it is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from fuse_storage.commit.merge_segments import SegmentMerger, SegmentSpan, plan_segment_merges
from fuse_storage.commit.sidecar_writer import SidecarBuilder
from fuse_storage.errors import AlreadyExists
from fuse_storage.metadata.metadata_table import has_column
from fuse_storage.metadata.refs import RefEntry
from fuse_storage.metadata.segment import MAX_BLOCKS_PER_SEGMENT, StagedSegment, decode_list_row
from fuse_storage.metadata.segment_list import assemble_segment_list, read_segment_list, sidecar_columns
from fuse_storage.metadata.snapshot import Snapshot
from fuse_storage.schema.schema import Schema
from fuse_storage.store.store import Store

CommitLoader = Callable[[], Sequence[tuple[RefEntry, Snapshot]]]
"""The commits after the base up to the head, oldest first, with their snapshots."""


@dataclass
class Draft:
    """The next snapshot in the making: that of ``head``, and what the actions make of it.

    ``base``: the snapshot that the actions were decided on. ``schema_state``: the head, but for what actions made
    of its columns, keys and properties. ``segment_rows``: rows of the list of segments, in order. ``changed``: an
    action did something. ``syncs``: they bring the table to a state of its source. ``same_rows``: the actions leave
    the table's rows what they were. ``merge_cache``: see ``merge_spans``.
    """

    store: Store
    base: Snapshot
    head: Snapshot
    load_commits: CommitLoader
    builders: Mapping[str, SidecarBuilder]
    merge_cache: dict[tuple[Any, ...], pa.Table | None]
    schema_state: Snapshot = field(init=False)
    segment_rows: pa.Table = field(init=False)
    definitions: dict[str, Mapping[str, Any]] = field(init=False)
    next_row_id: int = field(init=False)
    summary: dict[str, Any] = field(default_factory=dict)
    changed: bool = False
    same_rows: bool = True
    syncs: bool = False

    def __post_init__(self) -> None:
        self.schema_state = self.head
        self.segment_rows = read_segment_list(self.store, self.head)
        self.definitions = dict(self.head.definitions)
        self.next_row_id = self.head.next_row_id

    @property
    def schema(self) -> Schema:
        return self.schema_state.schema

    @property
    def column_ids_unchanged(self) -> bool:
        """Whether a column id means the same at the head as at the base.

        It does not where the history of another branch took over.
        """
        schemas = self.head.schemas
        return all(schemas.get(schema_id, schema) == schema for schema_id, schema in self.base.schemas.items())

    @property
    def segment_blocks(self) -> int:
        """The blocks that a segment of several may have: the table's property, which a reader need not trust."""
        wanted = self.schema_state.properties.get("segment_blocks")
        return min(wanted, MAX_BLOCKS_PER_SEGMENT) if isinstance(wanted, int) and wanted > 0 else MAX_BLOCKS_PER_SEGMENT

    @property
    def index_keys(self) -> list[str]:
        return sorted({str(definition["key"]) for definition in self.definitions.values()})

    @cached_property
    def base_segment_rows(self) -> pa.Table:
        return read_segment_list(self.store, self.base)

    def first_conflicting_commit(self, conflicts: Callable[[Snapshot, Snapshot], bool]) -> RefEntry | None:
        """Find the first commit since the base that matters, judged by the snapshots before and after it."""
        before = self.base
        for entry, after in self.load_commits():
            if conflicts(before, after):
                return entry
            before = after
        return None

    def append_segments(self, staged: Sequence[StagedSegment]) -> None:
        """Put new segments at the end, and number their rows."""
        self.same_rows = self.same_rows and not staged
        self.segment_rows = assemble_segment_list(
            [self.segment_rows, *self.assign_row_ids(staged)], self.schema, self.index_keys
        )
        self.changed = True

    def assign_row_ids(self, staged: Sequence[StagedSegment]) -> list[pa.Table]:
        """Give the rows of the list for new segments, with ids for the rows in them.

        Raises ReadOnly where rows change through the table's source alone.
        """
        if not self.syncs:
            self.schema_state.check_own_rows()
        self._check_not_present(staged)
        rows = []
        for segment in staged:
            row = _with_constant(decode_list_row(segment.row), "first_row_id", self.next_row_id)
            rows.append(_with_constant(row, "added_by", self.head.sequence + 1))
            self.next_row_id += segment.row_count
        for name, counts in (
            ("added_rows", [segment.row_count for segment in staged]),
            ("added_blocks", [segment.block_count for segment in staged]),
        ):
            self.summary[name] = self.summary.get(name, 0) + sum(counts)
        self._count_unindexed(rows)
        return rows

    def _count_unindexed(self, rows: Sequence[pa.Table]) -> None:
        """Note in the summary, by index, how many of the blocks that come it does not know."""
        for name, definition in self.definitions.items():
            column = sidecar_columns(str(definition["key"]))[3]
            known = (row.column(column)[0].as_py() or 0 if has_column(row, column) else 0 for row in rows)
            if lacking := sum(row.column("block_count")[0].as_py() for row in rows) - sum(known):
                counts = self.summary.setdefault("unindexed_blocks", {})
                counts[name] = counts.get(name, 0) + lacking

    def _check_not_present(self, staged: Sequence[StagedSegment]) -> None:
        known = set(self.segment_rows.column("id").to_pylist())
        for segment in staged:
            if segment.id in known:
                raise AlreadyExists(
                    f"segment {segment.id} is in {self.store.url} already: its rows would be there twice"
                )
            known.add(segment.id)

    def merge_small_segments(self) -> None:
        """Join small adjacent segments, where there are enough of them."""
        self.merge_spans(plan_segment_merges(self.segment_rows.column("block_count").to_pylist(), self.segment_blocks))

    def merge_spans(self, spans: Sequence[SegmentSpan]) -> None:
        """Join these segments; those that cannot be read stay as they are.

        What was merged is remembered over attempts, so that losing a race does not mean merging again what nobody
        touched.
        """
        merger = SegmentMerger(self.store, self.schema, self.index_keys, self.builders)
        pieces, position = [], 0
        for start, end in spans:
            rows = self.segment_rows.slice(start, end - start)
            if (merged := self._merge_cached(merger, rows)) is not None:
                pieces += [self.segment_rows.slice(position, start - position), merged]
                position = end
                self.summary["merged_segments"] = self.summary.get("merged_segments", 0) + len(rows)
        if pieces:
            self.segment_rows = assemble_segment_list(
                [*pieces, self.segment_rows.slice(position)], self.schema, self.index_keys
            )

    def _merge_cached(self, merger: SegmentMerger, rows: pa.Table) -> pa.Table | None:
        inputs = ["id", "first_row_id", "added_by", *(sidecar_columns(key)[0] for key in self.index_keys)]
        cache_key = tuple(str(rows.column(name).to_pylist()) if has_column(rows, name) else "" for name in inputs)
        if cache_key not in self.merge_cache:
            self.merge_cache[cache_key] = merger.merge(rows)
        return self.merge_cache[cache_key]

    def finalize(self) -> None:
        """Leave in the list only what the final definitions need. Raises ReadOnly for columns that a source has."""
        if self.schema_state.schema_id != self.head.schema_id and self.schema_state.source == self.head.source:
            self.head.check_own_rows()
        self.segment_rows = assemble_segment_list([self.segment_rows], self.schema, self.index_keys)


def _with_constant(row: pa.Table, name: str, value: int) -> pa.Table:
    return row.set_column(row.column_names.index(name), name, pa.array([value], pa.int64()))
