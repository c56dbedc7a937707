"""A table is made anew under its own history: other columns and rows, and all versions of before stay.

What is to come is prepared on a branch of its own, where rows can be written to it, and becomes the next snapshot of
the table's branch in one commit. A column of the same name and type keeps its id. Where others gave the table columns
meanwhile, by the ids that were drawn here too, ids are drawn once more, and the rows written under them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from fuse_storage.commit.actions import OverwriteSegments, RestoreSnapshot
from fuse_storage.commit.draft import Draft
from fuse_storage.commit.snapshot_hold import hold_snapshot
from fuse_storage.deletion.live_rows import read_live_rows
from fuse_storage.errors import CommitUnknown, Conflict, NotFound, StorageError
from fuse_storage.maintenance.branches import create_branch, drop_branch, list_branches
from fuse_storage.metadata.encoding import utc_now
from fuse_storage.metadata.file_ref import new_id
from fuse_storage.metadata.snapshot import KEY_PROPERTY, Snapshot
from fuse_storage.partitions.spec import PARTITION_PROPERTY, PartitionSpec
from fuse_storage.primary_key.row_rules import row_rules
from fuse_storage.schema.schema import Field, Schema, assign_field_ids
from fuse_storage.table import StoredTable

_BRANCH_PREFIX = "replacement-"
_LIMITS_PROPERTY = "text_limits"
"""What Spark's statements say of lengths of texts, by ids of columns."""
MAX_REPLACEMENT_TIME = timedelta(days=1)
"""How long a replacement may take: the branch of an older one was left by a process that died, and is dropped."""


def can_be_replaced(table: StoredTable, fresh: Snapshot) -> bool:
    """Whether a new table could go on with this one's history.

    It can if it has the same primary key and the same partition columns, which handles that are open rely on, and if
    the table's files are its own. ``fresh``: the first snapshot of the new table.
    """
    return table.snapshot.source is None and _promises(table.snapshot) == _promises(fresh)


def _promises(snapshot: Snapshot) -> tuple[list[tuple[str, Any]], list[tuple[str, Any]]]:
    """The columns of the primary key, and those that rows are partitioned by: what stays for the life of a table."""
    spec = PartitionSpec.from_snapshot(snapshot)
    key = [snapshot.schema.by_id(column_id) for column_id in row_rules(snapshot).key_ids]
    partitions = [] if spec is None else list(spec.fields)
    return [(field.name, field.type) for field in key], [(field.name, field.type) for field in partitions]


def stage_replacement(table: StoredTable, fresh: Snapshot) -> StoredTable:
    """Begin a branch on which the table is what ``fresh`` is, the first snapshot of a new table: without rows.

    Raises as ``create_branch``.
    """
    _drop_left_branches(table)
    staged = create_branch(table, f"{_BRANCH_PREFIX}{new_id()}")
    try:
        return staged.transaction().stage(_Redefine(fresh)).commit("replace")
    except BaseException:
        abort_replacement(staged)
        raise


def commit_replacement(table: StoredTable, staged: StoredTable) -> StoredTable:
    """Make what was staged the next snapshot of the table's branch, whatever others did to the table meanwhile.

    Raises StorageError; the table is then as it was.
    """
    staged = staged.refresh()
    while True:
        try:
            with hold_snapshot(staged.store, staged.branch, staged.entry):
                action = _TakePlace(staged.snapshot, force=True, name="replace")
                done = table.refresh().transaction().stage(action).commit("replace")
        except CommitUnknown:
            raise
        except StorageError as failure:
            taken = isinstance(failure, Conflict) and _ids_meet(table.refresh().snapshot, staged.snapshot)
            try:
                again = _stage_again(table, staged) if taken else None
            finally:
                abort_replacement(staged)
            if again is None:
                raise
            staged = again
        else:
            abort_replacement(staged)
            return done


def _ids_meet(head: Snapshot, staged: Snapshot) -> bool:
    """Whether a schema that was staged has the id of another one at the head.

    Who draws ids for columns makes a schema of the next id for them: where ids of columns meet, those of schemas do.
    """
    return any(head.schemas.get(schema_id, schema) != schema for schema_id, schema in staged.schemas.items())


@dataclass(frozen=True, slots=True)
class _TakePlace(RestoreSnapshot):
    """Make the table what was staged. Raises Conflict where others gave columns of theirs the ids of its columns."""

    def apply(self, draft: Draft) -> None:
        if _ids_meet(draft.head, self.old):
            raise Conflict(
                "others gave the table columns while indexes were made on what is to take its place: begin again, and "
                "create them once it is there"
            )
        RestoreSnapshot.apply(self, draft)


def _stage_again(table: StoredTable, staged: StoredTable) -> StoredTable | None:
    """Stage the same columns and rows under ids that the table's head does not know; None where there are indexes."""
    if staged.snapshot.definitions:  # they are on columns by their ids
        return None
    again = stage_replacement(table.refresh(), staged.snapshot)
    try:
        blocks, names = staged.blocks(), staged.snapshot.schema.names
        with again.writer() as writer:
            for block in range(len(blocks)):
                writer.write(read_live_rows(staged, blocks, block, names))
                writer.end_block()
            segments = writer.finish()
        action = OverwriteSegments(tuple(segments), force=True, keys_once=True)
        return again.transaction().stage(action, segments).commit("replace")
    except BaseException:
        abort_replacement(again)
        raise


def abort_replacement(staged: StoredTable) -> None:
    """Drop the branch of what was staged. A failure is of no account: the next replacement does it."""
    with suppress(StorageError):
        drop_branch(staged.store, staged.branch)


def _drop_left_branches(table: StoredTable) -> None:
    for name, head in list_branches(table.store).items():
        if name.startswith(_BRANCH_PREFIX) and utc_now() - head.timestamp > MAX_REPLACEMENT_TIME:
            with suppress(NotFound):  # somebody else did
                drop_branch(table.store, name)


@dataclass(frozen=True, slots=True)
class _Redefine:
    """Take away all rows and indexes, and give the table the columns, keys and properties of a new one."""

    fresh: Snapshot
    name: str = "replace"

    def apply(self, draft: Draft) -> None:
        draft.schema_state = redefined(draft.head, self.fresh)
        draft.segment_rows, draft.tail_rows, draft.definitions = draft.segment_rows.slice(0, 0), None, {}
        draft.summary["removed_rows"] = draft.head.row_count
        draft.same_rows, draft.keeps_key, draft.changed = False, True, True


def redefined(snapshot: Snapshot, fresh: Snapshot) -> Snapshot:
    """Give a table's snapshot the columns, keys and properties of another table's first one.

    A column of the same name and type keeps its id and its name in files; all others get ids and names that no column
    of the table ever had. Defaults are those of ``fresh``.
    """
    known = {field.name: field for field in snapshot.schema.fields}
    ids = iter(range(snapshot.last_column_id + 1, 1 << 31))
    used = {part.physical_name for schema in snapshot.schemas.values() for top in schema.fields for part in top.walk()}
    used.update(name for names in snapshot.names.values() for name in names)
    fields: list[Field] = []
    for field in fresh.schema.fields:
        old = known.get(field.name)
        if old is not None and old.arrow.type.equals(field.arrow.type, check_metadata=True):
            field_now = old
        else:
            (field_now,) = assign_field_ids([field.arrow], ids, {*used, *(each.physical_name for each in fields)})
        said = {name: getattr(field, name) for name in ("nullable", "initial_default", "write_default", "comment")}
        fields.append(replace(field_now, **said))
    new_ids = dict(zip(_ids(fresh.schema.fields), _ids(fields), strict=True))
    is_same = tuple(fields) == snapshot.schema.fields  # followers then need not begin anew
    schema_id = snapshot.schema_id if is_same else max(snapshot.schemas) + 1
    parts = [part for field in fields for part in field.walk()]
    names = {part.id: tuple(dict.fromkeys([*snapshot.names.get(part.id, ()), part.name])) for part in parts}
    return replace(
        snapshot,
        schema_id=schema_id,
        schemas={**snapshot.schemas, schema_id: Schema(schema_id, tuple(fields))},
        last_column_id=max([snapshot.last_column_id, *(part.id for part in parts)]),
        names={**snapshot.names, **names},
        cluster_ids=tuple(new_ids[column_id] for column_id in fresh.cluster_ids),
        properties=_with_ids(fresh.properties, new_ids),
    )


def _ids(fields: Any) -> Iterator[int]:
    for field in fields:
        yield from (part.id for part in field.walk())


def _with_ids(properties: Mapping[str, Any], new_ids: Mapping[int, int]) -> dict[str, Any]:
    """Properties of a new table, of which those that hold ids of columns hold the ones that these have now."""
    by_id = {name: properties[name] for name in (KEY_PROPERTY, PARTITION_PROPERTY) if name in properties}
    lists = {name: [new_ids[column_id] for column_id in held] for name, held in by_id.items()}
    limits = {str(new_ids[int(column_id)]): held for column_id, held in properties.get(_LIMITS_PROPERTY, {}).items()}
    return {**properties, **lists, **({_LIMITS_PROPERTY: limits} if limits else {})}
