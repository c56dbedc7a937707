"""What an index knows of blocks, brought to where these are by now.

An index is built beside writers, who merge segments and replace blocks meanwhile. Knows nothing of how sidecars are
built.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from fuse_storage.commit.draft import Draft
from fuse_storage.commit.merge_segments import SegmentMerger
from fuse_storage.commit.sidecar_writer import stage_sidecars
from fuse_storage.errors import NotFound
from fuse_storage.metadata import metadata_table
from fuse_storage.metadata.metadata_table import IndexArray
from fuse_storage.metadata.segment_list import assemble_segment_list, segment_files, with_columns
from fuse_storage.metadata.sidecar import StagedSidecars, unindexed_rows


@dataclass(frozen=True, slots=True)
class AttachSidecars:
    """What an index knows of segments of the base. Follows their blocks into whatever segments they are in by now.

    Blocks that are gone are dropped, and everything is if the definition is: dropping wins.
    """

    key: str
    staged: Mapping[str, StagedSidecars]
    name: str = "attach"

    def apply(self, draft: Draft) -> None:
        if self.key not in draft.index_keys or not draft.column_ids_unchanged:
            return
        known = set(draft.base_segment_rows.column("id").to_pylist())
        if strange := sorted(set(self.staged) - known):
            raise NotFound(
                f"{draft.store.url}: segment {strange[0]} is not in snapshot {draft.base.id}, which "
                f"this transaction began at"
            )
        rows = [draft.segment_rows.slice(number, 1) for number in range(len(draft.segment_rows))]
        present = {row.column("id")[0].as_py(): number for number, row in enumerate(rows)}
        stayed = [id for id in self.staged if id in present]
        for id in stayed:
            number = present[id]
            rows[number] = self._attach_in_place(draft, rows[number])
        moved = [id for id in self.staged if id not in present]
        if moved:
            found = _MovedSidecars.read(draft, self.key, [self.staged[id] for id in moved])
            for id, number in present.items():
                if id not in known:
                    rows[number] = found.attach_to(draft, rows[number])
        after = assemble_segment_list(rows, draft.schema, draft.index_keys)
        draft.changed = draft.changed or not after.equals(draft.segment_rows)
        draft.segment_rows = after

    def _attach_in_place(self, draft: Draft, row: pa.Table) -> pa.Table:
        """The row of a segment that still is as it was."""
        staged = self.staged[row.column("id")[0].as_py()]
        if staged.indexed < row.column("block_count")[0].as_py():
            before = SegmentMerger(draft.store, draft.schema, (), {}).concat_sidecars(row, self.key)
            if before is not None:
                own = metadata_table.read_all_columns(
                    draft.store, metadata_table.MetadataFile(staged.reference, len(before))
                )
                joined = _overlay_rows(before, own, np.where(own.column("indexed").to_numpy(), np.arange(len(own)), -1))
                staged = stage_sidecars(draft.store, staged.segment, self.key, joined, draft.builders.get(self.key))
        return with_columns(row, staged.row)


@dataclass(frozen=True, slots=True)
class _MovedSidecars:
    """What is known of blocks whose segments are gone: rows of ``_x`` files, by block."""

    key: str
    rows: pa.Table
    row_indices: Mapping[str, int]

    @staticmethod
    def read(draft: Draft, key: str, staged: Sequence[StagedSidecars]) -> _MovedSidecars:
        at = dict(
            zip(draft.base_segment_rows.column("id").to_pylist(), segment_files(draft.base_segment_rows), strict=True)
        )
        ids: list[str] = []
        tables = []
        for one in staged:
            part = at[one.segment]
            (named,) = metadata_table.read_column_groups(draft.store, part, [("id",)])
            ids += named.column("id").to_pylist()
            tables.append(
                metadata_table.read_all_columns(draft.store, metadata_table.MetadataFile(one.reference, part.row_count))
            )
        rows = pa.concat_tables([table.select(tables[0].column_names) for table in tables])
        indexed = rows.column("indexed").to_pylist()
        return _MovedSidecars(key, rows, {id: place for place, id in enumerate(ids) if indexed[place]})

    def attach_to(self, draft: Draft, row: pa.Table) -> pa.Table:
        """The row of a segment in which some of the blocks may be."""
        (part,) = segment_files(row)
        (named,) = metadata_table.read_column_groups(draft.store, part, [("id",)])
        found = np.array([self.row_indices.get(id, -1) for id in named.column("id").to_pylist()], np.int64)
        if (found < 0).all():
            return row
        before = SegmentMerger(draft.store, draft.schema, (), {}).concat_sidecars(row, self.key)
        if before is None:
            before = unindexed_rows(part.row_count, self.rows.schema.field("summary").type)
        joined = _overlay_rows(before, self.rows, found)
        id = row.column("id")[0].as_py()
        return with_columns(row, stage_sidecars(draft.store, id, self.key, joined, draft.builders.get(self.key)).row)


def _overlay_rows(before: pa.Table, new: pa.Table, places: IndexArray) -> pa.Table:
    """Row i is row ``places[i]`` of ``new``, or what it was before where that is below 0."""
    both = pa.concat_tables([before, new.select(before.column_names)])
    return both.take(pa.array(np.where(places < 0, np.arange(len(before)), places + len(before)))).combine_chunks()
