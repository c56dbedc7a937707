"""Files of a source's state, compared with the blocks of a table: which are gone, and which are as they were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fuse_storage import BlockFrame, OpenedFile, RowMask, SourceFile, live_row_masks, modified_microseconds


def as_opened(file: SourceFile, opened: OpenedFile) -> SourceFile:
    """The file as its store had it when it was opened, where it was asked."""
    if opened.meta is None:
        return file
    return replace(file, modified=modified_microseconds(opened.meta), etag=opened.meta.etag)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Blocks, by their numbers in a frame, whose files ``changed``, or ``left`` the source; locations of all others."""

    changed: list[int]
    left: list[int]
    kept: set[str]

    def mark(self, blocks: BlockFrame, now: Mapping[str, SourceFile], in_place: bool) -> dict[int, RowMask]:
        """Deleted rows of blocks whose files are as they were, where these are others than they were.

        ``now``: files by location, with their deleted rows as these are now. Returns, by number of a block, bool, shape
        (rows,). Where all rows count now, or none, or nothing can stay ``in_place``, the block is changed instead.
        """
        chosen = [number for number, location in enumerate(blocks.locations) if location in self.kept & now.keys()]
        masks, marked = live_row_masks(blocks, chosen), dict[int, RowMask]()
        names = blocks.texts("source_deletes") if chosen else []
        for number in chosen:
            location, rows = blocks.locations[number], int(blocks.row_counts[number])
            deleted = now[location].deleted_rows(rows)
            before = ~masks[number] if number in masks else np.zeros(rows, np.bool_)
            is_named = not deleted.any() or names[number] == now[location].deletes
            if is_named and np.array_equal(deleted, before):
                continue
            if in_place and deleted.any() and not deleted.all():
                marked[number] = deleted
            else:
                self.kept.discard(location)
                self.changed.append(number)
        return marked

    def gone(self, stay: int = 0) -> list[int]:
        """The blocks that go, if of those whose files left the last ``stay`` remain."""
        return sorted([*self.changed, *self.left[: max(len(self.left) - stay, 0)]])


def compare_files(blocks: BlockFrame, files: Sequence[SourceFile], opened: Sequence[OpenedFile] = ()) -> Comparison:
    """Compare blocks with the files that are live now. ``opened``: the files, where they were looked into."""
    live = {file.location: file for file in files}
    seals = {file.location: each.seal for file, each in zip(files, opened, strict=False)}
    found = Comparison([], [], set())
    known = zip(blocks.sizes.tolist(), blocks.seals.tolist(), strict=True)
    versions = zip(blocks.foreign.modified.tolist(), blocks.foreign.etags, strict=True)
    rows = zip(blocks.locations, known, versions, strict=True)
    for number, (location, (size, seal), version) in enumerate(rows):
        file = live.get(location)
        same = file is not None and (size, seals.get(location, seal)) == (file.size, seal)
        if file is None:
            found.left.append(number)
        elif not same or location in found.kept or _is_newer(file, *version):
            found.changed.append(number)
        else:
            found.kept.add(location)
    return found


def _is_newer(file: SourceFile, modified: int, etag: str | None) -> bool:
    """Whether what a store says of a file is not what it said once, as far as it says anything."""
    return file.modified not in (None, modified) or (None not in (file.etag, etag) and file.etag != etag)
