"""The columns of a source of which only its files say which there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from fuse_index.sources.source import ChosenColumns, SourceState
from fuse_storage import (
    UNKNOWABLE,
    VARIANT,
    WITHOUT_SHREDDING_HINT,
    FileColumns,
    OpenedFile,
    SchemaError,
    Snapshot,
    SourceChoice,
    SourceFile,
    SourceVersion,
    can_widen,
    file_columns,
    holds_variant,
    is_variant,
    merge_file_schemas,
    plain_source_columns,
    read_file_schema,
    told_variants,
    variant_types,
)

OpenedFiles = Sequence[tuple[SourceFile, OpenedFile]]


def columns_of_files(
    before: Snapshot | None, state: SourceState, files: OpenedFiles, choice: SourceChoice
) -> ChosenColumns:
    """The columns of a table's kept files, if there are any, and of these.

    A column without a type, and with NULL in every row, is one of texts unless another file says better. Raises
    SchemaError for columns of two types, and for one that the table has and a file holds as nobody reads it.
    """
    about = None if before is None else SourceVersion.of(before)
    nulls = dict.fromkeys(() if about is None else about.untyped)
    found = {} if before is None else {"the table": _without(_kept_columns(before, state), nulls)}
    structs = {each.name for each in found.get("the table", ()) if not is_variant(each.type)}
    known = set(found["the table"].names) if found else set[str]()
    refused, names = {} if about is None else dict(about.left_out), dict[str, None]()
    for file, each in files:
        columns = _file_columns(each, structs)
        names |= dict.fromkeys((*columns.schema.names, *sorted(columns.nulls)))
        columns = _chosen(columns, choice)
        found[file.location] = _without_partitions(columns.schema, state)
        refused |= {name: reason for name, reason in columns.refused.items() if name not in state.partitions.names}
        nulls |= dict.fromkeys(sorted(columns.nulls.difference(state.partitions.names)))
    if lost := min(known & refused.keys(), default=None):
        raise SchemaError(f"{refused[lost]}; the table has column {lost!r}")
    merged = merge_file_schemas(
        {where: _without(schema, refused) for where, schema in found.items()},
        widens_to_doubles if choice.widen else can_widen,
    )
    untyped = tuple(name for name in nulls if name not in (*merged.names, *refused))
    fields = [*merged, *(pa.field(name, pa.string()) for name in untyped), *state.partitions]
    names |= dict.fromkeys(state.partitions.names)
    return ChosenColumns(plain_source_columns(fields), refused, untyped, tuple(names))


def without_unreadable(found: ChosenColumns, files: OpenedFiles, before: Snapshot | None = None) -> ChosenColumns:
    """The columns without each of VARIANT, or with one in it, that a file holds as nobody reads it, or was left out.

    A column that the table has stays, so that a file which has it so is an error.
    """
    known = set() if before is None else {each.physical_name for each in before.schema.fields}
    told = {} if before is None or before.source is None else SourceVersion.of(before).left_out
    new = [each for each in found.columns if holds_variant(each.type) and each.physical_name not in known]
    refused = {each.name: told[each.name] for each in new if told.get(each.name, "").endswith(WITHOUT_SHREDDING_HINT)}
    if new := [each for each in new if each.name not in refused]:
        names, types = {each.physical_name: each.name for each in new}, variant_types(new)
        for _, file in files:
            footer = file.footer()
            columns = file_columns(read_file_schema(footer), footer, file.where, variants=types)
            refused |= {names[name]: reason for name, reason in columns.refused.items() if name in names}
    if not refused:
        return found
    kept = tuple(each for each in found.columns if each.name not in refused)
    return replace(found, columns=kept, left_out={**found.left_out, **refused})


def _file_columns(opened: OpenedFile, others: Container[str]) -> FileColumns:
    """The columns of a file. ``others``: names of columns that are no VARIANT, though the file may say they are."""
    footer = opened.footer()
    told = told_variants(footer, opened.parsed.spark_schema)
    variants = {name: VARIANT for name in told if name not in others}
    found = file_columns(read_file_schema(footer), footer, opened.where, variants=variants)
    finer = {name for name in found.converted if opened.has_finer_times(name)}
    reason = "has times finer than microseconds, which would be lost: write it in microseconds at the source"
    refused = {**found.refused} | {name: f"{opened.where}: column {name!r} {reason}" for name in finer}
    return replace(found, schema=_without(found.schema, finer), refused=refused)


def _chosen(columns: FileColumns, choice: SourceChoice) -> FileColumns:
    """The columns of a file that are wanted."""
    if (wanted := choice.columns) is None:
        return columns
    schema = pa.schema([each for each in columns.schema if each.name in wanted])
    refused = {name: reason for name, reason in columns.refused.items() if name in wanted}
    return replace(columns, schema=schema, refused=refused, nulls=columns.nulls & set(wanted))


def _without(schema: pa.Schema, names: Container[str]) -> pa.Schema:
    return pa.schema([each for each in schema if each.name not in names])


def widens_to_doubles(old: pa.DataType, new: pa.DataType) -> bool:
    """Whether readers widen values of the one type to the other, where whole numbers may become doubles."""
    return can_widen(old, new) or (pa.types.is_int64(old) and pa.types.is_float64(new))


def votable_columns_of_files(before: Snapshot | None, state: SourceState, files: OpenedFiles) -> ChosenColumns:
    """The columns that can be voted on.

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
    return ChosenColumns(plain_source_columns([*kept, *state.partitions]), refused)


def _votable_schemas(files: OpenedFiles) -> Mapping[tuple[pa.Schema, tuple[tuple[str, str], ...]], int]:
    """What can be voted on of a file, with what cannot and why, and in how many files it is so."""
    found = Counter[tuple[pa.Schema, tuple[tuple[str, str], ...]]]()
    for _, each in files:
        try:
            footer = each.footer()
            columns = file_columns(read_file_schema(footer), footer, "a file", votes_only=True)
        except UNKNOWABLE:
            continue
        found[columns.schema, tuple(columns.refused.items())] += 1
    return found


def _without_partitions(schema: pa.Schema, state: SourceState) -> pa.Schema:
    return pa.schema([each for each in schema if each.name not in state.partitions.names])


def _kept_columns(before: Snapshot, state: SourceState) -> pa.Schema:
    columns = [
        pa.field(each.physical_name, VARIANT) if is_variant(each.type) else _plain(each.parquet_field)
        for each in before.schema.fields
    ]
    return _without_partitions(pa.schema(columns), state)


def _plain(field: pa.Field) -> pa.Field:
    """A column as ``file_columns`` gives it: all of it nullable, and without ids."""
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_plain(part) for part in kind])
    elif pa.types.is_map(kind):
        kind = pa.map_(_plain(kind.key_field).type, _plain(kind.item_field).type)
    elif pa.types.is_list(kind):
        kind = pa.list_(_plain(kind.value_field.with_name("element")))
    return pa.field(field.name, kind)
