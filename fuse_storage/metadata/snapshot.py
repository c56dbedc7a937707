"""Snapshots: all that a version of the table is, in one JSON file that a person can read.

A reader refuses, by name, a format version or a reader feature that it does not know; a writer feature that it does not
know makes the table read-only. Knows segments only as a reference to the list of them.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from fuse_storage.card import Shown
from fuse_storage.errors import Advice, FormatError, ReadOnly, VotesOnly
from fuse_storage.metadata.encoding import encode_indented, format_timestamp
from fuse_storage.metadata.file_ref import FileRef, read_verified
from fuse_storage.metadata.refs import Branch, RefEntry
from fuse_storage.metadata.segment import TailTotals
from fuse_storage.schema.defaults import check_stored_defaults
from fuse_storage.schema.schema import Schema
from fuse_storage.store.cache import cache_of
from fuse_storage.store.shared_files import SHARED_FILES_FEATURE
from fuse_storage.validation import features, json_members

CLUSTER_METHODS = ("linear", "zorder", "hilbert")
"""How rows are ordered by several columns; the property ``cluster_method`` says which, and the first is the default."""

KEY_PROPERTY = "key_ids"
"""The property that holds the ids of the columns that identify a row. A property, since every writer keeps those."""

SOURCE_PROPERTY = "foreign_source"
"""The property that says where the files of an attached table are from, and which state of the source they are."""


@dataclass(frozen=True, repr=False)
class Snapshot(Shown):
    """One version of a table; never changes.

    ``sequence``: the number of the commit that made it, ``parent``: the snapshot before. ``timestamp`` is UTC.
    ``schemas`` are all that any block was written with, by id; ``names`` all that a column (by id) was ever called.
    ``definitions``: by name, JSON-able, with a "key" each; what they mean is for others to know. ``applications``: the
    last version that each application wrote. ``bytes``: of all blocks' files. ``next_row_id``: what the next row gets.
    ``same_rows``: its commit left all rows as they were, and at most moved them to other blocks; False: who knows.
    ``stated_version``: 0 where it does not say its version. ``hot_commits``: between its parent and it. The state after
    hot commits is a snapshot too: ``base`` is the stored one that they follow, ``chain_length`` how many there are,
    ``hot_rows`` the rows of metadata of their blocks, after what ``base`` carries along. ``is_cut``: without its tail.
    """

    _shown = "version operation timestamp row_count block_count bytes cluster_by key id"
    _offered = "branch cluster_method definitions parent properties schema sequence source summary tail votes_only"

    id: str
    sequence: int
    branch: str
    commit_id: str
    parent: str | None
    timestamp: datetime
    operation: str
    schema_id: int
    schemas: Mapping[int, Schema]
    last_column_id: int
    names: Mapping[int, tuple[str, ...]]
    cluster_ids: tuple[int, ...] = ()
    properties: Mapping[str, Any] = field(default_factory=dict)
    definitions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    applications: Mapping[str, int] = field(default_factory=dict)
    summary: Mapping[str, Any] = field(default_factory=dict)
    row_count: int = 0
    block_count: int = 0
    segment_count: int = 0
    bytes: int = 0
    next_row_id: int = 0
    same_rows: bool = False
    segments: FileRef | None = None
    reader_features: tuple[str, ...] = ()
    writer_features: tuple[str, ...] = ()
    stated_version: int = 0
    hot_commits: int = 0
    tail: TailTotals | None = None
    base: Snapshot | None = field(default=None, compare=False, repr=False)
    chain_length: int = 0
    hot_rows: pa.Table | None = field(default=None, compare=False, repr=False)
    is_cut: bool = False

    def __reduce__(self) -> tuple[Any, ...]:
        names = ("base", "chain_length", "hot_rows", "is_cut")
        return _revive, (self.encode(), self.path, {name: getattr(self, name) for name in names})

    @property
    def version(self) -> int:
        """How many states the branch had by then, hot ones too: the sequence, where nothing else is said."""
        return self.stated_version or self.sequence

    @property
    def stored(self) -> Snapshot:
        """The snapshot that is in a file: this one, or the one that hot commits follow."""
        return self.base or self

    @property
    def has_chain(self) -> bool:
        """Whether what comes next is found in a chain of its own."""
        return features.HOT_FEATURE in self.reader_features

    @property
    def schema(self) -> Schema:
        """The columns that readers see."""
        return self.schemas[self.schema_id]

    @property
    def cluster_by(self) -> tuple[str, ...]:
        """The names of the columns by which rows are best kept together."""
        paths = {field.id: ".".join(path) for path, field in self.schema.leaves()}
        return tuple(paths[column_id] for column_id in self.cluster_ids)

    @property
    def cluster_method(self) -> str:
        """One of ``CLUSTER_METHODS``, or what a newer version calls one of its own."""
        return str(self.properties.get("cluster_method", CLUSTER_METHODS[0]))

    @property
    def key_ids(self) -> tuple[int, ...]:
        """The ids of the columns that identify a row; none if it says nothing of it, or names a column that is gone."""
        stored, column_ids = self.properties.get(KEY_PROPERTY, ()), {field.id for field in self.schema.fields}
        is_key = isinstance(stored, list) and all(type(each) is int and each in column_ids for each in stored)
        return tuple(stored) if is_key else ()

    @property
    def key(self) -> tuple[str, ...]:
        """The names of the columns that identify a row. Nothing sees to it that they do."""
        return tuple(self.schema.by_id(column_id).name for column_id in self.key_ids)

    @property
    def keys(self) -> frozenset[str]:
        """The keys of all definitions: sidecars of others are not kept."""
        return frozenset(str(definition["key"]) for definition in self.definitions.values())

    @property
    def source(self) -> Mapping[str, Any] | None:
        """What the table was attached to, as the property has it; None of a table of its own."""
        return self.properties.get(SOURCE_PROPERTY) if features.FOREIGN_FILES_FEATURE in self.reader_features else None

    @property
    def votes_only(self) -> bool:
        """Whether it votes on files of its source, whose own readers know which of their rows count."""
        return features.VOTES_ONLY_FEATURE in self.reader_features

    def check_rows(self) -> None:
        """Raise VotesOnly where no rows are read or changed here."""
        if self.votes_only:
            raise VotesOnly(
                f"this table votes on the files of {self.source and self.source['url']}, and does not know which rows "
                f"of them count: read and change rows there; " + Advice.call("explain", ...) + " tells the votes"
            )

    def check_own_rows(self) -> None:
        """Raise ReadOnly where rows and columns change through the source alone."""
        self.check_rows()
        if self.source is not None and not self.source.get("adopted"):
            raise ReadOnly(f"the rows are those of {self.source['url']}: change them there, and sync; or convert it")

    @property
    def path(self) -> str:
        return snapshot_path(self.id)

    @property
    def shares_files(self) -> bool:
        """Whether blocks and packs may lie in other tables."""
        return SHARED_FILES_FEATURE in self.reader_features

    def check_writable(self) -> None:
        """Raise ReadOnly for a state without its tail, Unsupported where a write could break what is newer than us."""
        if self.is_cut:
            raise ReadOnly(f"{self.id} was opened with tail=False, to be read only: open the table without it")
        features.check_writer_features(self.writer_features)

    def encode(self) -> builtins.bytes:
        """Write the snapshot as JSON, the most asked-for things first."""
        names = {str(column_id): list(names) for column_id, names in self.names.items()}
        members = {
            "format": features.FORMAT_NAME,
            "format_version": features.FORMAT_VERSION,
            "reader_features": list(self.reader_features),
            "writer_features": list(self.writer_features),
            "id": self.id,
            "parent": self.parent,
            "branch": self.branch,
            "sequence": self.sequence,
            "commit": self.commit_id,
            "timestamp": format_timestamp(self.timestamp),
            "operation": self.operation,
            "summary": dict(self.summary),
            "rows": self.row_count,
            "blocks": self.block_count,
            "bytes": self.bytes,
            "next_row_id": self.next_row_id,
            "same_rows": self.same_rows,
            "segments": {"count": self.segment_count, "list": self.segments and self.segments.to_json()},
            "cluster_by": list(self.cluster_ids),
            "properties": dict(self.properties),
            "definitions": {name: dict(definition) for name, definition in self.definitions.items()},
            "applications": dict(self.applications),
            "schema": self.schema_id,
            "schemas": [schema.to_json() for schema in self.schemas.values()],
            "last_column_id": self.last_column_id,
            "names": names,
        }
        if self.has_chain:
            members |= {"version": self.version, "hot": self.hot_commits, "tail": self.tail and self.tail.to_json()}
        return encode_indented(members)

    @staticmethod
    def decode(data: builtins.bytes, where: str) -> Snapshot:
        """Raises Unsupported for what is newer than this version, FormatError for what is no snapshot."""
        try:
            members = json_members.load_json(data, json_members.MAX_SNAPSHOT_BYTES)
            features.check_readable(json_members.convert_members(members, json_members.FormatMembers))
            return _decode(json_members.convert_members(members, json_members.SnapshotMembers), members)
        except FormatError as problem:
            raise type(problem)(f"{where}: {problem}") from problem
        except (LookupError, TypeError, ValueError, ArithmeticError, RecursionError, pa.ArrowException) as problem:
            raise FormatError(f"{where} is no snapshot: {problem!r}") from problem


def _revive(data: builtins.bytes, where: str, unwritten: Mapping[str, Any]) -> Snapshot:
    """A snapshot, or a state after hot commits, as it was pickled. ``unwritten``: members that are in no file."""
    return replace(Snapshot.decode(data, where), **unwritten)


def snapshot_path(snapshot_id: str) -> str:
    return f"_ss/{snapshot_id}.json"


def read_snapshot(branch: Branch, entry: RefEntry) -> Snapshot:
    """Read the snapshot that an entry of a branch made visible, or take it from memory.

    Raises NotFound if it was collected, or if the entry is the tombstone of a branch.
    """
    store, reference = branch.store, entry.reference
    if reference is None:
        raise branch.dropped(entry)
    key = ("snapshot", store.url, reference.path)
    load = lambda: Snapshot.decode(read_verified(store, reference), f"{store.url}/{reference.path}")  # noqa: E731
    return cache_of(store).get_or_load(key, load, lambda _: 20 * reference.length)


def _decode(members: json_members.SnapshotMembers, whole: Mapping[str, Any]) -> Snapshot:
    json_members.check_schemas(members.schemas)
    schemas = {schema.id: schema for schema in map(Schema.from_json, members.schemas)}
    for part in (each for schema in schemas.values() for top in schema.fields for each in top.walk()):
        check_stored_defaults(part)
    present = schemas[members.schema]
    if not {field.id for _, field in present.leaves()}.issuperset(members.cluster_by):
        raise ValueError(f"cluster_by = {members.cluster_by} names what is no column")
    json_members.check_properties(
        members.properties, features.FOREIGN_FILES_FEATURE in whole["reader_features"] and SOURCE_PROPERTY
    )
    for definition in members.definitions.values():
        if not str(definition["key"]).isalnum():
            raise ValueError(f"the key {definition['key']!r} of an index is not of letters and digits")
    listed = members.segments.list
    return Snapshot(
        id=members.id,
        sequence=members.sequence,
        branch=members.branch,
        commit_id=members.commit,
        parent=members.parent,
        timestamp=json_members.parse_stored_time(members.timestamp),
        operation=members.operation,
        summary=_frozen(members.summary),
        row_count=members.rows,
        block_count=members.blocks,
        bytes=members.bytes,
        next_row_id=members.next_row_id,
        same_rows=whole.get("same_rows") is True,
        segment_count=members.segments.count,
        segments=None if listed is None else FileRef.from_members(listed),
        schema_id=members.schema,
        schemas=_frozen(schemas),
        last_column_id=members.last_column_id,
        names=_frozen({int(column_id): tuple(names) for column_id, names in members.names.items()}),
        cluster_ids=tuple(members.cluster_by),
        properties=_frozen(members.properties),
        definitions=_frozen(members.definitions),
        applications=_frozen(members.applications),
        reader_features=tuple(whole["reader_features"]),
        writer_features=tuple(members.writer_features),
        stated_version=members.version,
        hot_commits=members.hot,
        tail=None if members.tail is None else TailTotals.from_members(members.tail),
    )


def _frozen(mapping: Mapping[Any, Any]) -> Mapping[Any, Any]:
    return MappingProxyType(dict(mapping))
