"""The tail of a state: the hot blocks that are in no segment, as rows of metadata like those of a segment.

A state after hot commits is a snapshot, so whatever reads snapshots reads it: its blocks are those of the stored
snapshot's segments, then those that it carries along, then those of the hot entries, in their order.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fuse_storage.errors import RESTORE_HINT, Corrupt, FormatError, NotFound, SchemaError, TableUrl
from fuse_storage.hot.entry import CHANGES, DELETE_CHANGE, HotEntry
from fuse_storage.metadata import metadata_table
from fuse_storage.metadata.file_ref import FileRef
from fuse_storage.metadata.refs import Branch
from fuse_storage.metadata.segment import BLOCK_SCHEMA, TailTotals, block_columns, check_block_rows, hot_block_path
from fuse_storage.metadata.segment_list import statistics_columns
from fuse_storage.metadata.snapshot import Snapshot, read_snapshot
from fuse_storage.parquet.footer import FIRST_ZONE_OFFSET
from fuse_storage.schema.schema import Schema
from fuse_storage.schema.types import decode_default
from fuse_storage.statistics import ColumnStatistics, encode_statistics
from fuse_storage.store.abilities import object_meta
from fuse_storage.store.cache import Cache, cache_of
from fuse_storage.store.store import Store

TAIL_SCHEMA = pa.schema(
    [
        *BLOCK_SCHEMA,
        ("change", pa.string()),
        ("commit", pa.int64()),  # the version that added it
        ("committed", pa.timestamp("us", "UTC")),
    ]
)
"""The columns of a tail, besides statistics."""
_NULLS = {field.name: pa.nulls(1, field.type) for field in TAIL_SCHEMA}


_MAX_LOOKED_AT = 1000
"""Entries of a branch that are looked at for a snapshot that is still whole."""


def state_after(state: Snapshot, entry: HotEntry) -> Snapshot:
    """The state that a hot entry makes of the one before. Raises FormatError for statistics that cannot be."""
    rows = hot_block_rows(entry, state)
    totals = state.tail or TailTotals(0, 0, 0, 0, entry.timestamp)
    size = sum(block.size for block in entry.blocks)
    hot_rows = rows if state.hot_rows is None else pa.concat_tables([state.hot_rows, rows])
    return replace(
        state,
        id=entry.commit_id,
        commit_id=entry.commit_id,
        parent=state.id,
        timestamp=entry.timestamp,
        operation=entry.operation,
        stated_version=entry.version,
        applications=dict(state.applications) | (dict([entry.application]) if entry.application else {}),
        summary={"added_rows": entry.row_count, "added_blocks": len(entry.blocks)},
        row_count=state.row_count + entry.row_count,
        block_count=state.block_count + len(entry.blocks),
        bytes=state.bytes + size,
        next_row_id=entry.next_row_id,
        same_rows=False,
        tail=replace(
            totals,
            commits=totals.commits + 1,
            blocks=totals.blocks + len(entry.blocks),
            rows=totals.rows + entry.row_count,
            bytes=totals.bytes + size,
        ),
        base=state.stored,
        chain_length=entry.number,
        hot_rows=hot_rows,
    )


def without_tail(state: Snapshot) -> Snapshot:
    """What a state has in segments, for whoever reads no tail; nothing can be written after it."""
    if (tail := state.tail) is None:
        return replace(state, is_cut=True)
    return replace(
        state,
        row_count=state.row_count - tail.rows,
        block_count=state.block_count - tail.blocks,
        bytes=state.bytes - tail.bytes,
        tail=None,
        hot_rows=None,
        is_cut=True,
    )


def read_tail(store: Store, state: Snapshot, cache: Cache | None = None) -> pa.Table | None:
    """The rows of a state's hot blocks, with statistics in the present types; None if there are none. Kept in memory.

    Raises NotFound where a vacuum collected them, Corrupt or StorageError: these are rows, none can be passed over.
    """
    if state.tail is None:
        return None
    key = ("tail", store.url, state.id, state.schema_id)
    kept = cache_of(store) if cache is None else cache
    return kept.get_or_load(key, lambda: _assemble_tail(store, state, cache), lambda rows: int(rows.nbytes))


def _assemble_tail(store: Store, state: Snapshot, cache: Cache | None) -> pa.Table:
    tail = state.tail
    assert tail is not None
    found = (_read_carried(store, state, cache), state.hot_rows)
    parts = [align_tail(part.combine_chunks(), state.schema) for part in found if part is not None]
    rows = pa.concat_tables([TAIL_SCHEMA.empty_table(), *parts], promote_options="default").combine_chunks()
    if (len(rows), _row_count(rows)) != (tail.blocks, tail.rows):
        raise Corrupt(
            TableUrl(store.url) + f": the tail of {state.id} has {len(rows)} blocks, and should have {tail.blocks}"
        )
    return rows


def tail_times(store: Store, state: Snapshot) -> list[datetime]:
    """When each of the hot blocks was committed (UTC), in the order of the tail. Raises as ``read_tail``."""
    rows = read_tail(store, state)
    return [] if rows is None else [time.astimezone(UTC) for time in rows.column("committed").to_pylist()]


def tail_changes(store: Store, state: Snapshot) -> list[tuple[str, str]]:
    """The ids of the hot blocks and what each does (``CHANGES``), in the order of the tail. Raises as ``read_tail``."""
    if (rows := read_tail(store, state)) is None:
        return []
    return list(zip(rows.column("id").to_pylist(), rows.column("change").to_pylist(), strict=True))


def tail_files(store: Store, state: Snapshot) -> list[FileRef]:
    """The files of the hot blocks, in the order of the tail. Raises as ``read_tail``."""
    if (rows := read_tail(store, state)) is None:
        return []
    parts = (rows.column(name).to_pylist() for name in ("location", "size", "hash"))
    return [FileRef(*values) for values in zip(*parts, strict=True)]


def _read_carried(store: Store, state: Snapshot, cache: Cache | None) -> pa.Table | None:
    """The rows that the stored snapshot carries along."""
    if (carried := state.stored.tail) is None:
        return None
    if carried.reference is None:
        raise Corrupt(
            TableUrl(store.url) + f": snapshot {state.stored.id} has a tail, and does not say where: it is damaged"
        )
    file = metadata_table.MetadataFile(carried.reference, carried.blocks, _check_tail_rows)
    try:
        return metadata_table.read_all_columns(store, file, cache)
    except NotFound as missing:
        raise _missing_tail(store, state.stored, carried) from missing


def _missing_tail(store: Store, stored: Snapshot, carried: TailTotals) -> Corrupt | NotFound:
    """What is said where the list of a tail is missing: damage of a head; of older snapshots a vacuum takes it."""
    branch = Branch(store, stored.branch)
    if branch.find(stored.sequence + 1) is None:
        assert carried.reference is not None
        return Corrupt(
            f"{store.url}/{carried.reference.path}, which lists {carried.rows:,} rows of hot commits, is missing: "
            f"{RESTORE_HINT}"
        )
    nearest = [found for step in (-1, 1) if (found := _nearest_whole(branch, stored.sequence, step)) is not None]
    others = f", or open {' or '.join(nearest)}, which are whole" if nearest else ""
    return NotFound(
        TableUrl(store.url)
        + f": {carried.rows:,} rows of version {stored.version} (snapshot {stored.id}), which were not tiered "
        f"by then, were collected by a vacuum: open it with tail=False for the others{others}"
    )


def _nearest_whole(branch: Branch, sequence: int, step: int) -> str | None:
    """The nearest snapshot before or after an entry whose tail is there, or that has none."""
    for number in range(sequence + step, sequence + step * _MAX_LOOKED_AT, step):
        if number < 1 or (entry := branch.find(number)) is None:
            return None
        with suppress(NotFound, FormatError):
            snapshot = read_snapshot(branch, entry)
            if snapshot.tail is not None and snapshot.tail.reference is not None:
                object_meta(branch.store, snapshot.tail.reference.path)
            return f"version {snapshot.version} (snapshot {snapshot.id})"
    return None


def _check_tail_rows(rows: pa.Table) -> None:
    """Raise ValueError for a list that no writer wrote."""
    check_block_rows(rows)
    for name in ("id", "location", "row_count", "size", "schema_id", "zone_rows", "change", "commit", "committed"):
        if not metadata_table.has_column(rows, name) or rows.column(name).null_count:
            raise ValueError(f"column {name!r} is missing, or has a NULL")
        if rows.schema.field(name).type != TAIL_SCHEMA.field(name).type and name in ("change", "commit", "committed"):
            raise ValueError(f"column {name!r} is of type {rows.schema.field(name).type}")
    if unknown := set(rows.column("change").to_pylist()) - set(CHANGES):
        raise ValueError(f"a block is of change {sorted(unknown)[0]!r}, unknown to this version: upgrade fuse-index")


def align_tail(rows: pa.Table, schema: Schema) -> pa.Table:
    """Give rows the statistics of the columns of a schema, in its types."""
    columns = dict(zip(TAIL_SCHEMA.names[: len(BLOCK_SCHEMA)], block_columns(rows).columns, strict=True))
    columns |= {name: rows.column(name) for name in TAIL_SCHEMA.names[len(BLOCK_SCHEMA) :]}
    return pa.table(columns | statistics_columns(schema, rows))


def blocks_with_rows(tail: pa.Table) -> pa.Table:
    """Keep the blocks of a tail that have rows: the others have keys that are deleted."""
    return tail.filter(pc.not_equal(tail.column("change"), DELETE_CHANGE))


def _row_count(tail: pa.Table) -> int:
    return int(pc.sum(blocks_with_rows(tail).column("row_count")).as_py() or 0)


def tail_totals(rows: pa.Table | None, reference: FileRef | None) -> TailTotals | None:
    """Sums over the rows of a tail; None of none."""
    if rows is None or not len(rows):
        return None
    return TailTotals(
        len(pc.unique(rows.column("committed"))),  # no two commits have one time
        len(rows),
        _row_count(rows),
        pc.sum(rows.column("size")).as_py(),
        pc.min(rows.column("committed")).as_py().astimezone(UTC),
        reference,
    )


def hot_block_rows(entry: HotEntry, state: Snapshot) -> pa.Table:
    """The rows of metadata of an entry's blocks, with statistics in the types of a state. Raises FormatError."""
    parts = []
    for block in entry.blocks:
        if (schema := state.schemas.get(block.schema_id)) is None:
            raise Corrupt(f"hot commit {entry.commit_id} has a block of schema {block.schema_id}, which there is not")
        if not block.is_for(state):
            raise Corrupt(f"hot commit {entry.commit_id} has a block of change {block.change!r}: it is another table's")
        zone_sizes = [block.footer_offset - FIRST_ZONE_OFFSET] if len(block.zone_rows) == 1 else None
        known: dict[str, Any] = {
            "id": block.id,
            "location": hot_block_path(block.id),
            "format": "parquet",
            "row_count": block.row_count,
            "live_rows": block.row_count,
            "stats_exact": True,
            "size": block.size,
            "hash": block.hash,
            "footer_offset": block.footer_offset,
            "footer_length": block.footer_length,
            "seal": block.seal,
            "zone_rows": list(block.zone_rows),
            "zone_sizes": zone_sizes,
            "schema_id": block.schema_id,
            "first_row_id": block.first_row_id,
            "added_by": entry.version,
            "level": 0,
            "change": block.change,
            "commit": entry.version,
            "committed": entry.timestamp,
        }
        columns = {
            field.name: pa.array([known[field.name]], field.type) if field.name in known else _NULLS[field.name]
            for field in TAIL_SCHEMA
        }
        for _, field in schema.leaves():
            found = _decode_bounds(block.columns.get(str(field.id), {}), field.type, entry)
            columns |= encode_statistics(field.id, found)
        rows = pa.table(columns)
        parts.append(rows if schema is state.schema else align_tail(rows, state.schema))  # which takes half of the time
    return pa.concat_tables(parts)


def _decode_bounds(found: Any, data_type: pa.DataType, entry: HotEntry) -> ColumnStatistics:
    """Statistics of one unit, as an entry says them. Raises FormatError for what no writer wrote."""
    try:
        low, high = (pa.array([decode_default(found.get(name), data_type)], data_type) for name in ("min", "max"))
        cut = [pa.array([found.get(name, False)], pa.bool_()) for name in ("min_cut", "max_cut")]
        nulls = pa.array([found.get("nulls")], pa.int64())
        nans = pa.array([found.get("nans", 0)], pa.int64())
        if min(found.get("nulls") or 0, found.get("nans") or 0) < 0:
            raise ValueError("a count is below 0")
    except (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, pa.ArrowException) as problem:
        raise FormatError(f"hot commit {entry.commit_id} has statistics that cannot be: {found!r}") from problem
    except SchemaError as problem:
        raise FormatError(f"hot commit {entry.commit_id} has statistics that cannot be: {problem}") from problem
    unknown = pa.nulls(1, pa.int64())
    return ColumnStatistics(low, high, cut[0], cut[1], nulls, nans, unknown, unknown)
