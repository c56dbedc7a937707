"""Files that a table knows: of which its indexes may say that no row matches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fuse_storage.table import StoredTable


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file as the table knows it. ``block``: its number in the snapshot. ``modified``: microseconds since 1970.

    A file of another size is another file; so is one of another time, where its source keeps no log.
    """

    block: int
    size: int
    modified: int | None


def known_files(table: StoredTable) -> Mapping[str, KnownFile]:
    """The files of others that are blocks of this snapshot, by their absolute paths or URLs.

    A block of which some rows are deleted is none: votes on it are on those that count in this snapshot, and in another
    version others may.
    """
    blocks = table.blocks()
    whole = blocks.foreign.mask & blocks.has_all_rows
    found = zip(blocks.locations, whole, blocks.sizes.tolist(), blocks.foreign.modified, strict=True)
    return {
        location: KnownFile(block, size, int(modified) or None)
        for block, (location, is_whole, size, modified) in enumerate(found)
        if is_whole
    }
