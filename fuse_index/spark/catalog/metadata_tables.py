"""What there is to see of a table, as tables of the catalogue: ``db.t.snapshots``, ``db.t.blocks`` and so on.

In: an open table and options. Out: rows, as an Arrow stream that ``LocalRows.java`` reads.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from contextlib import suppress

import pyarrow as pa

from fuse_index.errors import InputError
from fuse_index.table.table import Table
from fuse_index.table.views import METADATA_VIEWS
from fuse_storage import NotFound

_CHANGES = "changes"
METADATA_TABLES = (*METADATA_VIEWS, _CHANGES)
"""The names of all such tables."""

_MAX_CHANGES = 1_000_000
"""Rows of changes: they travel inside of Spark's plan, through the driver."""
_CHANGES_OPTIONS = ("since", "until", "key")


def metadata_rows(table: Table, view: str, options: Mapping[str, str]) -> pa.Table:
    """The rows of a view. Raises InputError for an option that it does not have, and as what it shows does."""
    known = _CHANGES_OPTIONS if view == _CHANGES else ()
    for name in options:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known) or 'none'}"
            raise InputError(f"{view} has no option {name!r}: {hint}")
    return _changes(table, options) if view == _CHANGES else METADATA_VIEWS[view](table)


def to_arrow_stream(rows: pa.Table) -> bytes:
    """Rows as one Arrow stream, of at least one batch: Spark takes the schema from there."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        for batch in rows.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], rows.schema)]:
            writer.write_batch(batch)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _changes(table: Table, options: Mapping[str, str]) -> pa.Table:
    """The net changes since a snapshot, tag or time: by default since the first snapshot that there is."""
    since = options.get("since")
    if since is None:
        since = _first_kept(table)
    key = None if "key" not in options else [name.strip() for name in options["key"].split(",") if name.strip()]
    changes = table.changes(since, options.get("until"), key=key)
    batches, count = [], 0
    for batch in changes.to_batches():
        batches.append(batch)
        count += batch.num_rows
        if count > _MAX_CHANGES:
            raise InputError(
                f"there are more than {_MAX_CHANGES:,} changes: give since, or read them by "
                f"spark.read.format('fuse').option('read_changes', 'true').option('since', …)"
            )
    return pa.Table.from_batches(batches, changes.schema)


def _first_kept(table: Table) -> str:
    """The id of the oldest snapshot whose file is there: a process remembers those that it read, and were collected."""
    for _, snapshot in reversed(table.stored.snapshots()):
        if snapshot is not None:
            with suppress(NotFound):
                return table.stored.at(snapshot.id).snapshot.id
    return table.snapshot.id
