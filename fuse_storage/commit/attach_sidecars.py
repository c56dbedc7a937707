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
from fuse_storage.commit.merge_segments import Merger
from fuse_storage.errors import NotFound
from fuse_storage.metadata import metadata_table
from fuse_storage.metadata.metadata_table import Indices
from fuse_storage.metadata.segment import beside, listed, parts
from fuse_storage.metadata.sidecar import StagedSidecars, unindexed
from fuse_storage.metadata.sidecar_writer import stage


@dataclass(frozen=True, slots=True)
class Attach:
    """What an index knows of segments of the base. Follows their blocks into whatever segments they are in by now.

    Blocks that are gone are dropped, and everything is if the definition is: dropping wins.
    """

    key: str
    staged: Mapping[str, StagedSidecars]
    name: str = "attach"

    def apply(self, draft: Draft) -> None:
        if self.key not in draft.keys or not draft.same_columns:
            return
        known = set(draft.base_rows.column("id").to_pylist())
        if strange := sorted(set(self.staged) - known):
            raise NotFound(
                f"{draft.store.url}: segment {strange[0]} is not in snapshot {draft.base.id}, which "
                f"this transaction began at"
            )
        rows = [draft.rows.slice(number, 1) for number in range(len(draft.rows))]
        present = {row.column("id")[0].as_py(): number for number, row in enumerate(rows)}
        stayed = [id for id in self.staged if id in present]
        for id in stayed:
            number = present[id]
            rows[number] = self._replaced(draft, rows[number])
        moved = [id for id in self.staged if id not in present]
        if moved:
            found = _Moved.read(draft, self.key, [self.staged[id] for id in moved])
            for id, number in present.items():
                if id not in known:
                    rows[number] = found.put_into(draft, rows[number])
        after = listed(rows, draft.schema, draft.keys)
        draft.changed = draft.changed or not after.equals(draft.rows)
        draft.rows = after

    def _replaced(self, draft: Draft, row: pa.Table) -> pa.Table:
        """The row of a segment that still is as it was."""
        staged = self.staged[row.column("id")[0].as_py()]
        if staged.indexed < row.column("block_count")[0].as_py():
            before = Merger(draft.store, draft.schema, (), {}).joined(row, self.key)
            if before is not None:
                own = metadata_table.read_whole(draft.store, metadata_table.Part(staged.reference, len(before)))
                joined = _chosen(before, own, np.where(own.column("indexed").to_numpy(), np.arange(len(own)), -1))
                staged = stage(draft.store, staged.segment, self.key, joined, draft.builders.get(self.key))
        return beside(row, staged.row)


@dataclass(frozen=True, slots=True)
class _Moved:
    """What is known of blocks whose segments are gone: rows of ``_x`` files, by block."""

    key: str
    rows: pa.Table
    places: Mapping[str, int]

    @staticmethod
    def read(draft: Draft, key: str, staged: Sequence[StagedSidecars]) -> _Moved:
        at = dict(zip(draft.base_rows.column("id").to_pylist(), parts(draft.base_rows), strict=True))
        ids: list[str] = []
        tables = []
        for one in staged:
            part = at[one.segment]
            (named,) = metadata_table.read(draft.store, part, [("id",)])
            ids += named.column("id").to_pylist()
            tables.append(metadata_table.read_whole(draft.store, metadata_table.Part(one.reference, part.rows)))
        rows = pa.concat_tables([table.select(tables[0].column_names) for table in tables])
        indexed = rows.column("indexed").to_pylist()
        return _Moved(key, rows, {id: place for place, id in enumerate(ids) if indexed[place]})

    def put_into(self, draft: Draft, row: pa.Table) -> pa.Table:
        """The row of a segment in which some of the blocks may be."""
        (part,) = parts(row)
        (named,) = metadata_table.read(draft.store, part, [("id",)])
        found = np.array([self.places.get(id, -1) for id in named.column("id").to_pylist()], np.int64)
        if (found < 0).all():
            return row
        before = Merger(draft.store, draft.schema, (), {}).joined(row, self.key)
        if before is None:
            before = unindexed(part.rows, self.rows.schema.field("summary").type)
        joined = _chosen(before, self.rows, found)
        id = row.column("id")[0].as_py()
        return beside(row, stage(draft.store, id, self.key, joined, draft.builders.get(self.key)).row)


def _chosen(before: pa.Table, new: pa.Table, places: Indices) -> pa.Table:
    """Row i is row ``places[i]`` of ``new``, or what it was before where that is below 0."""
    both = pa.concat_tables([before, new.select(before.column_names)])
    return both.take(pa.array(np.where(places < 0, np.arange(len(before)), places + len(before)))).combine_chunks()
