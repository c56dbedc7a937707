"""A snapshot as an Iceberg table: its metadata and manifests beside ours, over the same Parquet files.

Blocks have the ids of their columns as Iceberg has them, so that columns may have been renamed, moved, added and
dropped. The metadata has format version 2, and 3 once a column has a default that older files lack. PyIceberg writes
what is written, and is needed for that alone.
"""

from __future__ import annotations

import json
import re
from secrets import randbits
from typing import Any, Literal
from uuid import uuid4

from fuse_index.errors import InputError
from fuse_index.export.iceberg_manifests import METADATA_FOLDER, ManifestWriter
from fuse_index.export.iceberg_schema import ICEBERG_FORMAT, iceberg_schema
from fuse_index.export.live_files import LiveFiles
from fuse_storage import AlreadyExists, Conflict, Store, StoredTable

_METADATA_FILE = re.compile(rf"{METADATA_FOLDER}/v(\d+)\.metadata\.json")
_SNAPSHOT_PROPERTY = "fuse-index.snapshot"


def export_iceberg(table: StoredTable) -> str:
    """Write Iceberg's metadata of this snapshot, unless the last does; give its URL.

    Raises InputError where PyIceberg, or pyroaring for deletion vectors, is not installed, SchemaError for what Iceberg
    cannot say, Conflict for metadata that is not ours.
    """
    try:
        from pyiceberg.table.metadata import TableMetadataUtil
    except ImportError as missing:
        raise InputError("export_iceberg needs PyIceberg: pip install pyiceberg") from missing
    files = LiveFiles(table)
    files.check(ICEBERG_FORMAT)
    number, before = _latest(table.store)
    former = {} if before is None else json.loads(before)
    if former:
        if _SNAPSHOT_PROPERTY not in former["properties"]:
            raise Conflict(
                f"{files.root}/{METADATA_FOLDER} has Iceberg metadata that is not of exports only: export a clone"
            )
        if former["properties"][_SNAPSHOT_PROPERTY] == table.snapshot.id:
            _write_hint(table.store, number)  # whoever wrote the metadata may have died before
            return f"{files.root}/{METADATA_FOLDER}/v{number}.metadata.json"
    metadata = _metadata(files, former, number + 1)
    TableMetadataUtil.parse_obj(metadata)
    key = f"{METADATA_FOLDER}/v{number + 1}.metadata.json"
    try:
        table.store.create(key, json.dumps(metadata).encode())
    except AlreadyExists as other:
        raise Conflict(f"{files.root}/{key} was just written by somebody else: try again") from other
    _write_hint(table.store, number + 1)
    return f"{files.root}/{key}"


def _write_hint(store: Store, number: int) -> None:
    store.create(f"{METADATA_FOLDER}/version-hint.text", str(number).encode(), overwrite=True)


def _latest(store: Store) -> tuple[int, bytes | None]:
    """The number of the latest metadata and what it says; 0 if there is none."""
    entries = store.list(METADATA_FOLDER)
    keys = {int(match[1]): entry.key for entry in entries if (match := _METADATA_FILE.fullmatch(entry.key))}
    return (max(keys), store.read(keys[max(keys)])) if keys else (0, None)


def _metadata(files: LiveFiles, former: dict[str, Any], sequence: int) -> dict[str, Any]:
    """Write the manifests of a snapshot, and give the table's metadata. ``former``: what it was; empty at first."""
    snapshot, snapshot_id = files.table.snapshot, randbits(62)
    lacks_defaults = any(
        field.initial_default is not None and None in files.older_fields.get(field.id, ())
        for field in snapshot.schema.fields
    )
    version: Literal[2, 3] = 3 if lacks_defaults or former.get("format-version") == 3 else 2
    schema, now = iceberg_schema(snapshot.schema, has_defaults=version == 3), int(snapshot.timestamp.timestamp() * 1000)
    first_row_id, row_count = former.get("next-row-id", 0), sum(files.row_counts)
    manifests = ManifestWriter(files, schema, version, snapshot_id, sequence, first_row_id)
    described = {
        "snapshot-id": snapshot_id,
        "sequence-number": sequence,
        "timestamp-ms": now,
        "manifest-list": manifests.write(),
        "summary": {"operation": "append", "total-records": str(row_count)},
        "schema-id": schema.schema_id,
    }
    row_ids = {}
    if version == 3:
        described |= {"first-row-id": first_row_id, "added-rows": row_count}
        row_ids = {"next-row-id": first_row_id + row_count}
    return {
        "format-version": version,
        "table-uuid": former.get("table-uuid", str(uuid4())),
        "location": files.root,
        "last-sequence-number": sequence,
        "last-updated-ms": now,
        "last-column-id": snapshot.last_column_id,
        "schemas": [json.loads(schema.model_dump_json())],
        "current-schema-id": schema.schema_id,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": {_SNAPSHOT_PROPERTY: snapshot.id},
        "current-snapshot-id": snapshot_id,
        "snapshots": [described],
        "snapshot-log": [{"snapshot-id": snapshot_id, "timestamp-ms": now}],
        "refs": {"main": {"snapshot-id": snapshot_id, "type": "branch"}},
        **row_ids,
    }
