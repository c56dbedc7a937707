"""What can be done to the names of a warehouse: a closed set, each written down as JSON with its name as ``action``."""

from __future__ import annotations

import re

import msgspec

from fuse_storage.catalog.names import Identifier, check_identifier
from fuse_storage.errors import InvalidArgument
from fuse_storage.metadata.file_ref import is_snapshot_id
from fuse_storage.store.ranges import validate_key
from fuse_storage.store.shared_files import is_absolute_key

FOLDER_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,40}-[0-9a-f]{32}")
"""The folder of a table that the warehouse made: a name that it once had, for people, and its id."""
MAX_PROPERTIES = 1000
"""Properties of a namespace or table, which every session reads."""
MAX_PROPERTY_LENGTH = 10_000
"""Characters of a property's name or value."""
_MAX_LOCATION_LENGTH = 4096


class _Action(msgspec.Struct, frozen=True, tag_field="action", omit_defaults=True):
    """One change. What cannot be of any warehouse raises InvalidArgument when it is made."""


class CreateNamespace(_Action, frozen=True, tag="create_namespace"):
    """A namespace comes to be, within one that is there."""

    namespace: Identifier
    properties: dict[str, str] = {}

    def __post_init__(self) -> None:
        check_identifier(self.namespace)
        _check_properties(self.properties)


class UpdateNamespace(_Action, frozen=True, tag="update_namespace"):
    """Properties of a namespace are set and removed."""

    namespace: Identifier
    updates: dict[str, str] = {}
    removals: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_identifier(self.namespace)
        _check_properties(self.updates)


class DropNamespace(_Action, frozen=True, tag="drop_namespace"):
    """A namespace goes; with ``cascade`` also all that is in it: its tables are dropped."""

    namespace: Identifier
    cascade: bool = False

    def __post_init__(self) -> None:
        check_identifier(self.namespace)


class CreateTable(_Action, frozen=True, tag="create_table"):
    """A name is given to a table: one of a folder that was made for it (``managed``), or one that was there.

    ``location``: the folder's key in the warehouse, or the URL or absolute path of another place.
    """

    id: str
    identifier: Identifier
    location: str
    managed: bool
    properties: dict[str, str] = {}

    def __post_init__(self) -> None:
        check_identifier(self.identifier)
        _check_properties(self.properties)
        _check_ids((self.id,))
        check_location(self.location, self.managed)
        if self.managed and not self.location.endswith(f"-{self.id}"):
            raise InvalidArgument(f"{self.location!r} is not the folder of table {self.id}")


class UpdateTable(_Action, frozen=True, tag="update_table"):
    """What a warehouse says of a table is set and removed; the table's own properties are in its snapshots."""

    id: str
    identifier: Identifier
    updates: dict[str, str] = {}
    removals: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_identifier(self.identifier)
        _check_properties(self.updates)


class RenameTable(_Action, frozen=True, tag="rename_table"):
    """A table gets another name, in whatever namespace; nothing of it moves."""

    id: str
    source: Identifier
    target: Identifier

    def __post_init__(self) -> None:
        check_identifier(self.source)
        check_identifier(self.target)


class DropTable(_Action, frozen=True, tag="drop_table"):
    """A table loses its name, and can get it back; not so with ``purge``, since its files go."""

    id: str
    identifier: Identifier
    purge: bool = False

    def __post_init__(self) -> None:
        check_identifier(self.identifier)


class UndropTable(_Action, frozen=True, tag="undrop_table"):
    """A table that was dropped has a name again."""

    id: str
    identifier: Identifier

    def __post_init__(self) -> None:
        check_identifier(self.identifier)


class PurgeTables(_Action, frozen=True, tag="purge_tables"):
    """Dropped tables cannot come back, since their files are deleted from now on."""

    ids: tuple[str, ...]


class ForgetTables(_Action, frozen=True, tag="forget_tables"):
    """The files of purged tables are gone; nothing is left to do about them."""

    ids: tuple[str, ...]


CatalogAction = (
    CreateNamespace
    | UpdateNamespace
    | DropNamespace
    | CreateTable
    | UpdateTable
    | RenameTable
    | DropTable
    | UndropTable
    | PurgeTables
    | ForgetTables
)
ACTION_NAMES = frozenset(str(kind.__struct_config__.tag) for kind in CatalogAction.__args__)


def check_location(location: str, managed: bool) -> None:
    """Raise InvalidArgument for what cannot be where a table is."""
    if len(location) > _MAX_LOCATION_LENGTH:
        raise InvalidArgument(f"the location of a table has {len(location)} characters, and may have 4096")
    if managed and FOLDER_PATTERN.fullmatch(location) is None:
        raise InvalidArgument(f"{location!r} is no folder that a warehouse makes")
    if not is_absolute_key(location) and validate_key(location).startswith("_catalog"):
        raise InvalidArgument(f"{location!r} is where a warehouse keeps its names, and no place for a table")


def _check_ids(ids: tuple[str, ...]) -> None:
    for each in ids:
        if not is_snapshot_id(each):
            raise InvalidArgument(f"{each!r} is no id of a table: it has 32 hex digits")


def _check_properties(properties: dict[str, str]) -> None:
    if len(properties) > MAX_PROPERTIES:
        raise InvalidArgument(f"{len(properties)} properties are too many: there may be {MAX_PROPERTIES}")
    for name, value in properties.items():
        if not name or max(len(name), len(value)) > MAX_PROPERTY_LENGTH:
            raise InvalidArgument(
                f"property {name[:100]!r} must have a name, and name and value at most {MAX_PROPERTY_LENGTH} characters"
            )
        try:
            (name + value).encode()
        except UnicodeEncodeError as problem:
            raise InvalidArgument(f"property {name[:100]!r} holds half of a character: {problem}") from problem
