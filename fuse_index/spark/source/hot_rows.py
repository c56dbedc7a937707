"""Rows of small tasks, which the committer makes one hot commit of, where a table allows it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import pyarrow as pa

import fuse_storage as storage
from fuse_index.hot.append import commit_hot
from fuse_index.indexes.builder import IndexBuilder
from fuse_index.indexes.registry import Host
from fuse_index.operations.row_edits import stage_rows
from fuse_storage import StagedSegment, StoredTable

MAX_HANDED_BYTES = 1 << 20
"""A task with fewer bytes of rows hands them to the committer, in its message."""


def take_few(
    batches: Iterable[pa.RecordBatch], table: StoredTable, limit: int
) -> tuple[bytes | None, Iterator[pa.RecordBatch]]:
    """All rows of a task as an Arrow stream, if they are few; else None. And the batches, as far as they are not in it.

    ``limit``: of the rows of a hot commit; 0 for none. Raises SchemaError.
    """
    remaining = iter(batches)
    if not limit:
        return None, remaining
    taken, rows, size = list[pa.RecordBatch](), 0, 0
    for batch in remaining:
        taken.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows > limit or size > MAX_HANDED_BYTES:
            return None, chain(taken, remaining)
    if not rows:
        return None, iter(())
    table_rows = pa.concat_tables([storage.conform_rows(batch, table.snapshot.schema) for batch in taken])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table_rows.schema) as stream:
        stream.write_table(table_rows)
    return sink.getvalue().to_pybytes(), iter(())


def commit_few(
    table: StoredTable,
    host: Host,
    handed: Sequence[bytes],
    limit: int,
    application: tuple[str, int] | None = None,
) -> StoredTable | None:
    """Commit what tasks handed over by one hot commit; None if it is too much for one. Raises as ``commit_hot``."""
    rows = pa.concat_tables([pa.ipc.open_stream(data).read_all() for data in handed])
    if len(rows) > limit:
        return None
    return commit_hot(table, host, rows, application)[0]


def stage_handed(table: StoredTable, builders: Sequence[IndexBuilder], handed: Sequence[bytes]) -> list[StagedSegment]:
    """Write what tasks handed over as they would have, for an ordinary commit."""
    batches = (batch for data in handed for batch in pa.ipc.open_stream(data))
    return stage_rows(table, tuple(builders), batches) if handed else []
