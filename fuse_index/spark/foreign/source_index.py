"""A table that votes on files of its source, described for the JVM: the files that it knows, and its columns."""

from __future__ import annotations

from collections import Counter

from fuse_index.spark.native.relation import NativeScan
from fuse_index.spark.native.snapshot_planner import INDEXED_MODE, state_key
from fuse_index.spark.protocol.replies import Framed, SourceIndexDescription, VotedColumn
from fuse_storage import Field, SourceVersion, StoredTable, live_row_masks

FILES_MAY_CHANGE = ("parquet",)
"""Formats of sources in which a file may be written anew under the same path: a log names files that never change."""


def describe_source_index(table: StoredTable, callback_key: str, file_listing: bytes) -> Framed:
    """Describe an attached table as ``SourceIndex.java`` reads it.

    ``callback_key``: of the session that is asked for votes. ``file_listing``: what ``pack_file_listing`` gives of the
    table's files. Raises InvalidArgument for a table that was attached to nothing.
    """
    source, blocks = SourceVersion.of(table.snapshot), table.blocks()
    constant_ids = frozenset(column_id for each in blocks.foreign.constants for column_id in each)
    by_id = source.format == "iceberg"  # whose log gives values of columns; a path may, or a file may hold its own
    scan = NativeScan(
        callback_key,
        table.store.url,
        "",
        INDEXED_MODE,
        state_key(table),
        file_listing,
        table.snapshot.schema,
        constant_ids=constant_ids,
        by_field_id=by_id,
        has_foreign_files=True,
    )
    voted = [field for field in _columns_as_in_files(table) if by_id or field.id not in constant_ids]
    description = SourceIndexDescription(
        scan=scan.describe(),
        source=source.url,
        by_time=source.format in FILES_MAY_CHANGE,
        columns=[VotedColumn(field.name, field.id) for field in voted],
        # Rows that were deleted here are still the source's: votes know nothing of them.
        changed=sorted(live_row_masks(blocks)),
    )
    return Framed(description, file_listing)


def _columns_as_in_files(table: StoredTable) -> list[Field]:
    """The columns that are in files what the source's reader takes them for.

    A column with a default was added here. Of names that differ by case alone a reader may take one for the other, in a
    file that lacks the one.
    """
    fields = table.snapshot.schema.fields
    unread = () if table.snapshot.source is None else table.snapshot.source["unread"]
    names = Counter(name.lower() for name in (*(each.physical_name for each in fields), *unread))
    return [each for each in fields if each.initial_default is None and names[each.physical_name.lower()] == 1]
