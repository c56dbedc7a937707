"""What the parts of a name in SQL mean: a table of the warehouse or at a place, a branch or tag of it, a view of it.

In: the parts, as Spark split them. Out: a ``TableReference``, by which the table is opened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from fuse_index.errors import InputError
from fuse_index.indexes.registry import Host
from fuse_index.spark.catalog.metadata_tables import METADATA_TABLES
from fuse_index.spark.protocol.requests import NamedRequest
from fuse_index.table.open import open_table
from fuse_index.table.table import Table
from fuse_index.warehouse.catalog import Catalog
from fuse_storage import (
    CatalogTable,
    Identifier,
    InvalidArgument,
    NotFound,
    ReadOnly,
    join_identifier,
    list_branches,
    open_table_store,
)

MAX_SHOWN = 1000
_BRANCH_PREFIX = "branch_"
_TAG_PREFIX = "tag_"
_BASE = "base"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class TableReference:
    """One table, as a statement names it.

    ``named``: what the warehouse knows of it; None for a table that is named by its place. ``at``: a snapshot id, a tag
    or a time, at which it is only read. ``tail``: whether rows are meant that are not tiered yet; without them it is
    only read, too. ``view``: one of METADATA_TABLES, where that is meant and not its rows.
    """

    shown: str
    url: str
    named: CatalogTable | None = None
    branch: str = "main"
    at: str | datetime | None = None
    tail: bool = True
    view: str | None = None

    @property
    def path(self) -> Identifier:
        """The parts of a name for the head of the branch, behind the catalogue's."""
        table = (self.url,) if self.named is None else self.named.identifier
        return table if self.branch == "main" else (*table, _BRANCH_PREFIX + self.branch)

    @property
    def is_fixed(self) -> bool:
        """Whether this is no head of a branch, which could be changed and followed."""
        return self.at is not None or not self.tail


@dataclass(frozen=True, slots=True)
class TableNames:
    """The names of a catalogue: those of its warehouse, if it has one, and places.

    ``options``: of the object store. ``shown_by_url``: the names of tables of which a statement was, at most
    MAX_SHOWN, by their places.
    """

    catalog: str
    warehouse: Catalog | None
    options: Mapping[str, str]
    host: Host
    shown_by_url: dict[str, str] = field(default_factory=dict)

    def require_warehouse(self) -> Catalog:
        """The warehouse. Raises InputError where there is none."""
        if self.warehouse is None:
            raise InputError(
                f"the catalogue {self.catalog!r} has no warehouse, and so no names: give one by install(spark, "
                f"warehouse=…), or name a table by its place, {self.catalog}.`/path`"
            )
        return self.warehouse

    def resolve(self, parts: Sequence[str], at: str | int | None = None) -> TableReference:
        """The table that is meant. Raises NotFound naming near names, InvalidArgument for what is no name.

        ``at``: a snapshot id or a tag, or microseconds since 1970; None for the head.
        """
        reference, suffixes = self._find_table(tuple(parts))
        for suffix in suffixes:
            reference = _with_suffix(reference, suffix, ".".join(parts))
        if at is not None:
            state = at if isinstance(at, str) else _EPOCH + timedelta(microseconds=at)
            if reference.at is not None:
                raise InvalidArgument(f"{'.'.join(parts)} is a tag, and asked for as of {state}: say one")
            reference = replace(reference, at=state)
        return reference

    def resolve_request(self, request: NamedRequest, at: str | int | None = None) -> TableReference:
        """The table of a request; ``t.blocks`` is also sought in the current namespace, where Spark does not."""
        parts, within = request.identifier, request.within
        try:
            return self.resolve(parts, at)
        except NotFound:
            if not within or len(parts) == 1 or is_place(parts[0]):
                raise
            try:
                return self.resolve((*within, *parts), at)
            except NotFound:
                if self.require_warehouse().table_exists((*within, parts[0])):  # of which there is nothing of that name
                    raise
            raise

    def open(self, reference: TableReference) -> Table:
        """The table of a reference, as its branch is now or as it was. Raises NotFound, StorageError."""
        url, at, tail = reference.url, reference.at, reference.tail
        try:
            return open_table(url, reference.branch, at, options=self.options, host=self.host, tail=tail)
        except NotFound:
            if not isinstance(at, str) or reference.branch != "main":
                raise
            head = open_table(url, options=self.options, host=self.host)
            if at not in list_branches(head.stored.store):
                raise
        at = list_branches(head.stored.store)[at].snapshot_id
        return open_table(url, at=at, options=self.options, tail=tail)

    def open_at(self, reference: TableReference, at: str | None) -> Table:
        """The table of a reference, or what it was ``at`` a snapshot id, a tag or a time. Raises NotFound."""
        return self.open(reference if at is None else replace(reference, at=at))

    def open_to_change(self, request: NamedRequest) -> tuple[TableReference, Table]:
        """The table that a statement changes. Raises ReadOnly for an old version, and for a view of its metadata."""
        reference = self.resolve_request(request)
        check_changeable(reference)
        return reference, self.open(reference)

    def raise_if_part(self, parts: Identifier, within: Identifier, done: str) -> None:
        """Raise ReadOnly for a name that has no entry of its own: of a tag, a branch or metadata of a table.

        ``within``: the current namespace, in which the table is sought, too.
        """
        for name in dict.fromkeys([parts, (*within, *parts)]):
            try:
                reference, suffixes = self._find_table(name)
            except NotFound:
                continue
            if suffixes:
                raise ReadOnly(
                    f"{'.'.join(parts)} is of the table {reference.shown}, and not {done} by itself: tags and branches "
                    f"end by CALL system.untag and system.drop_branch"
                )
            return

    def _find_table(self, parts: Identifier) -> tuple[TableReference, Identifier]:
        """The table that a name begins with, and what follows it."""
        if is_place(parts[0]):
            return TableReference(f"{self.catalog}.`{parts[0]}`", parts[0]), parts[1:]
        warehouse = self.require_warehouse().warehouse
        state = warehouse.state()
        for end in range(len(parts), max(len(parts) - 3, 0), -1):
            try:
                named = state.find_table(parts[:end])
            except NotFound:
                continue
            shown, url = f"{self.catalog}.{named.name}", open_table_store(warehouse.store, named.location).url
            if len(self.shown_by_url) >= MAX_SHOWN:
                self.shown_by_url.clear()
            self.shown_by_url[url] = shown
            return TableReference(shown, url, named), parts[end:]
        state.find_table(parts)
        raise NotFound(f"there is no table {join_identifier(parts)!r}")


def check_changeable(reference: TableReference) -> None:
    """Raise ReadOnly for what is no head of a branch."""
    if reference.view is not None:
        raise ReadOnly(f"{reference.shown} shows what there is to see of a table: change the table itself")
    if reason := why_fixed(reference):
        raise ReadOnly(reason)


def why_fixed(reference: TableReference) -> str:
    """Why rows cannot be changed there, and what can; empty for the head of a branch."""
    if reference.at is not None:
        return f"{reference.shown} is the table as it was at {reference.at!r}: change a branch of it"
    return "" if reference.tail else f"{reference.shown} is the table without its hot rows: change the table itself"


def is_place(name: str) -> bool:
    """Whether a name is a path or a URL: no name in a warehouse has a slash."""
    return "/" in name


def _with_suffix(reference: TableReference, suffix: str, shown: str) -> TableReference:
    folded = suffix.lower()
    if reference.view is None and folded in METADATA_TABLES:
        return replace(reference, shown=f"{reference.shown}.{folded}", view=folded)
    if reference.view is None and folded == _BASE:
        return replace(reference, shown=f"{reference.shown}.{folded}", tail=False)
    if reference.view is None and folded.startswith(_BRANCH_PREFIX):
        return replace(reference, shown=f"{reference.shown}.{suffix}", branch=suffix[len(_BRANCH_PREFIX) :])
    if reference.view is None and folded.startswith(_TAG_PREFIX):
        return replace(reference, shown=f"{reference.shown}.{suffix}", at=suffix[len(_TAG_PREFIX) :])
    raise NotFound(
        f"there is no table {shown!r}: of a table there are {', '.join(METADATA_TABLES)}, {_BASE}, {_BRANCH_PREFIX}… "
        f"and {_TAG_PREFIX}…"
    )
