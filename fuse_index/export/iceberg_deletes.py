"""Files that tell Iceberg's readers which rows of data files were deleted.

Format version 2 has them as Parquet files of positions, version 3 as deletion vectors in Puffin files. Each is of one
data file and is named by what it deletes, so that the next export finds it and writes only what is new.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from fuse_index.export.deletion_vectors import PUFFIN_HEAD, puffin_vectors
from fuse_index.export.live_files import LiveFiles
from fuse_storage import AlreadyExists, Conflict, RowMask, Store

_NAME = re.compile(r"(?P<name>[0-9a-f]{32}-(?P<content>\d+)\.(?:parquet|puffin))")
_PATH_ID, _POSITION_ID = 2147483546, 2147483545
"""Ids of the columns of a file of positions, which Iceberg's spec reserves."""
_POSITIONS = pa.schema(
    [
        pa.field("file_path", pa.string(), nullable=False, metadata={"PARQUET:field_id": str(_PATH_ID)}),
        pa.field("pos", pa.int64(), nullable=False, metadata={"PARQUET:field_id": str(_POSITION_ID)}),
    ]
)
_WRITE_THREADS = 8


@dataclass(frozen=True)
class DeleteFile:
    """A file of deleted rows. ``url``: of the data file that they are of.

    ``content``: bytes of the deletion vector, which begins after Puffin's magic number; 0 in a Parquet file.
    """

    key: str
    size: int
    content: int
    url: str
    row_count: int

    @property
    def path_bounds(self) -> dict[int, bytes]:
        """The least and the greatest path of data files in it, by which readers find it."""
        return {_PATH_ID: self.url.encode()}

    @property
    def vector_place(self) -> dict[str, str | int]:
        """Where a manifest of version 3 says that the deletion vector is."""
        return {
            "referenced_data_file": self.url,
            "content_offset": len(PUFFIN_HEAD),
            "content_size_in_bytes": self.content,
        }


def write_delete_files(files: LiveFiles, folder: str, as_vectors: bool) -> list[DeleteFile]:
    """Write what the folder lacks of the files that say which rows are deleted; give them all.

    ``as_vectors``: as deletion vectors, else as positions. Raises InputError where pyroaring is not installed and
    needed, Conflict if somebody else just wrote such a file, StorageError.
    """
    suffix = "puffin" if as_vectors else "parquet"
    stems = {
        number: xxhash.xxh3_128_hexdigest(f"{files.urls[number]} {vector_id}".encode())
        for number, vector_id in enumerate(files.vector_ids)
        if vector_id is not None
    }
    if not stems:
        return []
    known = _list(files.table.store, folder, suffix)
    missing = [number for number, stem in stems.items() if stem not in known]
    deleted = dict(zip(missing, files.deleted_rows(missing), strict=True))

    def write(number: int) -> tuple[str, int, int]:
        data, content = _encode(deleted[number], files.urls[number], as_vectors)
        key = f"{folder}/{stems[number]}-{content}.{suffix}"
        try:
            files.table.store.create(key, data)
        except AlreadyExists as other:
            raise Conflict(f"{files.root}/{key} was just written by somebody else: try again") from other
        return key, len(data), content

    with ThreadPoolExecutor(_WRITE_THREADS, "fuse-export") as pool:
        known |= dict(zip((stems[number] for number in missing), pool.map(write, missing), strict=True))
    deleted_counts = files.blocks.row_counts - files.blocks.live_row_counts
    return [DeleteFile(*known[stem], files.urls[number], int(deleted_counts[number])) for number, stem in stems.items()]


def _list(store: Store, folder: str, suffix: str) -> dict[str, tuple[str, int, int]]:
    """The files of deleted rows that are there, by the first part of their names: key, bytes, bytes of the vector."""
    found = {}
    for entry in store.list(folder):
        match = _NAME.fullmatch(entry.key.removeprefix(f"{folder}/"))
        if match and entry.key.endswith(suffix):
            found[match["name"].split("-")[0]] = (entry.key, entry.size, int(match["content"]))
    return found


def _encode(deleted: RowMask, url: str, as_vectors: bool) -> tuple[bytes, int]:
    """A file of these rows of a data file, and the bytes of the vector in it."""
    if as_vectors:
        data, (vector,) = puffin_vectors([deleted], [url])
        return data, vector.size
    positions = np.flatnonzero(deleted)
    rows = pa.table([pa.array([url] * len(positions), pa.string()), pa.array(positions, pa.int64())], _POSITIONS)
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, compression="zstd")
    return sink.getvalue().to_pybytes(), 0
