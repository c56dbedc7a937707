"""What is in a segment, and in a list of segments: columns of metadata, one row for each block, zone or segment.

Statistics of a column are kept under its id, ``c.<id>.min`` and so on; what an index definition knows of a segment
under its key, ``x.<key>.path`` and so on. Rows of a segment that is not committed yet travel as a ``StagedSegment``.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fuse_storage.errors import Corrupt
from fuse_storage.metadata import metadata_table
from fuse_storage.metadata.encoding import format_timestamp
from fuse_storage.metadata.file_ref import FileRef
from fuse_storage.parquet.footer import BlockFile
from fuse_storage.parquet.foreign.file import FORMAT_BY_ID, FORMAT_BY_NAME, ForeignFile
from fuse_storage.validation.json_members import TailMembers, parse_stored_time
from fuse_storage.validation.metadata_columns import MAX_COUNT, check_columns, check_ids, check_lists

OWN_FORMAT = "parquet"
"""What the row of a block of ours says of its file."""

MAX_BLOCKS_PER_SEGMENT = 1000
"""Blocks of a segment: enough that a million of them are a thousand files, few enough that one file is read quickly."""

BLOCK_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("location", pa.string()),  # null: where blocks of this table are; else the URL of a clone's, or foreign, file
        ("format", pa.string()),
        ("row_count", pa.int64()),
        ("live_rows", pa.int64()),  # fewer than row_count where there is a deletion vector
        ("stats_exact", pa.bool_()),
        ("size", pa.int64()),
        ("hash", pa.string()),
        ("footer_offset", pa.int64()),
        ("footer_length", pa.int64()),
        ("seal", pa.int64()),  # null: written before seals were remembered
        ("zone_rows", pa.list_(pa.field("element", pa.int64()))),
        ("zone_sizes", pa.list_(pa.field("element", pa.int64()))),  # null: written before they were remembered
        ("schema_id", pa.int32()),
        ("first_row_id", pa.int64()),  # null: to be counted from the segment's
        ("added_by", pa.int64()),  # null: the segment's
        ("level", pa.int32()),
        ("bucket", pa.int32()),  # reserved: null in this version
        ("partition", pa.string()),  # of foreign files an object, of partitioned tables' own blocks a list
        ("deletion_vector", pa.string()),  # null: every row counts
        ("key_metadata", pa.binary()),  # reserved
        ("source_deletes", pa.string()),  # of foreign files
        ("modified", pa.int64()),  # of foreign files
        ("etag", pa.string()),
    ]
)
"""A block's row, besides statistics."""

PLANNING_COLUMNS: metadata_table.ColumnGroup = ("row_count", "schema_id")
"""Columns of blocks that every plan needs: read whenever a segment is opened at all."""

LOCATION_COLUMNS: metadata_table.ColumnGroup = (
    "id",
    "location",
    "format",
    "size",
    "footer_offset",
    "footer_length",
    "seal",
    "zone_rows",
    "partition",
    "modified",
    "etag",
)
"""Columns that tell where a block is, and how it is read: read together, since that is one pass over files."""

_BLOCK_BOUNDS = {
    "row_count": (1, MAX_COUNT),
    "live_rows": (1, MAX_COUNT),
    "size": (0, MAX_COUNT),
    "footer_offset": (0, MAX_COUNT),
    "footer_length": (0, MAX_COUNT),
    "schema_id": (0, 1 << 31),
}


def check_block_rows(rows: pa.Table) -> None:
    """Raise ValueError for columns of a segment that no writer wrote: of other types, or numbers that cannot be."""
    check_columns(rows, BLOCK_SCHEMA, _BLOCK_BOUNDS)
    present = rows.schema.names
    if "id" in present:
        check_ids(rows.column("id"), "id")
    if {"row_count", "live_rows"}.issubset(present) and pc.any(
        pc.less(rows.column("row_count"), rows.column("live_rows"))
    ).as_py():
        raise ValueError("more rows count than there are")
    if "zone_rows" in present:
        totals = rows.column("row_count") if "row_count" in present else None
        check_lists(rows.column("zone_rows"), "zone_rows", totals, MAX_COUNT)
    if "zone_sizes" in present:
        known = rows.column("zone_sizes").drop_null()
        check_lists(known, "zone_sizes", None, MAX_COUNT, least=0)  # 0: in the row group of the zone before


def block_columns(table: pa.Table) -> pa.Table:
    """The columns of BLOCK_SCHEMA of a segment's rows; null where an older version did not write one."""
    places = ((field, table.schema.get_field_index(field.name)) for field in BLOCK_SCHEMA)
    return pa.table(
        {
            field.name: table.column(place) if place >= 0 else pa.nulls(table.num_rows, field.type)
            for field, place in places
        }
    )


@cache
def empty_block_rows(group: metadata_table.ColumnGroup) -> pa.Table:
    """Make a table of these columns of blocks, without rows."""
    return pa.schema([BLOCK_SCHEMA.field(name) for name in group]).empty_table()


def block_path(block_id: str) -> str:
    return f"_b/{block_id}.parquet"


def block_file(columns: pa.Table, row: int) -> BlockFile:
    """Where the block of this row is. ``columns``: LOCATION_COLUMNS, one row for each block.

    Raises Corrupt for a format that this version does not know.
    """
    values = {name: columns.column(name)[row].as_py() for name in LOCATION_COLUMNS}
    foreign = None
    if values["format"] in (FORMAT_BY_NAME, FORMAT_BY_ID):
        constants = _decode_constants(values["partition"] or "{}")
        by_id = values["format"] == FORMAT_BY_ID
        foreign = ForeignFile(values["size"], values["modified"], values["etag"], by_id, constants)
    elif values["format"] != OWN_FORMAT:
        raise Corrupt(f"block {values['id']} is of format {values['format']!r}, which no table has: it is damaged")
    return BlockFile(
        values["location"] or block_path(values["id"]),
        values["footer_offset"],
        values["footer_length"],
        tuple(values["zone_rows"]),
        values["seal"],
        foreign,
    )


@dataclass(frozen=True, slots=True)
class ForeignColumns:
    """What rows of n blocks say of files that somebody else wrote.

    ``mask``: bool, shape (n,), True where a block is one. ``modified``: int64, shape (n,), when it was written, in
    microseconds since 1970, 0 where unknown. ``etags``: of each block, None where unknown. ``constants``: of each
    block, by column id, what all its rows hold.
    """

    mask: npt.NDArray[np.bool_]
    modified: npt.NDArray[np.int64]
    etags: Sequence[str | None]
    constants: Sequence[Mapping[int, Any]]


def foreign_columns(columns: pa.Table) -> ForeignColumns:
    """What these rows of blocks say of foreign files. ``columns``: LOCATION_COLUMNS."""
    foreign = np.asarray(pc.not_equal(columns.column("format"), OWN_FORMAT).to_numpy(), np.bool_)
    texts = zip(columns.column("partition").to_pylist(), foreign.tolist(), strict=True)
    constants = [_decode_constants(text) if text and is_foreign else {} for text, is_foreign in texts]
    modified, etags = metadata_table.column_as_int64(columns, "modified", 0), columns.column("etag").to_pylist()
    return ForeignColumns(foreign, modified, etags, constants)


@lru_cache(maxsize=4096)
def _decode_constants(text: str) -> Mapping[int, Any]:
    return {int(column_id): value for column_id, value in json.loads(text).items()}


def has_deleted_rows(units: pa.Table) -> bool:
    """Whether rows of some of these blocks, or segments, do not count."""
    return not units.column("live_rows").equals(units.column("row_count"))


HOT_BLOCK_FOLDER = "_h"


def hot_block_path(block_id: str) -> str:
    return f"{HOT_BLOCK_FOLDER}/{block_id}.parquet"


def tail_path(snapshot_id: str) -> str:
    return f"_ss/{snapshot_id}.tail.parquet"


def segment_path(segment_id: str) -> str:
    return f"_sg/{segment_id}.parquet"


def zones_path(segment_id: str) -> str:
    return f"_sg/{segment_id}.zones.parquet"


@dataclass(frozen=True, slots=True)
class TailTotals:
    """The hot blocks of a snapshot: sums over them, and when the oldest was committed (UTC).

    ``reference``: of the list of those that a stored snapshot carries; None where there are only later ones.
    """

    commits: int
    blocks: int
    rows: int
    bytes: int
    oldest: datetime
    reference: FileRef | None = None

    def to_json(self) -> dict[str, Any]:
        listed = None if self.reference is None else self.reference.to_json()
        counts = {"commits": self.commits, "blocks": self.blocks, "rows": self.rows, "bytes": self.bytes}
        return {**counts, "oldest": format_timestamp(self.oldest), "list": listed}

    @staticmethod
    def from_members(found: TailMembers) -> TailTotals:
        reference = None if found.list is None else FileRef.from_members(found.list)
        oldest = parse_stored_time(found.oldest)
        return TailTotals(found.commits, found.blocks, found.rows, found.bytes, oldest, reference)


@dataclass(frozen=True, slots=True)
class StagedSegment:
    """A segment that is written but not committed. Small and picklable; the rows themselves are in files.

    ``started``: when its writer began (UTC). ``row``: its row in the list, which is packed to travel.
    """

    id: str
    schema_id: int
    row_count: int
    block_count: int
    started: datetime
    row: pa.Table

    def __reduce__(self) -> tuple[Any, ...]:
        totals = (self.id, self.schema_id, self.row_count, self.block_count)
        return _unpack_segment, (*totals, self.started, encode_list_row(self.row))

    @property
    def live_rows(self) -> int:
        """The rows that count."""
        return int(self.row.column("live_rows")[0].as_py())

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "schema_id": self.schema_id,
            "row_count": self.row_count,
            "block_count": self.block_count,
            "started": format_timestamp(self.started),
            "row": base64.b64encode(encode_list_row(self.row)).decode(),
        }

    @staticmethod
    def from_json(found: Mapping[str, Any]) -> StagedSegment:
        started, row = datetime.fromisoformat(found["started"]), base64.b64decode(found["row"])
        return _unpack_segment(found["id"], found["schema_id"], found["row_count"], found["block_count"], started, row)


def _unpack_segment(
    segment_id: str, schema_id: int, row_count: int, block_count: int, started: datetime, row: bytes
) -> StagedSegment:
    return StagedSegment(segment_id, schema_id, row_count, block_count, started, decode_list_row(row))


def encode_list_row(row: pa.Table) -> bytes:
    """One row of a list as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, row.schema) as stream:
        stream.write_table(row)
    return zlib.compress(
        bytes(sink.getvalue()), 1
    )  # as a whole: a hundred small buffers one by one take 50 times as long


def decode_list_row(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(zlib.decompress(data)).read_all()
