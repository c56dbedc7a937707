"""Deleted rows of a Delta table's files: vectors in files beside them, in others, or in the log itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from uuid import UUID

from fuse_index.export.deletion_vectors import unz85
from fuse_index.sources.deletes.roaring import bitmap_rows, framed_rows
from fuse_index.sources.delta.log import VectorPlace
from fuse_index.sources.source import KeyHolders, KnownRows
from fuse_storage import NotFound, RowMask, SourceFile, Store, Unsupported, resolve_foreign_store

_FRAME_BYTES = 8
"""The length before a vector in a file, and its checksum behind it."""
_ID_CHARS = 20
_READERS = 16
"""Files of vectors that are read at a time."""


@dataclass(frozen=True)
class DeltaDeletes:
    """The deletion vectors of a version. ``places``: by the locations of the files that they are of."""

    store: Store
    places: Mapping[str, VectorPlace]
    followed: str | None = None

    def changed(self, file: SourceFile, known: str | None, followed: str | None) -> bool:
        """Whether the file has another vector than a table knows."""
        return file.deletes != known

    def read(
        self, files: Sequence[KnownRows], followed: str | None, holders: KeyHolders | None = None
    ) -> Mapping[str, RowMask]:
        """Find rows that do not count, by location: bool, shape (last deleted row + 1,). Vectors are read once.

        Raises NotFound, Corrupt, Unsupported.
        """
        masks, wanted = dict[str, RowMask](), defaultdict[str, list[tuple[str, VectorPlace]]](list)
        for each in files:
            location = each.file.location
            if (place := self.places.get(location)) is None:
                continue
            if place.storage == "i":
                masks[location] = bitmap_rows(unz85(place.text)[: place.size], location)
            else:
                wanted[self._file(place)].append((location, place))
        with ThreadPoolExecutor(_READERS, "fuse-vectors") as pool:
            for found in pool.map(self._read_file, wanted.items()):
                masks |= found
        return masks

    def _read_file(self, wanted: tuple[str, list[tuple[str, VectorPlace]]]) -> Mapping[str, RowMask]:
        where, vectors = wanted
        store, key = resolve_foreign_store(self.store, where, self.store.url)
        ranges = [(place.offset or 0, place.size + _FRAME_BYTES) for _, place in vectors]
        try:
            parts = store.read_ranges(key, ranges)
        except NotFound as missing:
            raise NotFound(
                f"{missing}: it says which rows of {vectors[0][0]} are deleted; sync to a later version"
            ) from missing
        return {location: framed_rows(part, where) for (location, _), part in zip(vectors, parts, strict=True)}

    def _file(self, place: VectorPlace) -> str:
        """The location of a file of vectors. Raises Unsupported for a kind that is not known."""
        if place.storage == "p":
            return "/" + place.text.removeprefix("file:").lstrip("/") if place.text.startswith("file:") else place.text
        if place.storage != "u":
            raise Unsupported(
                f"{self.store.url} has deletion vectors stored as {place.storage!r}, which is not known here"
            )
        folder, number = place.text[:-_ID_CHARS], UUID(bytes=unz85(place.text[-_ID_CHARS:]))
        return "/".join([self.store.url, *([folder] if folder else []), f"deletion_vector_{number}.bin"])
