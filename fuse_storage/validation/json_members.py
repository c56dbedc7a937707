"""Members of JSON files: their types, how deep they are nested, how large numbers are. Knows no file's meaning."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

import msgspec

MAX_REF_BYTES = 1 << 20
"""Bytes of an entry, a tag or a notice; those that are written have less than a thousand."""
MAX_SNAPSHOT_BYTES = 64 << 20
"""Bytes of a snapshot: a thousand schemas of a thousand columns have fewer."""
MAX_JSON_DEPTH = 400
"""Objects and lists within each other. What needs a call for each level would fail at a thousand."""
_MAX_SECONDS = 100 * 366 * 86_400

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
"""Half of a character, which no UTF-8 can hold."""

Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]
"""A number of things or bytes."""
PositiveCount = Annotated[int, msgspec.Meta(ge=1, lt=1 << 62)]
"""A number of things of which there is one at least."""
_Members = TypeVar("_Members")


class FileRefMembers(msgspec.Struct):
    """A reference from file to file."""

    path: str
    length: Count
    hash: str


class SnapshotRefMembers(FileRefMembers):
    """The reference to a snapshot."""

    id: str


class EntryMembers(msgspec.Struct):
    """An entry of a branch."""

    sequence: Count
    commit: str
    parent: str | None
    timestamp: str
    operation: str
    snapshot: SnapshotRefMembers | None = None
    version: Count = 0


class TagMembers(msgspec.Struct):
    """A tag."""

    name: str
    timestamp: str
    snapshot: SnapshotRefMembers
    expires: str | None = None
    holder: str | None = None


class FormatMembers(msgspec.Struct):
    """What is read of a snapshot first, since all else may be otherwise in a newer version."""

    format: str
    format_version: int
    reader_features: list[str]


class FieldMembers(msgspec.Struct):
    """A column, or a part of one."""

    id: Annotated[int, msgspec.Meta(ge=1, lt=1 << 31)]
    name: str
    type: str
    nullable: bool
    physical: str | None = None
    comment: str | None = None
    type_changed: bool = False
    default: Any = None
    write_default: Any = None
    fields: list[FieldMembers] = []


class SchemaMembers(msgspec.Struct):
    """The columns of a table at one time."""

    id: Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
    fields: list[FieldMembers]


class SourceChoiceMembers(msgspec.Struct):
    """How the columns of a source were chosen when it was attached."""

    columns: list[str] | None = None
    widen: bool = False


class SourceMembers(msgspec.Struct):
    """What a table was attached to."""

    format: str
    url: str
    version: str | int | None
    unread: list[str]
    adopted: bool = False
    deletes: str | None = None
    left_out: dict[str, str] = {}
    converted: list[str] = []
    untyped: list[str] = []
    choice: SourceChoiceMembers | None = None


class SegmentsMembers(msgspec.Struct):
    """What a snapshot says of its segments."""

    count: Count
    list: FileRefMembers | None


class HotBlockMembers(msgspec.Struct):
    """A block of a hot entry."""

    id: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]
    change: str
    rows: PositiveCount
    size: Count
    hash: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]
    footer: tuple[Count, Count]
    seal: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{16}$")]
    zones: list[PositiveCount]
    schema: Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
    first_row_id: Count
    columns: dict[str, dict[str, Any]]


class HotEntryMembers(msgspec.Struct):
    """A hot entry."""

    number: PositiveCount
    version: PositiveCount
    commit: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]
    parent: str
    timestamp: str
    operation: str
    application: tuple[str, int] | None
    next_row_id: Count
    blocks: Annotated[list[HotBlockMembers], msgspec.Meta(min_length=1)]


class TailMembers(msgspec.Struct):
    """What a snapshot says of the hot blocks that it carries along."""

    commits: PositiveCount
    blocks: PositiveCount
    rows: Count  # 0 where keys are deleted, and no row is put
    bytes: Count
    oldest: str
    list: FileRefMembers | None


class SnapshotMembers(msgspec.Struct):
    """A snapshot."""

    id: str
    parent: str | None
    branch: str
    sequence: Count
    commit: str
    timestamp: str
    operation: str
    summary: dict[str, Any]
    rows: Count
    blocks: Count
    bytes: Count
    next_row_id: Count
    segments: SegmentsMembers
    schema: Count
    schemas: list[dict[str, Any]]
    last_column_id: Count
    names: dict[str, list[str]]
    cluster_by: list[Count]
    properties: dict[str, Any]
    definitions: dict[str, dict[str, Any]]
    applications: dict[str, int]
    writer_features: list[str]
    version: Count = 0
    hot: Count = 0
    tail: TailMembers | None = None


def load_json(data: bytes, limit: int) -> dict[str, Any]:
    """The object that JSON holds. Raises ValueError for anything else, for too many bytes, and for too deep a nest."""
    if len(data) > limit:
        raise ValueError(f"it has {len(data)} bytes, and may have {limit}")
    try:
        members = json.loads(data)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(members, dict):
        raise ValueError("it holds no object")
    check_depth(members)
    if _SURROGATE.search(data):
        json.dumps(members, ensure_ascii=False).encode()
    return members


def check_depth(value: Any, depth: int = MAX_JSON_DEPTH) -> None:
    """Raise ValueError for what is nested too deeply for whoever walks through it."""
    if not depth:
        raise ValueError(f"it is nested more than {MAX_JSON_DEPTH} levels deep")
    for part in value.values() if isinstance(value, dict) else value:
        if isinstance(part, dict | list):
            check_depth(part, depth - 1)


def convert_members(members: Any, kind: type[_Members]) -> _Members:
    """The members of an object by their types. Raises ValueError, naming the first that is missing or is of another."""
    try:
        return msgspec.convert(members, kind)
    except msgspec.MsgspecError as problem:
        raise ValueError(str(problem)) from problem


def check_schemas(schemas: Any) -> None:
    """Raise ValueError for schemas in which a column is none, or cannot be told from another."""
    found = convert_members(schemas, list[SchemaMembers])
    if len({schema.id for schema in found}) < len(found):
        raise ValueError("two schemas have one id")
    for schema in found:
        ids = list(_field_ids(schema.fields))
        if len(set(ids)) < len(ids):
            raise ValueError(f"two columns of schema {schema.id} have one id")


def _field_ids(fields: list[FieldMembers]) -> Iterator[int]:
    for names in ([field.name for field in fields], [field.physical or field.name for field in fields]):
        if len(set(names)) < len(names):
            raise ValueError(f"two columns have one name: {sorted(names)[:10]}")
    for field in fields:
        if field.fields and (field.default is not None or field.write_default is not None):
            raise ValueError(f"column {field.name!r} is nested, and has a default")
        yield field.id
        yield from _field_ids(field.fields)


def parse_stored_time(text: str) -> datetime:
    """A time as files hold it, in UTC. Raises ValueError for one without a zone, or at the end of what there can be."""
    try:
        time = datetime.fromisoformat(text)
        if time.tzinfo is not None and 1 < time.year < 9999:
            return time.astimezone(UTC)
    except OverflowError:
        pass
    raise ValueError(f"{text!r} is no time with its zone")


def check_seconds(value: Any, name: str) -> None:
    """Raise ValueError for what is no length of time in seconds, up to a hundred years."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _MAX_SECONDS:
        raise ValueError(f"{name} = {value!r}: it must be a number above 0, and of seconds up to a hundred years")


def check_properties(properties: Mapping[str, Any], source: str | bool) -> None:
    """Raise FormatError or ValueError for properties that no writer wrote. ``source``: the name of one that must be."""
    for name in ("max_write_seconds", "max_hot_seconds"):
        if name in properties:
            check_seconds(properties[name], name)
    if source:
        convert_members(properties.get(str(source)), SourceMembers)
