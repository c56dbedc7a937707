"""A file that somebody else wrote, as a block's row describes it: what it is known by, how its columns are found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fuse_storage.errors import SYNC_HINT, Corrupt, NotFound
from fuse_storage.store.abilities import object_meta
from fuse_storage.store.ranges import ObjectMeta
from fuse_storage.store.store import Store

FORMAT_BY_NAME, FORMAT_BY_ID = "foreign-parquet", "foreign-parquet-ids"
"""What a block's row says of a foreign file: columns are found by their physical names, or by Parquet's field ids."""


@dataclass(frozen=True, slots=True)
class ForeignFile:
    """What is known of a foreign file. ``modified``: microseconds since 1970 by its store's clock; None is unknown.

    ``by_id``: columns are found by field ids. ``constants``: by column id, the value that every row holds, as JSON has
    defaults.
    """

    size: int
    modified: int | None
    etag: str | None
    by_id: bool = False
    constants: Mapping[int, Any] = field(default_factory=dict)

    def raise_if_changed(self, store: Store, key: str) -> None:
        """Raise Corrupt if the file is another than the one that was attached, NotFound if it is gone.

        By its size, and its ETag; by when it was written where one of the two has no ETag. ``BlockSeals.java`` tells
        it in the same way.
        """
        try:
            meta = object_meta(store, key)
        except NotFound as missing:
            raise NotFound(f"{missing}, although the table refers to it; {SYNC_HINT}") from missing
        if meta.size != self.size or self._is_other_version(meta):
            raise Corrupt(
                f"{store.url}/{key} has changed since it was attached, so that the rows of this snapshot may be gone: "
                f"sync the table with its source; sync(reread=True) if that finds no change (in a copy, or a backup)"
            )

    def _is_other_version(self, meta: ObjectMeta) -> bool:
        if self.etag is not None and meta.etag is not None:
            return meta.etag != self.etag
        return self.modified is not None and modified_microseconds(meta) != self.modified


def modified_microseconds(meta: ObjectMeta) -> int:
    """When an object was written, in microseconds since 1970."""
    return round(meta.modified.timestamp() * 1_000_000)
