"""The next snapshot in the making: what actions are applied to, again on each newer head.

Knows what rows of the list of segments and of the tail are, and how to merge small segments. What no action takes out
of the tail is carried along. Knows no action, and not how it is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fuse_storage.commit.merge_segments import SegmentMerger, SegmentSpan, plan_segment_merges
from fuse_storage.commit.sidecar_writer import SidecarBuilder
from fuse_storage.errors import AlreadyExists, TableUrl
from fuse_storage.hot.tail import align_tail, read_tail, tail_totals
from fuse_storage.lazy import cached_property
from fuse_storage.metadata import metadata_table
from fuse_storage.metadata.file_ref import FileRef, new_id
from fuse_storage.metadata.metadata_table import has_column
from fuse_storage.metadata.refs import RefEntry, next_timestamp
from fuse_storage.metadata.segment import (
    MAX_BLOCKS_PER_SEGMENT,
    StagedSegment,
    has_deleted_rows,
    tail_path,
)
from fuse_storage.metadata.segment_list import (
    assemble_segment_list,
    read_segment_list,
    segment_list_path,
    sidecar_columns,
)
from fuse_storage.metadata.snapshot import Snapshot
from fuse_storage.partitions.block_buffers import MAX_PARTITIONS_PER_WRITE, check_partition_count
from fuse_storage.partitions.check import check_staged_partitions
from fuse_storage.partitions.spec import PartitionSpec
from fuse_storage.schema.schema import Schema
from fuse_storage.store.store import Store
from fuse_storage.validation.features import (
    DELETION_VECTORS_FEATURE,
    HOT_FEATURE,
    schema_features,
    schema_writer_features,
)

CommitLoader = Callable[[], Sequence[tuple[RefEntry, Snapshot]]]
"""The commits after the base up to the head, oldest first, with their snapshots."""


@dataclass
class Draft:
    """The next snapshot in the making: that of ``head``, and what the actions make of it.

    ``base``: the snapshot that the actions were decided on. ``schema_state``: the head, but for what actions made of
    its columns, keys and properties. ``segment_rows``: rows of the list of segments, in order. ``tail_rows``: of the
    hot blocks that the snapshot carries along, if any. ``has_chain``: it is followed through a chain. ``changed``: an
    action did something. ``syncs``: they bring the table to a state of its source. ``same_rows``: the actions leave
    the table's rows what they were. ``keeps_key``: they look after a primary key. ``merge_cache``: see ``merge_spans``.
    """

    store: Store
    base: Snapshot
    head: Snapshot
    load_commits: CommitLoader
    builders: Mapping[str, SidecarBuilder]
    merge_cache: dict[tuple[Any, ...], pa.Table | None]
    schema_state: Snapshot = field(init=False)
    segment_rows: pa.Table = field(init=False)
    tail_rows: pa.Table | None = field(init=False)
    definitions: dict[str, Mapping[str, Any]] = field(init=False)
    next_row_id: int = field(init=False)
    summary: dict[str, Any] = field(default_factory=dict)
    changed: bool = False
    same_rows: bool = True
    syncs: bool = False
    has_chain: bool = False
    keeps_key: bool = False
    _assembled: pa.Table | None = None
    _made_of: tuple[Schema, list[str]] | None = None

    def __post_init__(self) -> None:
        self.schema_state = self.head
        self.segment_rows = read_segment_list(self.store, self.head)
        self.tail_rows, self.has_chain = read_tail(self.store, self.head), self.head.has_chain
        self.definitions = dict(self.head.definitions)
        self.next_row_id = self.head.next_row_id

    @property
    def named(self) -> TableUrl:
        """The table, as messages name it."""
        return TableUrl(self.store.url)

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
        """Put new segments at the end, and number their rows. Raises InvalidArgument for too many partitions."""
        self.same_rows, self.keeps_key = self.same_rows and not staged, self.keeps_key and not staged
        limit = self.schema_state.properties.get("max_partitions", MAX_PARTITIONS_PER_WRITE)
        self._assemble([self.segment_rows, *self.assign_row_ids(staged, limit)])
        self.changed = True

    def assign_row_ids(self, staged: Sequence[StagedSegment], max_partitions: int | None = None) -> list[pa.Table]:
        """Give the rows of the list for new segments, with ids for the rows in them.

        ``max_partitions``: that they may be of. Raises ReadOnly where rows change through the table's source alone,
        StorageError for a block that mixes partitions.
        """
        if not self.syncs:
            self.schema_state.check_own_rows()
        self._check_not_present(staged)
        staged_rows = [segment.row for segment in staged]
        if (spec := PartitionSpec.from_snapshot(self.schema_state)) is not None:
            found = check_staged_partitions(self.store, staged_rows, spec)
            check_partition_count(len(found), max_partitions or len(found), spec)
        rows = []
        for segment, staged_row in zip(staged, staged_rows, strict=True):
            row = _with_constant(staged_row, "first_row_id", self.next_row_id)
            rows.append(_with_constant(row, "added_by", self.head.version + 1))
            self.next_row_id += segment.row_count
        for name, counts in (
            ("added_rows", [row.column("live_rows")[0].as_py() for row in rows]),
            ("added_blocks", [segment.block_count for segment in staged]),
            ("added_bytes", [row.column("size")[0].as_py() for row in rows]),
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
                    f"segment {segment.id} is in " + self.named + " already: its rows would be there twice"
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
            self._assemble([*pieces, self.segment_rows.slice(position)])

    def _assemble(self, rows: Sequence[pa.Table]) -> None:
        """Make the list of these rows, unless it is made of nothing else already."""
        made_of = (self.schema, self.index_keys)
        if len(rows) > 1 or rows[0] is not self._assembled or made_of != self._made_of:
            self._assembled = assemble_segment_list(rows, *made_of)
            self._made_of = made_of
        self.segment_rows = self._assembled

    def _merge_cached(self, merger: SegmentMerger, rows: pa.Table) -> pa.Table | None:
        inputs = ["id", "first_row_id", "added_by", *(sidecar_columns(key)[0] for key in self.index_keys)]
        cache_key = tuple(str(rows.column(name).to_pylist()) if has_column(rows, name) else "" for name in inputs)
        if cache_key not in self.merge_cache:
            self.merge_cache[cache_key] = merger.merge(rows)
        return self.merge_cache[cache_key]

    def finalize(self) -> None:
        """Leave in the list only what the final definitions need. Raises ReadOnly for columns that a source has."""
        has_other_columns = self.schema_state.schema_id != self.head.schema_id
        if has_other_columns and not self.syncs and self.schema_state.source == self.head.source:
            self.head.check_own_rows()
        self._assemble([self.segment_rows])

    def next_snapshot(
        self,
        branch: str,
        commit_id: str,
        operation: str,
        application: tuple[str, int] | None,
        summary: Mapping[str, Any],
    ) -> tuple[Snapshot, dict[str, bytes]]:
        """The snapshot after the head, and the files that it leads to itself, by key."""
        before, schema_state, snapshot_id = self.head, self.schema_state, new_id()
        files = dict[str, bytes]()
        rows, path = self.segment_rows, segment_list_path(snapshot_id)
        if len(rows):
            rolled_up = any(has_column(rows, sidecar_columns(key)[5]) for key in self.index_keys)
            files[path] = metadata_table.encode_metadata(rows, keep_arrow_types=rolled_up)
        tail = tail_totals(self.tail_rows, None)
        if tail is not None and self.tail_rows is not None:
            data = metadata_table.encode_metadata(align_tail(self.tail_rows, self.schema))
            files[tail_path(snapshot_id)] = data
            tail = replace(tail, reference=FileRef.for_data(tail_path(snapshot_id), data))
        has_chain = self.has_chain or tail is not None
        features = schema_features(schema_state.schemas) | ({HOT_FEATURE} if has_chain else set[str]())
        features |= {DELETION_VECTORS_FEATURE} if has_deleted_rows(rows) else set[str]()
        reader_features = tuple(sorted({*before.reader_features, *features})) if features else before.reader_features
        missing = schema_writer_features(schema_state.schemas).difference(before.writer_features)
        writer_features = (*before.writer_features, *sorted(missing))
        snapshot = Snapshot(
            id=snapshot_id,
            sequence=before.sequence + 1,
            branch=branch,
            commit_id=commit_id,
            parent=before.stored.id,
            timestamp=next_timestamp(before.timestamp),
            operation=operation,
            schema_id=schema_state.schema_id,
            schemas=schema_state.schemas,
            last_column_id=schema_state.last_column_id,
            names=schema_state.names,
            cluster_ids=schema_state.cluster_ids,
            properties=schema_state.properties,
            definitions=self.definitions,
            applications=dict(before.applications) | (dict([application]) if application else {}),
            summary=summary,
            row_count=_total(rows, "live_rows") + (tail.rows if tail else 0),
            block_count=_total(rows, "block_count") + (tail.blocks if tail else 0),
            segment_count=len(rows),
            bytes=_total(rows, "size") + (tail.bytes if tail else 0),
            next_row_id=self.next_row_id,
            same_rows=self.same_rows,
            segments=FileRef.for_data(path, files[path]) if path in files else None,
            reader_features=reader_features,
            writer_features=writer_features,
            stated_version=before.version + 1 if has_chain else 0,
            hot_commits=before.chain_length,
            tail=tail,
        )
        return snapshot, files


def keeps_rows(before: Snapshot, after: Snapshot) -> bool:
    """Say whether the commit between two states left all rows as they were; not if others in between were collected."""
    return after.same_rows and after.version == before.version + 1


def _total(rows: pa.Table, name: str) -> int:
    return int(pc.sum(rows.column(name)).as_py() or 0)


def _with_constant(row: pa.Table, name: str, value: int) -> pa.Table:
    return row.set_column(row.schema.get_field_index(name), name, pa.array([value], pa.int64()))
