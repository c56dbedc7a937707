"""Foreign files as blocks: their footers are read, their columns checked, and segments staged that name them.

No row is read, and nothing is written where the files are. Knows no source.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as is_

from fuse_storage import statistics
from fuse_storage.attach.page_zones import PageZones, group_sizes
from fuse_storage.attach.source_columns import variant_types
from fuse_storage.attach.source_files import UNKNOWABLE, SourceFile
from fuse_storage.commit.schema_evolution import can_widen
from fuse_storage.deletion_vector import write_vectors
from fuse_storage.errors import SchemaError
from fuse_storage.metadata import metadata_table
from fuse_storage.metadata.encoding import utc_now
from fuse_storage.metadata.file_ref import create_file, new_id
from fuse_storage.metadata.segment import (
    BLOCK_SCHEMA,
    MAX_BLOCKS_PER_SEGMENT,
    StagedSegment,
    segment_path,
    zones_path,
)
from fuse_storage.metadata.segment_list import segment_row
from fuse_storage.parquet.footer import Footer
from fuse_storage.parquet.foreign.file import FORMAT_BY_ID, FORMAT_BY_NAME, modified_microseconds
from fuse_storage.parquet.foreign.file_schema import (
    FileColumns,
    TypeWidening,
    file_columns,
    narrower_columns,
    read_file_schema,
    unread_names,
)
from fuse_storage.parquet.foreign.file_statistics import foreign_statistics
from fuse_storage.parquet.foreign.footer import OpenedFile, name_in_footer, physical_names
from fuse_storage.parquet.foreign.thrift_footer import variant_paths
from fuse_storage.parquet.pages import RowMask
from fuse_storage.schema import types
from fuse_storage.schema.schema import Schema
from fuse_storage.statistics import ColumnStatistics
from fuse_storage.store.store import Store

_NAIVE, _IN_UTC = types.SPARK_TYPES_BY_NAME["timestamp_ntz"], types.SPARK_TYPES_BY_NAME["timestamp"]


@dataclass(frozen=True, slots=True)
class StagedFiles:
    """Segments over files, the names in these that are not read, and the ids of columns that some have narrower.

    A name is not read that no column has, or where a path gives the column's value. ``unknown``: why files were left
    out that nobody can know, by their places. ``converted``: names of columns that only readers here read in some file;
    ``shredded``: of VARIANTs that some file holds in parts. ``told_variants``: whether some file has a column of
    Parquet's logical type VARIANT, which readers that do not know it may fail on.
    """

    segments: tuple[StagedSegment, ...]
    unread: frozenset[str]
    narrower: frozenset[int]
    unknown: Mapping[str, str] = field(default_factory=dict)
    converted: frozenset[str] = frozenset()
    shredded: frozenset[str] = frozenset()
    told_variants: bool = False


def reads_as_logged(found: pa.DataType, logged: pa.DataType) -> bool:
    """Whether values of a file are read as the type that a log gives their column.

    They are if it is wider, and a time without a zone is read as one in UTC, as Spark does: writers of Delta left
    out for years that their times are in UTC (delta-rs until 2023).
    """
    return (found == _NAIVE and logged == _IN_UTC) or can_widen(found, logged)


@dataclass(frozen=True, slots=True)
class FileRules:
    """How files become blocks. ``by_id``: columns are found by field ids. ``page_zones``: zones end where pages do.

    ``widens``: whether a file may have a column in one type and the table in another. ``votes_only``: a file that
    cannot be known is left out.
    """

    by_id: bool
    widens: TypeWidening = can_widen
    votes_only: bool = False
    page_zones: bool = False


def stage_source_files(
    store: Store, schema: Schema, rules: FileRules, opened: Sequence[tuple[SourceFile, OpenedFile]]
) -> StagedFiles:
    """Stage segments whose blocks are these files; those without rows that count are left out.

    Raises SchemaError or Unsupported, naming the file, unless the table is for votes only.
    """
    started, staged, unread, narrower, unknown = utc_now(), [], set[str](), set[int](), dict[str, str]()
    converted, shredded, told_variants = set[str](), set[str](), False

    def make(file: SourceFile, each: OpenedFile) -> _BlockUnit | None:
        try:
            return _BlockUnit.of(schema, rules, file, each)
        except UNKNOWABLE as refusal:
            if not rules.votes_only:  # which need not know all files, nor all columns of one
                raise
            unknown[file.location] = str(refusal)
            return None

    found = (make(*pair) for pair in opened if not pair[0].deleted_rows(pair[1].parsed.row_count).all())
    while batch := list(islice(found, MAX_BLOCKS_PER_SEGMENT)):
        units = [unit for unit in batch if unit is not None]
        if not units:
            continue
        _write_vectors(store, units)
        unread |= {name for unit in units for name in unit.unread}
        narrower |= {column_id for unit in units for column_id in unit.narrower}
        converted |= {name for unit in units for name in unit.converted}
        shredded |= {name for unit in units for name in unit.shredded}
        told_variants = told_variants or any(unit.tells_variants for unit in units)
        segment_id = new_id()
        blocks = _block_rows(units, schema)
        segment = create_file(store, segment_path(segment_id), metadata_table.encode_metadata(blocks))
        zones = None
        if any(len(unit.row["zone_rows"]) > 1 for unit in units):  # else the rows of the blocks tell as much
            rows = _zone_rows(units, schema)
            zones = create_file(store, zones_path(segment_id), metadata_table.encode_metadata(rows))
        row = segment_row(segment_id, segment, zones, blocks, schema)
        row_count = sum(unit.row_count for unit in units)
        staged.append(StagedSegment(segment_id, schema.id, row_count, len(units), started, row))
    named = (frozenset(converted), frozenset(shredded))
    return StagedFiles(tuple(staged), frozenset(unread), frozenset(narrower), unknown, *named, told_variants)


@dataclass(frozen=True, slots=True)
class _BlockUnit:
    """One file as a block. ``row``: of ``BLOCK_SCHEMA``. ``groups``: statistics of row groups by column id.

    ``divided``: how row groups are divided into zones. ``deleted``: bool, shape (rows,), True where a row does not
    count.
    """

    row: dict[str, Any]
    groups: Mapping[int, ColumnStatistics]
    divided: PageZones
    unread: frozenset[str]
    narrower: frozenset[int]
    deleted: RowMask
    converted: frozenset[str]
    shredded: frozenset[str]
    tells_variants: bool

    @property
    def row_count(self) -> int:
        return int(self.row["row_count"])

    @staticmethod
    def of(schema: Schema, rules: FileRules, file: SourceFile, opened: OpenedFile) -> _BlockUnit:
        by_id = rules.by_id
        footer = opened.footer(physical_names(schema) if by_id else None)
        found = read_file_schema(footer)
        keys = {each.id if by_id else each.physical_name: each for each in schema.fields}
        columns = file_columns(found, footer, opened.where, rules.votes_only, variant_types(schema.fields))
        columns = _readable(columns, schema, opened.where)
        by_name = {each.physical_name: each.id for each in schema.fields}
        constants: dict[int, Any] = {by_name[name]: None for name in columns.nulls if name in by_name}
        constants |= {keys[key].id: value for key, value in file.constants.items() if key in keys}
        hidden = {*file.constants, *(each.physical_name for each in schema.fields if each.id in constants)}
        constants |= {
            keys[key].id: value
            for key, value in file.absent.items()
            if key in keys and keys[key].physical_name not in found.names
        }
        read = pa.schema([each for each in columns.schema if each.name not in hidden])
        narrower = narrower_columns(read, schema, rules.widens, opened.where)
        counts = [group.row_count for group in opened.parsed.groups]
        divided = PageZones.of_pages(footer) if rules.page_zones else PageZones.of_groups(counts)
        deleted = file.deleted_rows(sum(counts))
        row = {
            "id": new_id(),
            "location": file.location,
            "format": FORMAT_BY_ID if by_id else FORMAT_BY_NAME,
            "row_count": sum(counts),
            "live_rows": sum(counts) - int(np.count_nonzero(deleted)),
            "stats_exact": False,
            "size": file.size,
            "footer_offset": opened.offset,
            "footer_length": len(opened.data),
            "seal": opened.seal,
            "zone_rows": divided.rows.tolist(),
            "zone_sizes": None if (sizes := group_sizes(opened)) is None else divided.sizes(sizes),
            "schema_id": schema.id,
            "level": 0,
            "partition": json.dumps(constants) if constants else None,
            "modified": file.modified if opened.meta is None else modified_microseconds(opened.meta),
            "etag": file.etag if opened.meta is None else opened.meta.etag,
            "source_deletes": file.deletes,
        }
        groups = dict(_group_statistics(schema, footer, found, opened, constants))
        unread = unread_names(columns.schema, schema) | set(found.names).difference(read.names)
        doubles = {each.physical_name for each in schema.fields if is_.is_float64(each.type)}
        converted = columns.converted | {each.name for each in read if is_.is_int64(each.type) and each.name in doubles}
        converted &= by_name.keys() - hidden
        named = (frozenset(unread), frozenset(narrower), deleted, frozenset(converted), columns.shredded - hidden)
        return _BlockUnit(row, groups, divided, *named, bool(variant_paths(footer.schema_bytes)))


def _write_vectors(store: Store, units: Sequence[_BlockUnit]) -> None:
    """Write which rows of these blocks do not count, and say in their rows where."""
    marked = [unit for unit in units if unit.deleted.any()]
    if marked:
        for unit, vector in zip(marked, write_vectors(store, [unit.deleted for unit in marked]), strict=True):
            unit.row["deletion_vector"] = str(vector)


def _readable(columns: FileColumns, schema: Schema, where: str) -> FileColumns:
    """The columns of a file, none of the table's being refused. Raises SchemaError where one is."""
    names = {each.physical_name.lower() for each in schema.fields}
    for name, reason in columns.refused.items():
        if name.lower() in names:
            raise SchemaError(reason if where in reason else f"{where}: {reason}")
    return columns


def _group_statistics(
    schema: Schema, footer: Footer, found: pa.Schema, opened: OpenedFile, constants: Mapping[int, Any]
) -> Iterator[tuple[int, ColumnStatistics]]:
    """Statistics of each column that has any, one unit a row group."""
    groups = opened.parsed.groups
    counts = np.array([group.row_count for group in groups], np.int64)
    numbers = {form.path.decode(): number for number, form in enumerate(footer.forms)}
    physical = {each.id: each.physical_name for top in schema.fields for each in top.walk()}
    old_dates = opened.parsed.old_dates
    for path, leaf in schema.leaves():
        if leaf.id in constants:
            yield leaf.id, ColumnStatistics.constant(types.decode_constant(constants[leaf.id], leaf.type), counts)
            continue
        names = [physical[schema.find(path[: depth + 1]).id] for depth in range(len(path))]
        number, kind = numbers.get(".".join(map(name_in_footer, names))), _type_at(found, names)
        if number is None or kind is None:
            missing = len(names) == 1 and names[0] not in found.names
            null = pa.scalar(None, leaf.type)
            unknown = ColumnStatistics.unknown(leaf.type, len(groups))
            yield leaf.id, ColumnStatistics.constant(null, counts) if missing else unknown
            continue
        if old_dates and (pa.types.is_date(kind) or pa.types.is_timestamp(kind)):
            yield leaf.id, ColumnStatistics.unknown(leaf.type, len(groups))
            continue
        yield leaf.id, foreign_statistics(opened.parsed, number, kind, leaf.type)


def _type_at(found: pa.Schema, names: Sequence[str]) -> pa.DataType | None:
    """The type of a leaf of a file, in the form in which statistics are read; None if there is none."""
    fields = {each.name: each.type for each in found}
    for name in names[:-1]:
        kind = fields.get(name)
        if kind is None or not pa.types.is_struct(kind):
            return None
        fields = {each.name: each.type for each in kind}
    return fields.get(names[-1])


def _block_rows(units: Sequence[_BlockUnit], schema: Schema) -> pa.Table:
    columns = {each.name: pa.array([unit.row.get(each.name) for unit in units], each.type) for each in BLOCK_SCHEMA}
    whole = [
        {
            column_id: statistics.roll_up_statistics(found, np.array([0, len(found)]), unit.divided.group_rows)
            for column_id, found in unit.groups.items()
        }
        for unit in units
    ]
    return pa.table(columns | _statistics_columns(whole, schema))


def _zone_rows(units: Sequence[_BlockUnit], schema: Schema) -> pa.Table:
    rows = pa.array([rows for unit in units for rows in unit.row["zone_rows"]], pa.int64())
    return pa.table(
        {"row_count": rows} | _statistics_columns([unit.divided.divide(unit.groups) for unit in units], schema)
    )


def _statistics_columns(units: Sequence[Mapping[int, ColumnStatistics]], schema: Schema) -> dict[str, pa.Array]:
    columns: dict[str, pa.Array] = {}
    for _, leaf in schema.leaves():
        found = ColumnStatistics.concat([unit[leaf.id] for unit in units])
        columns |= statistics.encode_statistics(leaf.id, found, sparse=True)
    return columns
