"""Small tables, and a small index, for the tests of the storage room."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fuse_storage import (
    ObjectMeta,
    Pack,
    Sidecar,
    SidecarBuilder,
    StagedSegment,
    StagedSidecars,
    StoredTable,
    read_live_rows,
)
from fuse_storage.commit.head import write_snapshot
from fuse_storage.metadata.refs import Branch
from fuse_storage.schema.schema import Schema

INDEX = {"key": "70a1", "kind": "totals"}
"""The definition of ``Totals``."""
COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string())])


@dataclass(frozen=True)
class Totals:
    """An index that knows the sum of each block's ids, and has the ids themselves as payload."""

    key: str = "70a1"
    version: int = 1
    unable: frozenset[int] = frozenset()
    columns: Sequence[str] = ("id",)
    summary_type: Any = pa.int64()  # noqa: RUF009 - a type is a constant
    roll_up_type: Any = pa.int64()  # noqa: RUF009

    def build(self, rows: pa.Table, zones: npt.NDArray[np.int64]) -> Sidecar | None:
        ids = rows.column("id").to_pylist()
        assert zones[0] == 0
        assert zones[-1] == len(ids)
        return None if self.unable.intersection(ids) else Sidecar(sum(ids), repr(ids).encode())

    def pack(self, sidecars: Sequence[Sidecar]) -> Pack | None:
        return Pack.concatenate(sidecars, 32)

    def roll_up(self, summaries: pa.Array) -> pa.Scalar | None:
        return pc.sum(summaries) if summaries.null_count == 0 else None


class Aged:
    """A store that says of all files it held when ``age`` was called that they are three days old.

    Entries of branches are as old as they are: by them a vacuum tells when a snapshot was replaced.
    """

    def __init__(self, store: Any) -> None:
        self.within, self.old = store, set[str]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.within, name)

    def age(self) -> None:
        self.old |= {found.key for found in self.within.list() if not found.key.startswith("_refs/branch/")}

    def list(self, prefix: str = "") -> Iterator[ObjectMeta]:
        for found in self.within.list(prefix):
            yield replace(found, modified=found.modified - timedelta(days=3)) if found.key in self.old else found


def rows(ids: Sequence[int]) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "name": pa.array([f"n{row_id}" for row_id in ids], pa.string())})


def staged(
    table: StoredTable, ids: Sequence[int], builders: Sequence[SidecarBuilder] = (), **limits: int
) -> list[StagedSegment]:
    with table.writer(builders, **limits) as writer:
        writer.write(rows(ids))
        return writer.finish()


def append(table: StoredTable, *ids: int, builders: Sequence[SidecarBuilder] = (), **limits: int) -> StoredTable:
    """Commit these rows, however long others win the race: how fast a machine is decides no test."""
    return table.transaction(builders).append(staged(table, ids, builders, **limits)).commit(timeout=math.inf)


def ids_of(table: StoredTable) -> list[int]:
    blocks = table.blocks()
    return [
        row_id
        for block in range(len(blocks))
        for row_id in read_live_rows(table, blocks, block, ["id"]).column("id").to_pylist()
    ]


def blocks_of(table: StoredTable) -> list[tuple[str, list[int]]]:
    """Each block, and the ids in it."""
    blocks = table.blocks()
    return [
        (row_id, read_live_rows(table, blocks, place, ["id"]).column("id").to_pylist())
        for place, row_id in enumerate(blocks.ids)
    ]


def build_missing(table: StoredTable, builder: SidecarBuilder) -> dict[str, StagedSidecars]:
    """What a refresh builds: sidecars of the blocks that have none."""
    blocks, segments = table.blocks(), table.segments()
    known = blocks.sidecars(builder.key)
    writer = table.sidecar_writer(builder)
    for number, row_id in enumerate(segments.ids):
        if segments.block_offsets[number] >= segments.base_block_count:
            break  # the tail is in no segment
        for block in range(segments.block_offsets[number], segments.block_offsets[number + 1]):
            if known is not None and known.indexed[block]:
                writer.add(None)
            else:
                found = table.read_block(blocks, block, builder.columns)
                writer.add(builder.build(found, np.array([0, len(found)])))
        writer.end_segment(row_id)
    return {staged.segment: staged for staged in writer.finish()}


def known_by(table: StoredTable, key: str) -> list[tuple[int | None, bytes | None]]:
    """Summary and payload of each block."""
    found = table.blocks().sidecars(key)
    if found is None:
        return [(None, None)] * len(table.blocks())
    payloads = [found.payload(block) for block in range(len(found))]
    texts = [None if payload is None else payload.read([(0, payload.size)])[0] for payload in payloads]
    return list(zip(found.summaries.to_pylist(), texts, strict=True))


def truth(table: StoredTable) -> list[tuple[int | None, bytes | None]]:
    """What ``Totals`` must know of each block."""
    blocks = table.blocks()
    ids = [table.read_block(blocks, block, ["id"]).column("id").to_pylist() for block in range(len(blocks))]
    return [(sum(some), repr(some).encode()) for some in ids]


def indexed(table: StoredTable) -> StoredTable:
    """Define the index, and build it."""
    return (
        table.transaction([Totals()])
        .add_index("totals", INDEX)
        .attach_sidecars("70a1", build_missing(table, Totals()))
        .commit()
    )


def evolved(table: StoredTable, **changes: Any) -> StoredTable:
    """The table after a commit that changed its first column, as later versions will make them."""
    now = table.snapshot
    fields = (replace(now.schema.fields[0], **changes), *now.schema.fields[1:])
    later = now.timestamp + timedelta(seconds=1)
    after = replace(
        now,
        id="e" * 32,
        sequence=now.sequence + 1,
        commit_id="f" * 32,
        parent=now.id,
        timestamp=later,
        operation="alter",
        schema_id=1,
        schemas={0: now.schema, 1: Schema(1, fields)},
    )
    entry = write_snapshot(table.store, after, table.entry)
    Branch(table.store, "main").create(entry)
    return table.refresh()
