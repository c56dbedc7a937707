"""Hot entries: a commit of blocks without a snapshot, in one file of checksummed JSON. Knows no chain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from fuse_storage.errors import Corrupt, FormatError, SchemaError, Unsupported
from fuse_storage.metadata.encoding import decode_checksummed_json, encode_checksummed_json, format_timestamp
from fuse_storage.metadata.refs import RefEntry
from fuse_storage.metadata.snapshot import Snapshot
from fuse_storage.parquet.writer import BlockLayout
from fuse_storage.schema.types import encode_default
from fuse_storage.statistics import ColumnStatistics
from fuse_storage.validation.features import PRIMARY_KEY_FEATURE
from fuse_storage.validation.json_members import HotBlockMembers, HotEntryMembers, convert_members, parse_stored_time

APPEND_CHANGE, PUT_CHANGE, DELETE_CHANGE = "append", "put", "delete"
CHANGES = (APPEND_CHANGE, PUT_CHANGE, DELETE_CHANGE)
"""What the rows of a block do: they are added; each takes the place of the row of its key; or they are keys alone,
whose rows go. Later versions know others.
"""
_ENTRY_KINDS = ("snapshot", "tombstone")


@dataclass(frozen=True, slots=True)
class HotBlock:
    """A block of a hot commit, and all that is remembered of it, as in a segment's row.

    ``seal``: its checksum as a signed number. ``columns``: statistics by column id, as JSON holds them.
    """

    id: str
    change: str
    row_count: int
    size: int
    hash: str
    footer_offset: int
    footer_length: int
    seal: int
    zone_rows: tuple[int, ...]
    schema_id: int
    first_row_id: int
    columns: Mapping[str, Mapping[str, Any]]

    @staticmethod
    def from_layout(block_id: str, layout: BlockLayout, schema_id: int, change: str = APPEND_CHANGE) -> HotBlock:
        """What is remembered of a block that was just written; its row ids are given when it is committed."""
        columns = {str(number): _bounds_to_json(found) for number, found in layout.block_statistics.items()}
        return HotBlock(
            block_id,
            change,
            layout.row_count,
            layout.size,
            layout.hash,
            layout.footer_offset,
            layout.footer_length,
            layout.seal,
            layout.zone_rows,
            schema_id,
            0,
            columns,
        )

    def is_for(self, state: Snapshot) -> bool:
        """Whether a table takes such blocks: rows are put and deleted by a primary key, or without one appended."""
        return (self.change == APPEND_CHANGE) != (PRIMARY_KEY_FEATURE in state.writer_features)

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "change": self.change,
            "rows": self.row_count,
            "size": self.size,
            "hash": self.hash,
            "footer": [self.footer_offset, self.footer_length],
            "seal": f"{self.seal & (1 << 64) - 1:016x}",
            "zones": list(self.zone_rows),
            "schema": self.schema_id,
            "first_row_id": self.first_row_id,
            "columns": {number: dict(found) for number, found in self.columns.items()},
        }

    @staticmethod
    def from_members(found: HotBlockMembers) -> HotBlock:
        """Raises Unsupported for a change that this version does not know, ValueError for what cannot be."""
        if found.change not in CHANGES:
            raise Unsupported(f"it has a block of change {found.change!r}, unknown to this version: upgrade fuse-index")
        if sum(found.zones) != found.rows or sum(found.footer) != found.size:
            raise ValueError(f"block {found.id} has zones of {sum(found.zones)} rows, and bytes to {sum(found.footer)}")
        seal = int.from_bytes(bytes.fromhex(found.seal), "big", signed=True)
        return HotBlock(
            found.id,
            found.change,
            found.rows,
            found.size,
            found.hash,
            *found.footer,
            seal,
            tuple(found.zones),
            found.schema,
            found.first_row_id,
            found.columns,
        )


@dataclass(frozen=True, slots=True)
class HotEntry:
    """One hot commit. ``number``: its place in the chain, from 1. ``commit_id``: the id of the state, too.

    ``application``: id and version, where a writer wants each version written once. ``timestamp`` is UTC.
    """

    number: int
    version: int
    commit_id: str
    parent: str
    timestamp: datetime
    operation: str
    application: tuple[str, int] | None
    next_row_id: int
    blocks: tuple[HotBlock, ...]

    def __str__(self) -> str:
        return (
            f"{self.operation} (hot commit {self.commit_id}, version {self.version}, "
            f"{format_timestamp(self.timestamp)})"
        )

    @property
    def row_count(self) -> int:
        """The rows that it brings: keys that are deleted are none."""
        return sum(block.row_count for block in self.blocks if block.change != DELETE_CHANGE)

    def encode(self) -> bytes:
        """Write the entry as checksummed JSON. No other commit has these bytes, so a store tells them apart."""
        members = asdict(self) | {"blocks": [block.to_json() for block in self.blocks], "kind": "hot"}
        members |= {"commit": self.commit_id, "timestamp": format_timestamp(self.timestamp)}
        members["application"] = None if self.application is None else list(self.application)
        names = ("kind", "number", "version", "commit", "parent", "timestamp", "operation", "application")
        return encode_checksummed_json({name: members[name] for name in (*names, "next_row_id", "blocks")})


def decode_chain_file(data: bytes, where: str) -> HotEntry | RefEntry:
    """Read a file of a chain: a hot entry, or the branch's entry that ends it.

    Raises Unsupported for a kind or change of a newer version, Corrupt for bytes that are not as they were written.
    """
    members = decode_checksummed_json(data, where)
    if (kind := members.get("kind")) in _ENTRY_KINDS:
        return RefEntry.decode(data, where)
    if kind != "hot":
        raise Unsupported(f"{where} is of kind {kind!r}, which this version does not know: upgrade fuse-index")
    try:
        found = convert_members(members, HotEntryMembers)
        blocks = tuple(map(HotBlock.from_members, found.blocks))
        row_id = blocks[0].first_row_id
        for block in blocks:
            if block.first_row_id != row_id:
                raise ValueError(f"block {block.id} begins at row id {block.first_row_id} and not at {row_id}")
            row_id += block.row_count
        if row_id != found.next_row_id:
            raise ValueError(f"next_row_id is {found.next_row_id}, and its rows go to {row_id}")
        return HotEntry(
            found.number,
            found.version,
            found.commit,
            found.parent,
            parse_stored_time(found.timestamp),
            found.operation,
            found.application,
            found.next_row_id,
            blocks,
        )
    except Unsupported as newer:
        raise Unsupported(f"{where}: {newer}") from newer
    except ValueError as problem:
        raise FormatError(f"{where} is no hot entry: {problem}") from problem


def check_follows(entry: HotEntry, number: int, parent: str, version: int, row_id: int, where: str) -> None:
    """Raise Corrupt unless the entry is what must follow a state: the next in number, version and row ids."""
    claimed = (entry.number, entry.parent, entry.version, entry.blocks[0].first_row_id)
    if claimed != (number, parent, version, row_id):
        raise Corrupt(
            f"{where} says that it is number {entry.number}, version {entry.version} after commit {entry.parent}, and "
            f"number {number}, version {version} after commit {parent} must be there: it was copied from elsewhere"
        )


def _bounds_to_json(found: ColumnStatistics) -> dict[str, Any]:
    """Statistics of one unit as JSON holds them; what is unknown or at its default is left out."""
    stored: dict[str, Any] = {}
    for name in ("min", "max"):
        try:
            value = encode_default(getattr(found, name)[0].as_py())
        except (ValueError, OverflowError, SchemaError):
            continue  # such as a day after the year 9999: no text holds it
        if value is not None:
            stored[name] = value
    nulls, nans = found.null_count[0].as_py(), found.nan_count[0].as_py()
    stored |= ({} if nulls is None else {"nulls": nulls}) | ({"nans": nans} if nans else {})
    return stored | {name: True for name in ("min_cut", "max_cut") if getattr(found, name)[0].as_py()}
