"""A snapshot as an Iceberg table: its metadata and manifests beside ours, over the same Parquet files.

Blocks have the ids of their columns as Iceberg has them, so that columns may have been renamed, moved, added and
dropped. PyIceberg writes what is written, and is needed for that alone.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from secrets import randbits
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

import pyarrow as pa
import pyarrow.types as is_

from fuse_index.errors import InputError
from fuse_index.export.live_files import LiveFiles, has_plain_bounds
from fuse_storage import AlreadyExists, Conflict, Field, Store, StoredTable

if TYPE_CHECKING:
    from pyiceberg.schema import Schema as IcebergSchema

_FOLDER = "metadata"
_METADATA_FILE = re.compile(rf"{_FOLDER}/v(\d+)\.metadata\.json")
_SNAPSHOT_PROPERTY = "fuse-index.snapshot"
_COMPRESSION: Literal["deflate"] = "deflate"
_ENTRIES_TOGETHER = 1000
"""Entries of a manifest that are compressed together."""


def export_iceberg(table: StoredTable) -> str:
    """Write Iceberg's metadata of this snapshot, unless the last does; give its URL.

    Raises InputError where PyIceberg is not installed, SchemaError for what Iceberg cannot say, Conflict for metadata
    that is not ours.
    """
    try:
        from pyiceberg.table.metadata import TableMetadataUtil, TableMetadataV2
    except ImportError as missing:
        raise InputError("export_iceberg needs PyIceberg: pip install pyiceberg") from missing
    files = LiveFiles(table)
    files.check("Iceberg", _widens)
    version, before = _latest(table.store)
    former = None if before is None else TableMetadataUtil.parse_raw(before.decode())
    if former is not None:
        if _SNAPSHOT_PROPERTY not in former.properties:
            raise Conflict(f"{files.root}/{_FOLDER} has Iceberg metadata that is not of exports only: export a clone")
        if former.properties[_SNAPSHOT_PROPERTY] == table.snapshot.id:
            return f"{files.root}/{_FOLDER}/v{version}.metadata.json"
    sequence, snapshot_id = version + 1, randbits(62)
    schema, now = _schema(table), int(table.snapshot.timestamp.timestamp() * 1000)
    manifest_list = _write_manifests(files, schema, snapshot_id, sequence)
    metadata = TableMetadataV2.model_validate(
        {
            "format-version": 2,
            "table-uuid": str(uuid4() if former is None else former.table_uuid),
            "location": files.root,
            "last-sequence-number": sequence,
            "last-updated-ms": now,
            "last-column-id": table.snapshot.last_column_id,
            "schemas": [schema.model_dump()],
            "current-schema-id": schema.schema_id,
            "partition-specs": [{"spec-id": 0, "fields": []}],
            "default-spec-id": 0,
            "last-partition-id": 999,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "default-sort-order-id": 0,
            "properties": {_SNAPSHOT_PROPERTY: table.snapshot.id},
            "current-snapshot-id": snapshot_id,
            "snapshots": [
                {
                    "snapshot-id": snapshot_id,
                    "sequence-number": sequence,
                    "timestamp-ms": now,
                    "manifest-list": manifest_list,
                    "summary": {"operation": "append", "total-records": str(table.snapshot.row_count)},
                    "schema-id": schema.schema_id,
                }
            ],
            "snapshot-log": [{"snapshot-id": snapshot_id, "timestamp-ms": now}],
            "refs": {"main": {"snapshot-id": snapshot_id, "type": "branch"}},
        }
    )
    key = f"{_FOLDER}/v{sequence}.metadata.json"
    try:
        table.store.create(key, metadata.model_dump_json().encode())
    except AlreadyExists as other:
        raise Conflict(f"{files.root}/{key} was just written by somebody else: try again") from other
    table.store.create(f"{_FOLDER}/version-hint.text", str(sequence).encode(), overwrite=True)
    return f"{files.root}/{key}"


def _latest(store: Store) -> tuple[int, bytes | None]:
    """The number of the latest metadata and what it says; 0 if there is none."""
    keys = {int(match[1]): entry.key for entry in store.list(_FOLDER) if (match := _METADATA_FILE.fullmatch(entry.key))}
    return (max(keys), store.read(keys[max(keys)])) if keys else (0, None)


def _widens(before: pa.DataType, now: pa.DataType) -> bool:
    """Whether Iceberg reads values of the one type as the other, with what it calls both."""
    if is_.is_decimal(before) and is_.is_decimal(now):
        return bool(before.scale == now.scale and before.precision <= now.precision)
    return bool(
        (is_.is_integer(before) and is_.is_integer(now) and before.bit_width < now.bit_width)
        or (is_.is_float32(before) and is_.is_float64(now))
    )


def _schema(table: StoredTable) -> IcebergSchema:
    from pyiceberg.schema import Schema

    fields = [_field(part) for part in table.snapshot.schema.fields]
    return Schema(*fields, schema_id=table.snapshot.schema.id, identifier_field_ids=[])


def _field(part: Field) -> Any:
    from pyiceberg.types import NestedField

    return NestedField(
        field_id=part.id, name=part.name, field_type=_type(part), required=not part.nullable, doc=part.comment
    )


def _type(part: Field) -> Any:
    from pyiceberg import types

    if is_.is_decimal(part.type):
        return types.DecimalType(part.type.precision, part.type.scale)
    if is_.is_struct(part.type):
        return types.StructType(*map(_field, part.children))
    if is_.is_map(part.type):
        key, value = part.children
        return types.MapType(key.id, _type(key), value.id, _type(value), value_required=not value.nullable)
    if is_.is_list(part.type):
        (element,) = part.children
        return types.ListType(element.id, _type(element), element_required=not element.nullable)
    if is_.is_timestamp(part.type):
        return types.TimestampType() if part.type.tz is None else types.TimestamptzType()
    if is_.is_integer(part.type):
        return types.LongType() if is_.is_int64(part.type) else types.IntegerType()
    plain = {
        pa.bool_(): types.BooleanType,
        pa.float32(): types.FloatType,
        pa.float64(): types.DoubleType,
        pa.string(): types.StringType,
        pa.binary(): types.BinaryType,
        pa.date32(): types.DateType,
    }
    return plain[part.type]()


def _write_manifests(files: LiveFiles, schema: IcebergSchema, snapshot_id: int, sequence: int) -> str:
    """Write the manifest of all files, and the list of it; give the list's URL."""
    from pyiceberg.manifest import write_manifest_list

    store = files.table.store
    # a manifest of no file cannot be
    manifest_files = [_write_manifest(files, schema, snapshot_id)] if files.urls else []
    list_file = _store_file(store, files.root, f"{_FOLDER}/snap-{snapshot_id}-{uuid4()}.avro")
    with write_manifest_list(2, list_file, snapshot_id, None, sequence, _COMPRESSION) as manifests:
        manifests.add_manifests(manifest_files)
    return str(list_file.location)


def _write_manifest(files: LiveFiles, schema: IcebergSchema, snapshot_id: int) -> Any:
    """Write the manifest of all files, and describe it as lists of manifests do."""
    from pyiceberg.manifest import (
        UNASSIGNED_SEQ,
        ManifestContent,
        ManifestEntry,
        ManifestEntryStatus,
        ManifestFile,
        write_manifest,
    )
    from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC as NO_PARTITIONS

    file = _store_file(files.table.store, files.root, f"{_FOLDER}/{uuid4()}-m0.avro")
    data_files = _data_files(files)
    # Its add_entry compresses each entry by itself, which takes longer than all else.
    with write_manifest(2, NO_PARTITIONS, schema, file, snapshot_id, _COMPRESSION).new_writer() as manifest:
        for first in range(0, len(data_files), _ENTRIES_TOGETHER):
            manifest.write_block(
                [
                    ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=snapshot_id, data_file=each)
                    for each in data_files[first : first + _ENTRIES_TOGETHER]
                ]
            )
    return ManifestFile.from_args(
        manifest_path=file.location,
        manifest_length=len(file),
        partition_spec_id=NO_PARTITIONS.spec_id,
        content=ManifestContent.DATA,
        sequence_number=UNASSIGNED_SEQ,
        min_sequence_number=UNASSIGNED_SEQ,
        added_snapshot_id=snapshot_id,
        added_files_count=len(data_files),
        existing_files_count=0,
        deleted_files_count=0,
        added_rows_count=sum(files.row_counts),
        existing_rows_count=0,
        deleted_rows_count=0,
        partitions=[],
        key_metadata=None,
    )


def _data_files(files: LiveFiles) -> Sequence[Any]:
    from pyiceberg.conversions import to_bytes
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    columns = {field.id: field for field in files.table.snapshot.schema.fields}
    nulls = {column_id: each.null_count.to_pylist() for column_id, each in files.statistics.items()}
    bounds = {
        column_id: tuple(
            [None if value is None else to_bytes(kind, value) for value in bound.to_pylist()]
            for bound in (statistics.min, statistics.max)
        )
        for column_id, statistics in files.statistics.items()
        if has_plain_bounds(statistics.type)
        for kind in [_type(columns[column_id])]
    }
    found = []
    for block, (url, size, rows) in enumerate(zip(files.urls, files.sizes, files.row_counts, strict=True)):
        lower, upper = (
            {column_id: pair[side][block] for column_id, pair in bounds.items() if pair[side][block] is not None}
            for side in (0, 1)
        )
        found.append(
            DataFile.from_args(
                content=DataFileContent.DATA,
                file_path=url,
                file_format=FileFormat.PARQUET,
                partition=Record(),
                record_count=rows,
                file_size_in_bytes=size,
                column_sizes={},
                value_counts=dict.fromkeys(nulls, rows),
                null_value_counts={name: counts[block] for name, counts in nulls.items() if counts[block] is not None},
                nan_value_counts={},
                lower_bounds=lower,
                upper_bounds=upper,
                split_offsets=None,
                equality_ids=None,
                sort_order_id=None,
            )
        )
    return found


def _store_file(store: Store, root: str, key: str) -> Any:
    """A file of our store as PyIceberg writes one."""
    from pyiceberg.io import OutputFile

    class Written(io.BytesIO):
        def close(self) -> None:
            if not self.closed:
                file.size = len(self.getvalue())
                store.create(key, self.getvalue())
            super().close()

    class StoreFile(OutputFile):
        size = 0

        def __len__(self) -> int:
            return self.size

        def exists(self) -> bool:
            return False

        def to_input_file(self) -> Any:
            raise NotImplementedError("it is only written")

        def create(self, overwrite: bool = False) -> Any:
            return Written()

    file = StoreFile(f"{root}/{key}")
    return file
