"""Tables over files of others: created, taken to another state of their source, and made a table of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from time import monotonic
from typing import Any

from fuse_storage.attach.source_columns import ColumnMatch, SourceColumn, evolve_to
from fuse_storage.commit.draft import Draft
from fuse_storage.commit.head import COMMIT_TIMEOUT_SECONDS, create_ref, write_snapshot
from fuse_storage.errors import AlreadyExists, Conflict, InvalidArgument, SchemaError, TableUrl, Unsupported
from fuse_storage.location import raise_if_occupied, validate_properties
from fuse_storage.metadata.file_ref import new_id
from fuse_storage.metadata.refs import MAIN_BRANCH, Branch, next_timestamp
from fuse_storage.metadata.snapshot import SOURCE_PROPERTY, Snapshot
from fuse_storage.schema.schema import Field, Schema
from fuse_storage.store.store import Store
from fuse_storage.table import StoredTable
from fuse_storage.validation.features import (
    FOREIGN_FILES_FEATURE,
    PAGE_ZONES_FEATURE,
    VOTES_ONLY_FEATURE,
    schema_features,
    schema_writer_features,
)


@dataclass(frozen=True, slots=True)
class SourceChoice:
    """What was said of columns when a source was attached. ``columns``: the names of those wanted; None: all.

    ``widen``: whole numbers in some files, and doubles in others, are doubles.
    """

    columns: tuple[str, ...] | None = None
    widen: bool = False


@dataclass(frozen=True, slots=True)
class SourceVersion:
    """A state of a source. ``version``: what the source calls it; ``unread``: names in files that are not read.

    ``deletes``: up to where deletes were followed that may be of any file, as the source says it. ``left_out``: why a
    column of the source is none of the table, by its name. ``converted``: names of columns that some files hold in a
    form which readers here convert, and Spark's does not read; ``shredded``: of VARIANTs that some files hold in parts.
    ``untyped``: names of columns of which no file says the
    type, since all of them hold NULL. ``told_variants``: whether some file has Parquet's logical type VARIANT.
    ``etag``: what tells the source's own record of the version from one of another life of the source, or of other
    columns.
    """

    format: str
    url: str
    version: str | int | None
    unread: tuple[str, ...] = ()
    adopted: bool = False
    deletes: str | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)
    converted: tuple[str, ...] = ()
    untyped: tuple[str, ...] = ()
    choice: SourceChoice = SourceChoice()
    shredded: tuple[str, ...] = ()
    told_variants: bool = False
    etag: str | None = None

    def to_property(self) -> dict[str, Any]:
        """The state of a source as a snapshot's property has it."""
        members = {"format": self.format, "url": self.url, "version": self.version, "unread": list(self.unread)}
        more = {
            "adopted": self.adopted,
            "deletes": self.deletes,
            "left_out": dict(self.left_out),
            "converted": list(self.converted),
            "shredded": list(self.shredded),
            "told_variants": self.told_variants,
            "etag": self.etag,
            "untyped": list(self.untyped),
            "choice": {name: value for name, value in asdict(self.choice).items() if value not in (None, False)},
        }
        return members | {name: value for name, value in more.items() if value not in (None, False, {}, [])}

    @staticmethod
    def of(snapshot: Snapshot) -> SourceVersion:
        """Which state of its source a snapshot has. Raises InvalidArgument for a table that was attached to none."""
        found = snapshot.source
        if found is None:
            raise InvalidArgument("this table was not attached to a source: it has rows of its own")
        chosen = found.get("choice") or {}
        columns = None if chosen.get("columns") is None else tuple(chosen["columns"])
        return SourceVersion(
            found["format"],
            found["url"],
            found["version"],
            tuple(found["unread"]),
            bool(found.get("adopted")),
            found.get("deletes"),
            dict(found.get("left_out") or {}),
            tuple(found.get("converted") or ()),
            tuple(found.get("untyped") or ()),
            SourceChoice(columns, bool(chosen.get("widen"))),
            tuple(found.get("shredded") or ()),
            bool(found.get("told_variants")),
            found.get("etag"),
        )


def has_page_zones(snapshot: Snapshot) -> bool:
    """Whether zones of foreign files may be parts of their row groups."""
    return PAGE_ZONES_FEATURE in snapshot.reader_features


def first_attached_snapshot(
    store: Store,
    columns: Sequence[SourceColumn],
    source: SourceVersion,
    properties: Mapping[str, Any],
    votes_only: bool = False,
) -> Snapshot:
    """The first snapshot of a table over a source, without any of its files yet. Nothing is written.

    ``votes_only``: no row will be read through it.

    Raises AlreadyExists where there is a table or anything else, SchemaError, InvalidArgument.
    """
    if not columns:
        which = "columns that could be voted on" if votes_only else "columns"
        raise SchemaError(f"{source.url} has no {which}: a table needs at least one")
    raise_if_occupied(Branch(store, MAIN_BRANCH))
    empty = Snapshot(
        id=new_id(),
        sequence=1,
        branch=MAIN_BRANCH,
        commit_id=new_id(),
        parent=None,
        timestamp=next_timestamp(None),
        operation="attach",
        schema_id=0,
        schemas={0: Schema(0, ())},
        last_column_id=0,
        names={},
        properties={**validate_properties(properties), SOURCE_PROPERTY: source.to_property()},
        reader_features=(FOREIGN_FILES_FEATURE, VOTES_ONLY_FEATURE if votes_only else PAGE_ZONES_FEATURE),
    )
    evolved = evolve_to(empty, ColumnMatch.of(empty, columns).fields)
    schemas = {evolved.schema_id: evolved.schema}
    needed = tuple(sorted({*evolved.reader_features, *schema_features(schemas)}))
    written = tuple(schema_writer_features(schemas))
    return replace(evolved, schemas=schemas, reader_features=needed, writer_features=written)


def create_attached_table(store: Store, first: Snapshot) -> StoredTable:
    """Create the table of a first snapshot. Raises AlreadyExists where somebody else just created one."""
    branch, snapshot = Branch(store, MAIN_BRANCH), replace(first, timestamp=next_timestamp(None))
    entry = write_snapshot(store, snapshot, None)
    if not create_ref(branch, entry, monotonic() + COMMIT_TIMEOUT_SECONDS):
        raise AlreadyExists(TableUrl(store.url) + " already is a table: somebody else just created it; open it")
    branch.write_head_hint(1)
    return StoredTable(store, MAIN_BRANCH, entry, snapshot)


@dataclass(frozen=True, slots=True)
class SetSource:
    """Say which state of its source a table has from now on, and the columns of that state.

    A Conflict with any other change of the source's state, or of columns: files would be there twice.
    """

    source: SourceVersion
    fields: tuple[Field, ...]
    name: str = "sync"

    def apply(self, draft: Draft) -> None:
        winner = draft.first_conflicting_commit(
            lambda before, after: (before.source, before.schemas) != (after.source, after.schemas)
        )
        if winner is not None:
            raise Conflict(f"the table was synced, or its columns changed, by {winner}: sync again", str(winner))
        state = set_source(draft.schema_state, self.source, self.fields)
        draft.changed = draft.changed or state != draft.schema_state
        draft.schema_state, draft.syncs = state, True


def set_source(snapshot: Snapshot, source: SourceVersion, fields: tuple[Field, ...]) -> Snapshot:
    """The snapshot with these columns and this state of its source."""
    evolved = evolve_to(snapshot, fields)
    if evolved.source == source.to_property():
        return evolved
    return replace(evolved, properties={**evolved.properties, SOURCE_PROPERTY: source.to_property()})


def adopt_files(snapshot: Snapshot) -> Snapshot:
    """The snapshot as one whose rows are changed here from now on; nothing of it follows the source any more.

    Names that files have and no column does are taken from now on, so that no new column is mistaken for them.

    Raises Unsupported for a column with a dot in its name in files: blocks of ours are found through paths.
    """
    source = SourceVersion.of(snapshot)
    if source.adopted:
        return snapshot
    if dotted := [each.physical_name for each in snapshot.schema.fields if "." in each.physical_name]:
        raise Unsupported(
            f"column {dotted[0]!r} has a dot in its name in the files of {source.url}, which blocks of a table here "
            f"cannot have: copy the rows (create_table, append), or leave the table attached"
        )
    taken = {snapshot.last_column_id + number: (name,) for number, name in enumerate(_parts_of(source.unread), 1)}
    adopted = replace(source, adopted=True)
    return replace(
        snapshot,
        names={**snapshot.names, **taken},
        last_column_id=snapshot.last_column_id + len(taken),
        properties={**snapshot.properties, SOURCE_PROPERTY: adopted.to_property()},
    )


def _parts_of(paths: Iterable[str]) -> list[str]:
    return sorted({path.rpartition(".")[2] for path in paths})
