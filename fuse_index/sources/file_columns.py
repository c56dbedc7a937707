"""The columns of a source of which only its files say which there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pyarrow as pa

from fuse_index.sources.source import SourceState
from fuse_storage import (
    UNKNOWABLE,
    OpenedFile,
    SchemaError,
    Snapshot,
    SourceColumn,
    SourceFile,
    can_widen,
    merge_file_schemas,
    plain_source_columns,
    read_file_schema,
    storable_schema,
    votable_schema,
)

OpenedFiles = Sequence[tuple[SourceFile, OpenedFile]]


def columns_of_files(before: Snapshot | None, state: SourceState, files: OpenedFiles) -> tuple[SourceColumn, ...]:
    """The columns of a table's kept files, if there are any, and of these. Raises SchemaError, Unsupported."""
    found: dict[str, pa.Schema] = {} if before is None else {"the table": _kept_columns(before, state)}
    for file, each in files:
        footer = each.footer()
        found[file.location] = _without_partitions(storable_schema(read_file_schema(footer), footer, each.where), state)
    return plain_source_columns([*merge_file_schemas(found, can_widen), *state.partitions])


def votable_columns_of_files(
    before: Snapshot | None, state: SourceState, files: OpenedFiles
) -> tuple[tuple[SourceColumn, ...], Mapping[str, str]]:
    """The columns that can be voted on, and why not on each other one, by its name.

    A column that most files have otherwise has no votes. Columns that were there before stay, whatever a file has under
    their names: such a file is not known then. Nor does a column come whose name older files have: all would have to be
    looked into again, at each sync.
    """
    known = {} if before is None else {each.name: each for each in _kept_columns(before, state)}
    unread = set() if before is None or before.source is None else set(before.source["unread"])
    merged, refused, counts = dict(known), dict[str, str](), Counter[str]()
    for (schema, refusals), count in _votable_schemas(files).items():
        for name, reason in refusals:
            refused[name], counts[name] = reason, counts[name] - count
        for each in _without_partitions(schema, state):
            counts[each.name] += count
            both = {"others": pa.schema([merged.get(each.name, each)]), "a file": pa.schema([each])}
            try:
                merged[each.name] = merge_file_schemas(both, can_widen).field(0)
            except SchemaError:
                conflict = "files have it in types of which none holds the values of the others"
                refused[each.name], counts[each.name] = conflict, -len(files)
    stay = {*known, *state.partitions.names, *(name for name in merged if counts[name] > 0)}
    lower = Counter(name.lower() for name in stay)
    for name in merged:
        if name in unread and name not in known:
            refused[name], counts[name] = "older files have it, and were not asked for it", -len(files)
        if lower[name.lower()] > 1:
            refused[name], counts[name] = "its name differs from another only in case", -len(files)
    refused = {name: reason for name, reason in refused.items() if counts[name] <= 0 and name not in known}
    kept = [each for name, each in merged.items() if name not in refused]
    return plain_source_columns([*kept, *state.partitions]), refused


def _votable_schemas(files: OpenedFiles) -> Mapping[tuple[pa.Schema, tuple[tuple[str, str], ...]], int]:
    """What can be voted on of a file, with what cannot and why, and in how many files it is so."""
    found = Counter[tuple[pa.Schema, tuple[tuple[str, str], ...]]]()
    for _, each in files:
        try:
            footer = each.footer()
            schema, refused = votable_schema(read_file_schema(footer), footer)
        except UNKNOWABLE:
            continue
        found[schema, tuple(refused.items())] += 1
    return found


def _without_partitions(schema: pa.Schema, state: SourceState) -> pa.Schema:
    return pa.schema([each for each in schema if each.name not in state.partitions.names])


def _kept_columns(before: Snapshot, state: SourceState) -> pa.Schema:
    return _without_partitions(pa.schema([_plain(each) for each in before.schema.parquet_schema]), state)


def _plain(field: pa.Field) -> pa.Field:
    """A column as ``storable_schema`` gives it: all of it nullable, and without ids."""
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_plain(part) for part in kind])
    elif pa.types.is_map(kind):
        kind = pa.map_(_plain(kind.key_field).type, _plain(kind.item_field).type)
    elif pa.types.is_list(kind):
        kind = pa.list_(_plain(kind.value_field.with_name("element")))
    return pa.field(field.name, kind)
