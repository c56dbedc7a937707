"""Where a table is, why there is none, where a new one may be made, and which properties it can have."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from fuse_storage.commit.segment_writer import WriteOptions
from fuse_storage.commit.table_keys import cluster_column_ids, key_by
from fuse_storage.errors import Advice, AlreadyExists, InvalidArgument, NotFound, SchemaError, StorageError, TableUrl
from fuse_storage.metadata.file_ref import new_id
from fuse_storage.metadata.refs import MAIN_BRANCH, Branch, list_branch_names, next_timestamp
from fuse_storage.metadata.snapshot import CLUSTER_METHODS, KEY_PROPERTY, SOURCE_PROPERTY, Snapshot
from fuse_storage.metadata.tags import did_you_mean
from fuse_storage.partitions.spec import PARTITION_PROPERTY, partition_by
from fuse_storage.schema.names import check_names
from fuse_storage.schema.schema import Schema
from fuse_storage.store.abilities import list_strays, read_at_most
from fuse_storage.store.store import Store
from fuse_storage.validation.features import schema_features
from fuse_storage.validation.json_members import MAX_SNAPSHOT_BYTES, check_seconds
from fuse_storage.validation.maintenance_policy import MAINTENANCE_PROPERTIES, MaintenancePolicy

TABLE_PREFIXES = ("_refs/", "_ss/", "_sg/", "_x/", "_b/", "_h/", "_i/", "_d/", "_m/")
"""Where the files of a table are; what else is in a folder is not a table's."""

EXPORT_FORMATS = ("delta", "iceberg")
"""What the property ``exports`` may name: whose readers are to find each commit."""
HOT_PROPERTIES = {"hot_rows": 0, "tail_rows": 1_000_000, "tail_commits": 256}
"""Whole numbers that bound hot commits, and their defaults: rows of a commit, and rows and commits of a tail."""
VOTES_PROPERTIES = {"max_dropped_files": 10_000, "max_unknown_files": 100}
"""Whole numbers of tables for votes alone, and their defaults: files that left the source's newest version and stay
known, and files met that are not known, by which its state is looked for."""
DELETE_MODES = ("copy-on-write", "merge-on-read")
"""How deletes go, the default first: blocks are written without the rows, or get deletion vectors where few rows go."""
KNOWN_PROPERTIES = (
    *WriteOptions.__dataclass_fields__,
    "max_write_seconds",
    "cluster_method",
    *HOT_PROPERTIES,
    *VOTES_PROPERTIES,
    "max_age_seconds",
    "tiering",
    "max_hot_seconds",
    "exports",
    "delete_mode",
    "index_seconds",
    "indexes_off",
    "plan_log",
    *MAINTENANCE_PROPERTIES,
)
"""Properties that mean something here; any other is kept for whoever set it."""
_COLUMN_ARGUMENTS = ("key", "primary_key", "cluster_by", "partition_by")
"""What is chosen beside the properties of a new table, and what Spark SQL shows among them."""
_MEANT_PROPERTIES = (*KNOWN_PROPERTIES, *_COLUMN_ARGUMENTS[1:])
"""What a misspelt name may have been; as to ``key``, too many are like it."""
_HELD_PROPERTIES = (*_COLUMN_ARGUMENTS, *_MEANT_PROPERTIES, KEY_PROPERTY, PARTITION_PROPERTY, SOURCE_PROPERTY)
"""Names that mean something, or say with what else a table gets what they would mean."""


def validate_properties(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Properties as a snapshot can hold them. Raises InvalidArgument for one that cannot be."""
    for name in properties:
        _check_meaning(name)
    if KEY_PROPERTY in properties:
        raise InvalidArgument(
            f"the property {KEY_PROPERTY} holds ids that the table gives: name the columns of "
            f"its key instead, " + Advice.argument("create_table", key=[...])
        )
    if PARTITION_PROPERTY in properties:
        raise InvalidArgument(
            f"the property {PARTITION_PROPERTY} holds ids that the table gives: create it "
            + Advice.argument("create_table", partition_by=[...])
        )
    if columns := [name for name in _COLUMN_ARGUMENTS if name in properties]:
        raise InvalidArgument(
            f"the property {columns[0]} would mean nothing: create the table "
            + Advice.argument("create_table", **{columns[0]: [...]})
        )
    if SOURCE_PROPERTY in properties:
        raise InvalidArgument(f"the property {SOURCE_PROPERTY} is that of attached tables: attach one to a source")
    WriteOptions.from_properties(properties)
    for name in ("max_write_seconds", "max_hot_seconds", "max_age_seconds", "index_seconds"):
        try:
            check_seconds(properties.get(name, 1), name)
        except ValueError as problem:
            raise InvalidArgument(str(problem)) from problem
    for name, least in {**HOT_PROPERTIES, "max_dropped_files": 0, "max_unknown_files": 1}.items():
        limit = properties.get(name, 1)
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < min(least, 1):
            raise InvalidArgument(f"{name} = {limit!r}: it must be a whole number from {min(least, 1)} on")
    export_formats(properties)
    MaintenancePolicy.from_properties(properties)
    if properties.get("tiering", "writer") not in ("writer", "job"):
        raise InvalidArgument(f"tiering = {properties['tiering']!r}: who tiers is a 'writer' or a 'job'")
    _check_switches(properties.get("indexes_off", ""))
    if properties.get("plan_log", "on") not in ("on", "off"):
        raise InvalidArgument(f"plan_log = {properties['plan_log']!r}: plans are kept 'on', or not, 'off'")
    if properties.get("delete_mode", DELETE_MODES[0]) not in DELETE_MODES:
        raise InvalidArgument(f"delete_mode = {properties['delete_mode']!r}: choose one of {', '.join(DELETE_MODES)}")
    try:
        return dict(json.loads(json.dumps(dict(properties), allow_nan=False)))
    except (TypeError, ValueError) as problem:
        raise InvalidArgument(f"properties must be what JSON can hold: {problem}") from problem


def _check_meaning(name: str) -> None:
    """Raise InvalidArgument for a name that seems to promise something and means nothing.

    Such are names near to those that mean something, and names that begin with a word of theirs (``tail_``,
    ``delete.``) or with ours (``fuse.``). Others are kept for whoever sets them, as are those behind a prefix and a dot
    (``my.retention``).
    """
    if name in _HELD_PROPERTIES:
        return
    if _first_word(name) == "fuse":
        own = re.sub(r"fuse([._-]index)?[._-]?", "", name.lower(), count=1)
        near = difflib.get_close_matches(own, _MEANT_PROPERTIES, 1, 0.6)
        meant = f": did you mean {near[0]!r}?" if near else ": properties have no prefix"
        raise InvalidArgument(f"no property {name!r} means anything{meant}")
    if "." not in name and (near := difflib.get_close_matches(name, _MEANT_PROPERTIES, 1, 0.8)):
        raise InvalidArgument(f"no property {name!r} means anything: did you mean {near[0]!r}?")
    words = (*KNOWN_PROPERTIES, "partition_by")
    if alike := [known for known in words if _first_word(known) == _first_word(name)]:
        raise InvalidArgument(
            f"no property {name!r} means anything: there are {', '.join(alike)}; one of your own begins with a word of "
            f"its own, such as 'my.{name}'"
        )


def _first_word(name: str) -> str:
    return re.split(r"[._-]", name.lower(), maxsplit=1)[0]


def export_formats(properties: Mapping[str, Any]) -> tuple[str, ...]:
    """The formats that the property ``exports`` names. Raises InvalidArgument for one that is none."""
    text = properties.get("exports", "")
    names = tuple(dict.fromkeys(filter(None, map(str.strip, text.split(","))))) if isinstance(text, str) else (text,)
    for name in names:
        if name not in EXPORT_FORMATS:
            raise InvalidArgument(f"exports = {text!r}: it names formats, {' or '.join(EXPORT_FORMATS)}, or both")
    return names


def first_snapshot(
    schema: pa.Schema,
    cluster_by: Sequence[str],
    properties: Mapping[str, Any],
    key: Sequence[str] = (),
    partitions: Sequence[str] = (),
) -> Snapshot:
    """The snapshot that a new table begins with. Raises SchemaError, InvalidArgument."""
    new_schema, valid_properties = Schema.create(schema), validate_properties(properties)
    if not new_schema.fields:
        raise SchemaError("a table needs at least one column")
    check_names(new_schema.fields)
    method = valid_properties.get("cluster_method", CLUSTER_METHODS[0])
    all_fields = [part for field in new_schema.fields for part in field.walk()]
    snapshot = Snapshot(
        id=new_id(),
        sequence=1,
        branch=MAIN_BRANCH,
        commit_id=new_id(),
        parent=None,
        timestamp=next_timestamp(None),
        operation="create",
        schema_id=new_schema.id,
        schemas={new_schema.id: new_schema},
        last_column_id=max((part.id for part in all_fields), default=0),
        names={part.id: (part.name,) for part in all_fields},
        cluster_ids=cluster_column_ids(new_schema, cluster_by, method),
        properties=valid_properties,
        reader_features=tuple(sorted(schema_features({new_schema.id: new_schema}))),
    )
    return partition_by(key_by(snapshot, key), partitions)


def update_properties(snapshot: Snapshot, updates: Mapping[str, Any], removals: Sequence[str] = ()) -> Snapshot:
    """Set and remove properties of a table. Raises InvalidArgument for one that cannot be, or not in this way."""
    if "cluster_method" in (*updates, *removals):
        raise InvalidArgument("cluster_method goes with the columns of the key: choose both by cluster_by")
    kept = {name: value for name, value in snapshot.properties.items() if name not in removals}
    if KEY_PROPERTY in removals:
        raise InvalidArgument(f"the property {KEY_PROPERTY} holds the table's key: choose another by key_by")
    if PARTITION_PROPERTY in removals:
        raise InvalidArgument(
            f"the property {PARTITION_PROPERTY} says how rows lie, and stays: make another table of them"
        )
    if SOURCE_PROPERTY in removals and snapshot.source is not None:
        raise InvalidArgument(f"the property {SOURCE_PROPERTY} says whose files these are: convert the table instead")
    properties = kept | validate_properties(updates)
    return snapshot if properties == dict(snapshot.properties) else replace(snapshot, properties=properties)


def raise_if_occupied(branch: Branch, cloning: bool = False) -> None:
    """Raises AlreadyExists where there is a table, what is left of one, or anything else.

    What a creation, or a clone, left that died before it had written a snapshot is no hindrance, since no row can come
    of it; nor, to another clone (``cloning``), the snapshot of one that died before it could commit it.
    """
    store = branch.store
    if branch.find(1) is not None:
        raise AlreadyExists(TableUrl(store.url) + " already is a table: open it, or choose another place")
    if list_branch_names(store):
        raise AlreadyExists(
            TableUrl(store.url) + " is a table some of whose refs are lost: recover it (fuse-index recover)"
        )
    lost_rows = ["_b/", "_h/", *(["_sg/"] if _holds_lost_snapshot(store, cloning) else [])]
    for listed in store.list():
        if not listed.key.startswith(TABLE_PREFIXES) and not _is_clutter(listed.key):
            raise AlreadyExists(
                TableUrl(store.url) + f" holds other files, such as {listed.key!r}: choose an empty place for a table"
            )
        if listed.key.startswith(tuple(lost_rows)):
            raise AlreadyExists(
                TableUrl(store.url) + f" holds rows of a table whose refs are lost, such as {listed.key!r}: recover it"
            )
    for key in list_strays(store):
        raise AlreadyExists(
            TableUrl(store.url) + f" holds a link or a device, {key!r}: choose an empty place for a table"
        )
    _raise_if_file(store)


def _is_clutter(key: str) -> bool:
    """Whether it is a file that desktops and network file systems leave in any folder."""
    name = key.rpartition("/")[2]
    return name.startswith((".DS_Store", "._", ".nfs")) or name in ("Thumbs.db", "desktop.ini")


def _holds_lost_snapshot(store: Store, cloning: bool) -> bool:
    """Whether a recovery would find a snapshot there, of more than a clone where one is ``cloning``."""
    keys = [listed.key for listed in store.list("_ss") if listed.key.endswith(".json")]
    return any(not (cloning and _is_new_clone(read_at_most(store, key, MAX_SNAPSHOT_BYTES))) for key in keys)


def _is_new_clone(data: bytes) -> bool:
    try:
        members = json.loads(data)
        return (members["operation"], members["sequence"]) == ("clone", 1)
    except (LookupError, TypeError, ValueError):
        return False


def _raise_if_file(store: Store) -> None:
    path = store.path("_refs")
    above = [] if path is None else list(Path(path).parents)
    if (file := next((each for each in above if each.is_file()), None)) is not None:
        which = " is a file" if file == above[0] else f" is below {file}, which is a file"
        raise StorageError(TableUrl(store.url) + f"{which}, and a table is a folder")


def missing_table_error(chain: Branch, missing: NotFound) -> StorageError:
    """The error that says why no table can be opened there, and what to do."""
    store = chain.store
    _raise_if_file(store)
    branches = [name for name in list_branch_names(store) if name != chain.name]
    if branches:
        return NotFound(TableUrl(store.url) + f" has no branch {chain.name!r}{did_you_mean(chain.name, branches)}")
    strange = (listed.key for listed in store.list() if not listed.key.startswith(TABLE_PREFIXES))
    other = next((key for key in strange if not _is_clutter(key)), None)
    if other is not None and other.startswith("_catalog/"):
        return NotFound(
            TableUrl(store.url)
            + " is a warehouse, and no table: open one by its name, "
            + Advice.call(f"catalog({store.url!r}).load_table", ...)
        )
    if other is not None and other.rpartition(".")[2] == "parquet":
        return NotFound(
            TableUrl(store.url)
            + f" is no table: it holds files of others, such as {other!r}; to read and index those as they are, attach "
            "them: " + Advice.call("attach", store.url, ...)
        )
    if other is not None:
        return NotFound(TableUrl(store.url) + f" is no table of this kind: it holds other files, such as {other!r}")
    if next(iter(store.list("_ss")), None) is not None:
        return NotFound(
            TableUrl(store.url) + " is a table whose refs are lost: recover it from its snapshots (fuse-index recover)"
        )
    return NotFound(TableUrl(store.url) + " is no table: there is nothing; create it first")


def _check_switches(text: Any) -> None:
    """Raise InvalidArgument unless each part of a text, by commas, names an index, a kind or a distribution."""
    if not isinstance(text, str):
        raise InvalidArgument(f"indexes_off = {text!r}: give names as one text, by commas")
    for part in filter(None, map(str.strip, text.split(","))):
        form, colon, name = part.partition(":")
        if not form.strip() or (colon and (form.strip() not in ("index", "kind", "distribution") or not name.strip())):
            raise InvalidArgument(
                f"indexes_off = {text!r}: {part!r} switches nothing off: give the name of an index, kind:NAME or "
                f"distribution:NAME"
            )
