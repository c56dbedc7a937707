"""Sidecars that were built beside other writers are attached to their blocks, wherever these are by now.

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
    """Attach what an index, by its key, knows of segments of the base. ``staged``: by id of the segment.

    Sidecars follow their blocks into whatever segments these are in by now. Those of blocks that are gone are dropped,
    and all are if the definition is: dropping wins.
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
                draft.named + f": segment {strange[0]} is not in snapshot {draft.base.id}, which "
                f"this transaction began at"
            )
        rows = [draft.segment_rows.slice(position, 1) for position in range(len(draft.segment_rows))]
        positions = {row.column("id")[0].as_py(): position for position, row in enumerate(rows)}
        for segment_id in self.staged:
            if (position := positions.get(segment_id)) is not None:
                rows[position] = self._attach_in_place(draft, rows[position])
        moved = [staged for segment_id, staged in self.staged.items() if segment_id not in positions]
        if moved:
            moved_sidecars = _MovedSidecars.read(draft, self.key, moved)
            for segment_id, position in positions.items():
                if segment_id not in known:
                    rows[position] = moved_sidecars.attach_to(draft, rows[position])
        after = assemble_segment_list(rows, draft.schema, draft.index_keys)
        draft.changed = draft.changed or not after.equals(draft.segment_rows)
        draft.segment_rows = after

    def _attach_in_place(self, draft: Draft, row: pa.Table) -> pa.Table:
        """Give the row of a segment that still is as it was, with its sidecars.

        Where only some of its blocks were indexed, those that were already are kept of the others.
        """
        staged = self.staged[row.column("id")[0].as_py()]
        if staged.indexed < row.column("block_count")[0].as_py():
            before = SegmentMerger(draft.store, draft.schema, (), {}).concat_sidecars(row, self.key)
            if before is not None:
                new = metadata_table.read_all_columns(
                    draft.store, metadata_table.MetadataFile(staged.reference, len(before))
                )
                new_indices = np.where(new.column("indexed").to_numpy(), np.arange(len(new)), -1)
                joined = _overlay_rows(before, new, new_indices)
                staged = stage_sidecars(draft.store, staged.segment, self.key, joined, draft.builders.get(self.key))
        return with_columns(row, staged.row)


@dataclass(frozen=True, slots=True)
class _MovedSidecars:
    """What is known of blocks whose segments are gone: rows of ``_x`` files, and which is of which block.

    ``row_indices``: by id of a block that is indexed, its row of ``rows``.
    """

    key: str
    rows: pa.Table
    row_indices: Mapping[str, int]

    @staticmethod
    def read(draft: Draft, key: str, staged: Sequence[StagedSidecars]) -> _MovedSidecars:
        base_rows = draft.base_segment_rows
        files = dict(zip(base_rows.column("id").to_pylist(), segment_files(base_rows), strict=True))
        block_ids: list[str] = []
        tables = []
        for sidecars in staged:
            file = files[sidecars.segment]
            (id_column,) = metadata_table.read_column_groups(draft.store, file, [("id",)])
            block_ids += id_column.column("id").to_pylist()
            sidecar_file = metadata_table.MetadataFile(sidecars.reference, file.row_count)
            tables.append(metadata_table.read_all_columns(draft.store, sidecar_file))
        rows = pa.concat_tables([table.select(tables[0].column_names) for table in tables])
        indexed = rows.column("indexed").to_pylist()
        row_indices = {block_id: row for row, block_id in enumerate(block_ids) if indexed[row]}
        return _MovedSidecars(key, rows, row_indices)

    def attach_to(self, draft: Draft, row: pa.Table) -> pa.Table:
        """Give the row of a segment in which some of the blocks may be, with their sidecars."""
        (file,) = segment_files(row)
        (id_column,) = metadata_table.read_column_groups(draft.store, file, [("id",)])
        block_ids = id_column.column("id").to_pylist()
        new_indices = np.array([self.row_indices.get(block_id, -1) for block_id in block_ids], np.int64)
        if (new_indices < 0).all():
            return row
        before = SegmentMerger(draft.store, draft.schema, (), {}).concat_sidecars(row, self.key)
        if before is None:
            before = unindexed_rows(file.row_count, self.rows.schema.field("summary").type)
        joined = _overlay_rows(before, self.rows, new_indices)
        segment_id = row.column("id")[0].as_py()
        staged = stage_sidecars(draft.store, segment_id, self.key, joined, draft.builders.get(self.key))
        return with_columns(row, staged.row)


def _overlay_rows(before: pa.Table, new: pa.Table, new_indices: IndexArray) -> pa.Table:
    """Put rows of ``new`` over some of those before: row i is row ``new_indices[i]`` of it, unless that is below 0."""
    both = pa.concat_tables([before, new.select(before.column_names)])
    indices = np.where(new_indices < 0, np.arange(len(before)), new_indices + len(before))
    return both.take(pa.array(indices)).combine_chunks()
