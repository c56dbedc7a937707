"""A snapshot as a Delta table: a log beside our metadata, over the same Parquet files.

Each export of another snapshot is a version of its own, which says what came and what went since the last. So readers
of Delta may travel over what was exported. A version asks no more of its readers than it needs: deletion vectors while
a file has deleted rows, type widening while one is older than a type, column mapping from the first renamed column on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from fuse_index.export.deletion_vectors import StoredVector, delta_vectors, z85
from fuse_index.export.delta_schema import DELTA_FORMAT, SchemaWriter, is_renamed
from fuse_index.export.live_files import LiveFiles
from fuse_storage import AlreadyExists, Conflict, StoredTable, TableUrl, new_id

_LOG_FOLDER = "_delta_log"
_LOG_FILE = re.compile(rf"{_LOG_FOLDER}/(\d{{20}})\.json")
_ENGINE = "fuse-index"
_VECTOR_TAG = "fuse-index.vector"
_Action = dict[str, Any]


def export_delta(table: StoredTable) -> int:
    """Write the version of a Delta log that says what this snapshot holds, unless the last one does; give its number.

    Raises SchemaError for what Delta cannot say, InputError where rows were deleted and pyroaring is not installed,
    Conflict for a log that is not ours or was written to just now.
    """
    files = LiveFiles(table)
    files.check(DELTA_FORMAT)
    log = _DeltaLog.read(table)
    maps_columns = "columnMapping" in log.features or is_renamed(table.snapshot.schema.fields)
    schema = SchemaWriter(files, maps_columns)
    now = int(table.snapshot.timestamp.timestamp() * 1000)
    metadata = _metadata(schema, log.table_id or new_id(), now)
    features = frozenset(schema.features() | ({"deletionVectors"} if any(files.vector_ids) else set()))
    is_new = (metadata["schemaString"], metadata["configuration"]) != log.metadata
    wanted = dict(zip(files.relative_paths, files.vector_ids, strict=True))
    removed = [path for path, add in log.live.items() if path not in wanted or _vector_id(add) != wanted[path]]
    # what is said of files goes by columns: of others, each file is added anew
    added = wanted.keys() if is_new else {path for path in wanted if path not in log.live} | (wanted.keys() & removed)
    if log.version >= 0 and not added and not removed and not is_new:
        return log.version
    actions = [_commit_info(table, now)]
    if features != log.features or log.version < 0:
        actions.append(_protocol(features))
    if is_new:
        actions.append({"metaData": metadata})
    actions += [_remove(log.live[path], now) for path in removed]
    actions += _adds(schema, log, [number for number, path in enumerate(wanted) if path in added], now)
    data = "".join(f"{json.dumps(action)}\n" for action in actions).encode()
    try:
        table.store.create(f"{_LOG_FOLDER}/{log.version + 1:020}.json", data)
    except AlreadyExists as other:
        raise Conflict(
            TableUrl(table.store.url) + f": somebody else wrote version {log.version + 1} to its Delta log: try again"
        ) from other
    return log.version + 1


@dataclass
class _DeltaLog:
    """What the log says by now. ``live``: what was added of each file, by its path.

    ``metadata``: schema and configuration. ``features``: what readers must support. ``version``: -1 if there is none.
    """

    version: int = -1
    live: dict[str, _Action] = field(default_factory=dict)
    metadata: tuple[str, Mapping[str, str]] | None = None
    table_id: str | None = None
    features: frozenset[str] = frozenset()

    @staticmethod
    def read(table: StoredTable) -> _DeltaLog:
        """Raises Conflict for a log that somebody else wrote."""
        log = _DeltaLog()
        for key in sorted(entry.key for entry in table.store.list(_LOG_FOLDER)):
            if not (match := _LOG_FILE.fullmatch(key)) or int(match[1]) != log.version + 1:
                raise Conflict(
                    TableUrl(table.store.url) + f" has a Delta log that is not of exports only: it has {key}"
                )
            for line in table.store.read(key).splitlines():
                log._apply(json.loads(line), f"{table.store.url}/{key}")
            log.version += 1
        return log

    def _apply(self, action: Mapping[str, Any], where: str) -> None:
        match action:
            case {"commitInfo": {"engineInfo": engine}} if engine != _ENGINE:
                raise Conflict(f"{where} was written by {engine}: export to a clone of the table")
            case {"add": {"path": path} as add}:
                self.live[path] = add
            case {"remove": {"path": path}}:
                self.live.pop(path, None)
            case {"metaData": {"schemaString": schema, "configuration": configuration, "id": table_id}}:
                self.metadata, self.table_id = (schema, configuration), table_id
            case {"protocol": {"minReaderVersion": 2}}:
                self.features = frozenset({"columnMapping"})
            case {"protocol": protocol}:
                self.features = frozenset(protocol.get("readerFeatures", ()))


def _commit_info(table: StoredTable, now: int) -> _Action:
    parameters = {"snapshot": table.snapshot.id}
    return {
        "commitInfo": {
            "timestamp": now,
            "operation": "WRITE",
            "operationParameters": parameters,
            "engineInfo": _ENGINE,
        }
    }


def _protocol(features: frozenset[str]) -> _Action:
    """The oldest protocol that has these features."""
    if features <= {"columnMapping"}:
        reader, writer = (2, 5) if features else (1, 2)
        return {"protocol": {"minReaderVersion": reader, "minWriterVersion": writer}}
    names = sorted(features)
    return {
        "protocol": {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": names,
            "writerFeatures": names,
        }
    }


def _metadata(schema: SchemaWriter, table_id: str, now: int) -> _Action:
    return {
        "id": table_id,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(schema.schema()),
        "partitionColumns": [],
        "configuration": schema.configuration(),
        "createdTime": now,
    }


def _vector_id(add: Mapping[str, Any]) -> str | None:
    tags: Mapping[str, str] = add.get("tags", {})
    return tags.get(_VECTOR_TAG)


def _remove(add: Mapping[str, Any], now: int) -> _Action:
    """Take a file out, which is known by its path and its vector."""
    vector = {"deletionVector": add["deletionVector"]} if "deletionVector" in add else {}
    return {"remove": {"path": add["path"], "deletionTimestamp": now, "dataChange": True, **vector}}


def _adds(schema: SchemaWriter, log: _DeltaLog, chosen: list[int], now: int) -> list[_Action]:
    """Add these of the files, with vectors that are there already or are written now."""
    files = schema.files
    paths, sizes, stats, ids = files.relative_paths, files.sizes, schema.stats(), files.vector_ids
    known = {
        number: log.live[paths[number]]["deletionVector"]
        for number in chosen
        if ids[number] is not None and _vector_id(log.live.get(paths[number], {})) == ids[number]
    }
    vectors = known | _write_vectors(files, [each for each in chosen if ids[each] is not None and each not in known])
    adds = []
    for number in chosen:
        add = {"path": paths[number], "partitionValues": {}, "size": sizes[number], "modificationTime": now}
        add |= {"dataChange": True, "stats": json.dumps(stats[number])}
        if number in vectors:
            add |= {"deletionVector": vectors[number], "tags": {_VECTOR_TAG: ids[number]}}
        adds.append({"add": add})
    return adds


def _write_vectors(files: LiveFiles, chosen: list[int]) -> dict[int, _Action]:
    """Write one file of the deletion vectors of these files, and describe each."""
    if not chosen:
        return {}
    file_id = uuid4()
    data, vectors = delta_vectors(files.deleted_rows(chosen))
    files.table.store.create(f"deletion_vector_{file_id}.bin", data)
    return {number: _describe(vector, z85(file_id.bytes)) for number, vector in zip(chosen, vectors, strict=True)}


def _describe(vector: StoredVector, file_id: str) -> _Action:
    return {
        "storageType": "u",
        "pathOrInlineDv": file_id,
        "offset": vector.offset,
        "sizeInBytes": vector.bitmap_size,
        "cardinality": vector.cardinality,
    }
