"""What tasks have of rows that come, and one write that they are of: written by each, and committed at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Generic, Protocol, TypeVar

import pyarrow as pa

import fuse_storage as storage
from fuse_storage import Schema, StoredTable

_Staged = TypeVar("_Staged")

MAX_HANDED_BYTES = 1 << 20
"""A task with fewer bytes of rows hands them to the committer, in its message."""


@dataclass(frozen=True)
class TaskRows(Generic[_Staged]):
    """What a task has for the commit: few rows as an Arrow stream, or what it wrote, which nobody sees yet. Picklable.

    ``schema``: the table's columns by then. ``warning_texts``: what stood in the way of indexes.
    """

    schema: Schema
    handed: bytes | None = None
    staged: tuple[_Staged, ...] = ()
    warning_texts: tuple[str, ...] = ()


class RowWrite(Protocol[_Staged]):
    """Rows that come to a table, a heap (``HeapWrite``) or one with a primary key (``KeyedWrite``). Picklable."""

    def write(self, batches: Iterable[pa.RecordBatch]) -> TaskRows[_Staged]:
        """In a task: hand few rows over, or write blocks of them. Raises SchemaError, InputError, StorageError."""
        ...

    def commit(self, tasks: Sequence[TaskRows[_Staged]], application: tuple[str, int] | None = None) -> None:
        """Commit what all tasks have. Raises Conflict, CommitUnknown (which says how to ask later), StorageError.

        ``application``: of a stream, its name and the batch, which is committed even without rows.
        """
        ...


def to_stream(rows: pa.Table) -> bytes:
    """Rows as an Arrow stream, as which tasks hand them over."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


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
    return to_stream(pa.concat_tables([storage.conform_rows(batch, table.snapshot.schema) for batch in taken])), iter(
        ()
    )
