"""A snapshot as a Delta table: a log beside our metadata, over the same Parquet files.

Each export of another snapshot is a version of its own, which says what came and what went since the last. So readers
of Delta may travel over what was exported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.types as is_

from fuse_index.export.live_files import LiveFiles, has_plain_bounds
from fuse_storage import AlreadyExists, ColumnStatistics, Conflict, Field, SchemaError, StoredTable, new_id

_LOG_FOLDER = "_delta_log"
_LOG_FILE = re.compile(rf"{_LOG_FOLDER}/(\d{{20}})\.json")
_ENGINE = "fuse-index"
_TYPE_NAMES = {
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamp",
    pa.timestamp("us"): "timestamp_ntz",
}


def export_delta(table: StoredTable) -> int:
    """Write the version of a Delta log that says what this snapshot holds, unless the last one does; give its number.

    Raises SchemaError for what Delta cannot say, Conflict for a log that is not ours or was written to just now.
    """
    files = LiveFiles(table)
    for top in table.snapshot.schema.fields:
        for part in top.walk():
            if part.physical_name != part.name and part.name not in ("element", "key", "value"):
                raise SchemaError(
                    f"column {part.name!r} is {part.physical_name!r} in the files, since it was renamed, or has a dot "
                    f"in its name, and readers of Delta would look for {part.name!r}: export_iceberg goes by ids"
                )
    files.check("Delta", lambda before, now: False)
    log = _DeltaLog.read(table)
    now = int(table.snapshot.timestamp.timestamp() * 1000)
    metadata = _metadata(table, log.table_id or new_id(), now)
    live, is_new = set(files.relative_paths), (metadata["schemaString"], metadata["configuration"]) != log.metadata
    removed = [path for path in log.live if path not in live]
    # what is said of files goes by columns: of others, each file is added anew
    added = live if is_new else live - set(log.live)
    if log.version >= 0 and not added and not removed and not is_new:
        return log.version
    actions = [_commit_info(table, now)]
    if is_new:
        actions += [_protocol(metadata["schemaString"]), {"metaData": metadata}]
    actions += [{"remove": {"path": path, "deletionTimestamp": now, "dataChange": True}} for path in removed]
    actions += [add for add in _adds(files, now) if add["add"]["path"] in added]
    data = "".join(f"{json.dumps(action)}\n" for action in actions).encode()
    try:
        table.store.create(f"{_LOG_FOLDER}/{log.version + 1:020}.json", data)
    except AlreadyExists as other:
        raise Conflict(
            f"{table.store.url}: somebody wrote version {log.version + 1} to its Delta log: try again"
        ) from other
    return log.version + 1


@dataclass
class _DeltaLog:
    """What the log says by now. ``live``: files by their paths; ``metadata``: schema and configuration.

    ``version``: -1 if there is none.
    """

    version: int = -1
    live: dict[str, None] = field(default_factory=dict)
    metadata: tuple[str, Mapping[str, str]] | None = None
    table_id: str | None = None

    @staticmethod
    def read(table: StoredTable) -> _DeltaLog:
        """Raises Conflict for a log that somebody else wrote."""
        log = _DeltaLog()
        for key in sorted(entry.key for entry in table.store.list(_LOG_FOLDER)):
            if not (match := _LOG_FILE.fullmatch(key)) or int(match[1]) != log.version + 1:
                raise Conflict(f"{table.store.url} has a Delta log that is not of exports only: it has {key}")
            for line in table.store.read(key).splitlines():
                log._apply(json.loads(line), f"{table.store.url}/{key}")
            log.version += 1
        return log

    def _apply(self, action: Mapping[str, Any], where: str) -> None:
        match action:
            case {"commitInfo": {"engineInfo": engine}} if engine != _ENGINE:
                raise Conflict(f"{where} was written by {engine}: export to a clone of the table")
            case {"add": {"path": path}}:
                self.live[path] = None
            case {"remove": {"path": path}}:
                self.live.pop(path, None)
            case {"metaData": {"schemaString": schema, "configuration": configuration, "id": table_id}}:
                self.metadata, self.table_id = (schema, configuration), table_id


def _commit_info(table: StoredTable, now: int) -> dict[str, Any]:
    parameters = {"snapshot": table.snapshot.id}
    return {
        "commitInfo": {
            "timestamp": now,
            "operation": "WRITE",
            "operationParameters": parameters,
            "engineInfo": _ENGINE,
        }
    }


def _protocol(schema: str) -> dict[str, Any]:
    if '"timestamp_ntz"' not in schema:
        return {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    features = ["timestampNtz"]
    return {
        "protocol": {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": features,
            "writerFeatures": features,
        }
    }


def _metadata(table: StoredTable, table_id: str, now: int) -> dict[str, Any]:
    fields = table.snapshot.schema.fields
    bounded = ",".join(f"`{column.name.replace('`', '``')}`" for column in fields if has_plain_bounds(column.type))
    return {
        "id": table_id,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(_struct(fields)),
        "partitionColumns": [],
        "configuration": {"delta.dataSkippingStatsColumns": bounded} if bounded else {},
        "createdTime": now,
    }


def _adds(files: LiveFiles, now: int) -> list[dict[str, Any]]:
    adds = []
    for path, size, stats in zip(files.relative_paths, files.sizes, _stats(files), strict=True):
        add = {"path": path, "partitionValues": {}, "size": size, "modificationTime": now}
        adds.append({"add": {**add, "dataChange": True, "stats": json.dumps(stats)}})
    return adds


def _stats(files: LiveFiles) -> list[dict[str, Any]]:
    """By block what Delta says of it: of all columns that are said to be bounded, or of none.

    Readers may take the bounds of a column that some file lacks for NULL (``deltalake`` does), and skip the file.
    """
    columns = [column for column in files.table.snapshot.schema.fields if has_plain_bounds(column.type)]
    if not all(column.id in files.statistics for column in columns):
        return [{"numRecords": rows} for rows in files.row_counts]
    names = [column.name for column in columns]
    nulls = [files.statistics[column.id].null_count.to_pylist() for column in columns]
    bounds = [_bounds(files.statistics[column.id]) for column in columns]
    stats: list[dict[str, Any]] = []
    for block, rows in enumerate(files.row_counts):
        counts = dict(zip(names, (counts[block] for counts in nulls), strict=True))
        pairs = dict(zip(names, (pairs[block] for pairs in bounds), strict=True))
        known = {name: pair for name, pair in pairs.items() if None not in pair}
        stats.append({"numRecords": rows})
        if None in counts.values() or any(counts[name] < rows for name in names if name not in known):
            continue
        least, greatest = ({name: pair[side] for name, pair in known.items()} for side in (0, 1))
        stats[-1] |= {"tightBounds": False, "nullCount": counts, "minValues": least, "maxValues": greatest}
    return stats


def _bounds(statistics: ColumnStatistics) -> list[tuple[Any, Any]]:
    """By block the least and the greatest value as JSON has them."""
    columns = (statistics.min, statistics.max)
    if is_.is_date(statistics.type):
        columns = tuple(column.cast(pa.string()) for column in columns)
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


def _struct(fields: tuple[Field, ...]) -> dict[str, Any]:
    described = [
        {"name": part.name, "type": _type(part), "nullable": part.nullable, "metadata": _comment(part)}
        for part in fields
    ]
    return {"type": "struct", "fields": described}


def _comment(part: Field) -> dict[str, str]:
    return {} if part.comment is None else {"comment": part.comment}


def _type(part: Field) -> Any:
    if is_.is_decimal(part.type):
        return f"decimal({part.type.precision},{part.type.scale})"
    if is_.is_struct(part.type):
        return _struct(part.children)
    if is_.is_map(part.type):
        key, value = part.children
        return {
            "type": "map",
            "keyType": _type(key),
            "valueType": _type(value),
            "valueContainsNull": value.nullable,
        }
    if is_.is_list(part.type):
        (element,) = part.children
        return {"type": "array", "elementType": _type(element), "containsNull": element.nullable}
    return _TYPE_NAMES[part.type]
