"""Sidecars are staged: payloads go into packs, rows into one ``_x`` file for each segment.

A writer takes sidecars block by block, of one index. Packs may hold payloads of several segments, so the files of a
segment are written as soon as the last pack of its payloads is. Memory is bounded by one pack.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fuse_storage.errors import StorageError
from fuse_storage.metadata import metadata_table
from fuse_storage.metadata.file_ref import create_file, new_id
from fuse_storage.metadata.pack import Pack, Sidecar, add_checksums
from fuse_storage.metadata.segment import encode_list_row
from fuse_storage.metadata.segment_list import sidecar_columns
from fuse_storage.metadata.sidecar import SIDECAR_COLUMN_TYPES, StagedSidecars, pack_path, sidecar_path
from fuse_storage.store.store import Store

DEFAULT_PACK_BYTES = 64 << 20
"""Payload bytes after which a pack is written: what a writer keeps in memory."""
MAX_SIDECARS_PER_PACK = 1000
"""Sidecars after which a pack is written, however small they are."""


class SidecarBuilder(Protocol):
    """One index, to those who do not know what indexes are. Picklable; used from several threads."""

    @property
    def key(self) -> str:
        """The hash of its definition, under which all that it builds is kept."""
        ...

    @property
    def version(self) -> int: ...

    @property
    def columns(self) -> Sequence[str]:
        """The logical columns of which it needs the rows."""
        ...

    @property
    def summary_type(self) -> pa.DataType: ...

    @property
    def roll_up_type(self) -> pa.DataType: ...

    def build(self, rows: pa.Table, zones: npt.NDArray[np.int64]) -> Sidecar | None:
        """Index one block. Gives its sidecar, or None if it is not indexed.

        ``rows``: all rows of the block, of ``columns`` at least. ``zones``: int64, shape (number of zones + 1,); zone z
        is ``rows[zones[z]:zones[z + 1]]``.
        """
        ...

    def pack(self, sidecars: Sequence[Sidecar]) -> Pack | None:
        """Lay payloads out as one file; None: it cannot, so none of these blocks is indexed."""
        ...

    def roll_up(self, summaries: pa.Array) -> pa.Scalar | None:
        """Sum up what it knows of a whole segment; None if that is nothing.

        ``summaries``: of ``summary_type``, one for each block of a segment, all of them indexed in ``version``.
        """
        ...


@dataclass
class SidecarWriter:
    """Takes the sidecars of one index, block by block and segment by segment. Used by one thread.

    A sidecar's row is written when its segment has ended and its payload is in a pack; until then it waits here:
    ``_rows`` of the segment that has not ended, ``_ended`` of those that have, ``_pending`` sidecars without a pack.
    """

    store: Store
    builder: SidecarBuilder
    pack_bytes: int = DEFAULT_PACK_BYTES
    _written: list[str] = field(default_factory=list)
    _rows: list[dict[str, Any]] = field(default_factory=list)
    _pending: list[tuple[dict[str, Any], Sidecar]] = field(default_factory=list)
    _pending_bytes: int = 0
    _ended: list[tuple[str, list[dict[str, Any]]]] = field(default_factory=list)
    _staged: list[StagedSidecars] = field(default_factory=list)

    def add(self, sidecar: Sidecar | None) -> None:
        """Take the sidecar of the next block; None: not indexed, or left as it is where it already was."""
        row: dict[str, Any] = {"indexed": sidecar is not None}
        self._rows.append(row)
        if sidecar is None:
            return
        self._pending.append((row, sidecar))
        self._pending_bytes += len(sidecar.payload or b"")
        if self._pending_bytes >= self.pack_bytes or len(self._pending) >= MAX_SIDECARS_PER_PACK:
            self._flush()

    def end_segment(self, segment_id: str) -> None:
        """End a segment: the blocks since the last call were all that are in it."""
        rows, self._rows = self._rows, []
        self._ended.append((segment_id, rows))

    def finish(self) -> list[StagedSidecars]:
        """Write what is left. Of segments without any indexed block there is nothing to stage."""
        if self._rows:
            raise StorageError(f"{len(self._rows)} sidecars belong to no segment: call end_segment first")
        self._flush()
        return self._staged

    def abort(self) -> None:
        """Delete what was written. Not after ``finish``: then it may be committed already."""
        self.store.delete(self._written)

    def _flush(self) -> None:
        if self._pending:
            self._write_pack([sidecar for _, sidecar in self._pending], [row for row, _ in self._pending])
            self._pending, self._pending_bytes = [], 0
        for segment, rows in self._ended:
            if any(row["indexed"] for row in rows):
                self._staged.append(self._write_rows(segment, rows))
        self._ended = []

    def _write_pack(self, sidecars: Sequence[Sidecar], rows: Sequence[dict[str, Any]]) -> None:
        pack = self.builder.pack(sidecars)
        if pack is None:
            for row in rows:
                row["indexed"] = False
            return
        path = pack_path(self.builder.key, new_id())
        data = add_checksums(pack.data, pack.chunk, path) if pack.data else b""
        if data:
            self._create(path, data)
        for row, summary, span in zip(rows, pack.summaries, pack.spans, strict=True):
            row |= {
                "version": self.builder.version,
                "summary": summary.as_py() if isinstance(summary, pa.Scalar) else summary,
            }
            if span is not None and data:
                row |= {
                    "pack": path,
                    "offset": span[0],
                    "length": span[1],
                    "chunk": pack.chunk,
                    "pack_length": len(data),
                }

    def _write_rows(self, segment: str, rows: Sequence[dict[str, Any]]) -> StagedSidecars:
        types = {**SIDECAR_COLUMN_TYPES, "summary": self.builder.summary_type}
        table = pa.table({name: pa.array([row.get(name) for row in rows], types[name]) for name in types})
        staged = stage_sidecars(self.store, segment, self.builder.key, table, self.builder)
        self._written.append(staged.reference.path)
        return staged

    def _create(self, path: str, data: bytes) -> None:
        self._written.append(path)
        self.store.create(path, data)


def stage_sidecars(
    store: Store, segment: str, key: str, rows: pa.Table, builder: SidecarBuilder | None
) -> StagedSidecars:
    """Write the ``_x`` file of a segment, and stage what the list is to say of it.

    ``rows``: one for each block, with the columns of ``SIDECAR_COLUMN_TYPES`` and the summary. Without a builder there
    is no roll-up.
    """
    reference = create_file(
        store, sidecar_path(segment, key, new_id()), metadata_table.encode_metadata(rows, keep_arrow_types=True)
    )
    roll_up = _roll_up(rows, builder)
    roll_up_type = pa.null() if builder is None else builder.roll_up_type
    version = None if roll_up is None or builder is None else builder.version
    indexed = int(pc.sum(rows.column("indexed")).as_py() or 0)
    size = reference.length + int(metadata_table.column_as_int64(rows, "length").sum())
    values = [
        pa.array([reference.path]),
        pa.array([reference.length]),
        pa.array([reference.hash]),
        pa.array([indexed]),
        pa.array([size]),
        pa.array([None if roll_up is None else roll_up.as_py()], roll_up_type),
        pa.array([version], pa.int32()),
    ]
    row = pa.table(dict(zip(sidecar_columns(key), values, strict=True)))
    return StagedSidecars(segment, key, reference, indexed, encode_list_row(row))


def _roll_up(rows: pa.Table, builder: SidecarBuilder | None) -> pa.Scalar | None:
    """Sum up a segment, given by the rows of its ``_x`` file, of which nothing is unknown or in another version.

    Whoever reads a roll-up takes it for all blocks: one that is not indexed would be ruled out with the others.
    """
    if builder is None:
        return None
    versions = np.where(rows.column("indexed").to_numpy(), metadata_table.column_as_int64(rows, "version", -1), -1)
    if not (versions == builder.version).all():
        return None
    return builder.roll_up(metadata_table.column_as_array(rows, "summary"))
