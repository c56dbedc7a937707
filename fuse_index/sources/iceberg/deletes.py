"""Deleted rows of an Iceberg table's files: found in its metadata, and read of what came since.

Deletes are of one data file each, as a deletion vector, or may be of any: of a partition, or those that equal a key.
The first have a name with the file; of the others the table remembers up to where they were followed.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fuse_index.sources.deletes.roaring import framed_rows
from fuse_index.sources.iceberg.equal_rows import EqualityDeletes
from fuse_index.sources.iceberg.live_files import DataFileEntry, DeleteFileEntry, names_digest
from fuse_index.sources.source import KeyHolders, KnownRows
from fuse_storage import RowMask, SourceFile


class IcebergDeletes:
    """The deletes of a snapshot. Nothing is read of a delete file before it is asked for."""

    def __init__(self, table: Any, files: Sequence[DataFileEntry], deletes: Sequence[DeleteFileEntry]) -> None:
        self._table = table
        self._files = {each.location: each for each in files}
        self._own: dict[str, list[DeleteFileEntry]] = {}
        self._shared: dict[tuple[Hashable, ...] | None, list[DeleteFileEntry]] = {}
        for each in deletes:
            if each.of is None:
                self._shared.setdefault(each.partition, []).append(each)
            else:
                self._own.setdefault(each.of, []).append(each)

    def name(self, file: DataFileEntry) -> str:
        """What tells deletes of this file alone from others, and the file from one of the same name added anew."""
        own = [each.name for each in self._own.get(file.location, ()) if each.hits(file)]
        return f"{file.sequence}:{names_digest(own)}" if own else str(file.sequence)

    @cached_property
    def followed(self) -> str | None:
        """Up to which sequence number there are deletes that may be of any file, and a digest of which they are."""
        shared = [each for some in self._shared.values() for each in some]
        if not shared:
            return None
        return f"{max(each.sequence for each in shared)}:{names_digest([each.name for each in shared])}"

    def changed(self, file: SourceFile, known: str | None, followed: str | None) -> bool:
        """Whether rows may have gone, or come back, since a state in which these were the names."""
        last = self._last(followed)
        return known != file.deletes or last is None or any(each.sequence > last for each in self._hitting(file))

    def read(
        self, files: Sequence[KnownRows], followed: str | None, holders: KeyHolders | None = None
    ) -> Mapping[str, RowMask]:
        """Find rows that do not count, by location: bool, shape (rows,). What came since is read, if that is enough.

        Raises Corrupt for a vector that is damaged, Unsupported, and what PyIceberg raises.
        """
        last, masks = self._last(followed), dict[str, RowMask]()
        by_position: dict[DeleteFileEntry, list[str]] = {}
        equality = EqualityDeletes(self._table, holders)
        for each in files:
            entry = self._files[each.file.location]
            is_known = last is not None and each.name == each.file.deletes and each.rows is not None
            hitting = self._hitting(each.file)
            new = [delete for delete in hitting if not (is_known and last is not None and delete.sequence <= last)]
            own = [delete for delete in self._own.get(entry.location, ()) if delete.hits(entry)]
            if not own and not new and not is_known:
                continue  # a mask of it would be as long as the file
            mask = np.zeros(entry.data_file.record_count, np.bool_)
            if is_known and each.rows is not None:
                mask |= each.rows
            masks[entry.location] = mask
            vectors = [delete for delete in own if delete.part is not None]
            for vector in [] if is_known else vectors:
                rows = self._vector(vector)[: len(mask)]
                mask[: len(rows)] |= rows
            for delete in () if vectors else [*([] if is_known else own), *new]:
                if not delete.equality_ids:
                    by_position.setdefault(delete, []).append(entry.location)
            # Votes are on rows that count: of a file whose mask is made anew they leave out what it has to have again.
            may_ask = is_known or each.rows is None or not each.rows.any()
            equality.mark(entry, [delete for delete in new if delete.equality_ids], mask, may_ask)
        for delete, locations in by_position.items():
            self._mark_positions(delete, {location: masks[location] for location in locations})
        return masks

    def _last(self, followed: str | None) -> int | None:
        """The number up to which shared deletes were followed; None where those were others than there are now."""
        if followed is None:
            return -1
        number, _, digest = followed.partition(":")
        before = [each.name for some in self._shared.values() for each in some if each.sequence <= int(number)]
        return int(number) if names_digest(before) == digest else None

    def _hitting(self, file: SourceFile) -> list[DeleteFileEntry]:
        entry = self._files[file.location]
        found = [*self._shared.get(None, ()), *self._shared.get(entry.partition, ())]
        return [each for each in found if each.hits(entry)]

    def _vector(self, delete: DeleteFileEntry) -> RowMask:
        assert delete.part is not None
        offset, length = delete.part
        with self._table.io.new_input(delete.location).open() as file:
            file.seek(offset)
            return framed_rows(file.read(length), delete.location)

    def _mark_positions(self, delete: DeleteFileEntry, masks: Mapping[str, RowMask]) -> None:
        """Mark rows of files, by their locations, that a file of positions deletes."""
        paths = {str(self._files[location].data_file.file_path): mask for location, mask in masks.items()}
        with self._table.io.new_input(delete.location).open() as file:
            wanted = None if len(paths) > 1 else pc.field("file_path") == next(iter(paths))
            rows = pq.read_table(file, columns=["file_path", "pos"], filters=wanted)
        encoded = pc.dictionary_encode(rows.column("file_path")).combine_chunks()
        positions = rows.column("pos").to_numpy()
        for number, path in enumerate(encoded.dictionary.to_pylist()):
            if path in paths:
                paths[path][positions[encoded.indices.to_numpy() == number]] = True
