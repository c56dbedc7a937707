"""Rows of a source's files that do not count: of files that came, and of blocks where they may have changed.

A source is asked about nothing else, so that a table reads what was deleted since it was synced.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fuse_index.sources.file_columns import OpenedFiles
from fuse_index.sources.source import KeyHolders, KnownRows, SourceDeletes, SourceState
from fuse_storage import BlockFrame, Snapshot, SourceFile, live_row_masks


@dataclass(frozen=True)
class DeletedRows:
    """The deleted rows of a state, for the table of a snapshot, which has another state of the source, or none.

    ``holders``: what its statistics and indexes know of keys.
    """

    state: SourceState
    snapshot: Snapshot
    holders: KeyHolders | None = None

    @property
    def _deletes(self) -> SourceDeletes | None:
        return None if self.snapshot.votes_only else self.state.deletes

    @property
    def _followed(self) -> str | None:
        found: str | None = (self.snapshot.source or {}).get("deletes")
        return found

    def of_files(self, opened: OpenedFiles) -> OpenedFiles:
        """Files that came, with their deleted rows."""
        if self._deletes is None:
            return opened
        wanted = [KnownRows(file) for file, _ in opened if self._deletes.changed(file, None, None)]
        masks = self._deletes.read(wanted, None)
        return [(replace(file, deleted=masks.get(file.location)), each) for file, each in opened]

    def of_blocks(
        self, blocks: BlockFrame, files: Sequence[SourceFile], kept: Collection[str]
    ) -> Mapping[str, SourceFile]:
        """Files of blocks of which other rows may be deleted than were, by location, with those that are now.

        ``kept``: the locations of files that are as they were.
        """
        if self._deletes is None:
            return {}
        live = {file.location: file for file in files if file.location in kept}
        names = blocks.texts("source_deletes")
        chosen = [
            number
            for number, location in enumerate(blocks.locations)
            if location in live and self._deletes.changed(live[location], names[number], self._followed)
        ]
        masks = live_row_masks(blocks, chosen)
        wanted = [
            KnownRows(
                live[blocks.locations[number]],
                names[number],
                ~masks[number] if number in masks else np.zeros(int(blocks.row_counts[number]), np.bool_),
            )
            for number in chosen
        ]
        now = self._deletes.read(wanted, self._followed, self.holders)
        return {each.file.location: replace(each.file, deleted=now.get(each.file.location)) for each in wanted}

    def names(self, blocks: BlockFrame, numbers: Iterable[int]) -> Mapping[int, str | None]:
        """What the source calls the deletes of blocks, by their numbers."""
        wanted = {blocks.locations[number]: number for number in numbers}
        return {wanted[file.location]: file.deletes for file in self.state.files if file.location in wanted}
