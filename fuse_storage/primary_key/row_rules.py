"""What holds of the rows of a table: there is one for each primary key, or without one, whatever comes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import pyarrow as pa

from fuse_storage.errors import RESTORE_HINT, Advice, Corrupt, InvalidArgument, SchemaError, TableUrl
from fuse_storage.metadata.segment_frame import SegmentFrame
from fuse_storage.metadata.snapshot import Snapshot
from fuse_storage.primary_key.hidden_rows import KeyedSegmentFrame
from fuse_storage.schema.schema import Field
from fuse_storage.store.store import Store
from fuse_storage.validation.features import PRIMARY_KEY_FEATURE


class _TailedTable(Protocol):
    def without_tail(self: _TableT) -> _TableT: ...


_TableT = TypeVar("_TableT", bound=_TailedTable)


@dataclass(frozen=True, slots=True)
class HeapRules:
    """What holds of rows without a primary key: whatever comes is a row more.

    ``KeyedRules`` has the same methods.
    """

    snapshot: Snapshot

    @property
    def key_ids(self) -> tuple[int, ...]:
        """The ids of the columns of the primary key; none where there is none."""
        return ()

    @property
    def key(self) -> tuple[str, ...]:
        """The names of the columns of the primary key; none where there is none."""
        return ()

    @property
    def why_key_stays(self) -> str:
        """Why a column of the table's key is not dropped, after "it is of the"."""
        return f"table's key {list(self.snapshot.key)}; choose another key first"

    def check_key(self, ids: Sequence[int]) -> None:
        """Raise SchemaError where the key cannot become these columns."""

    def check_partition_column(self, field: Field) -> None:
        """Raise SchemaError for a column by which the table cannot be partitioned."""

    def check_commit(self, after: Snapshot, keeps_key: bool, operation: str) -> None:
        """Raise InvalidArgument for a commit after which there might be two rows of one primary key.

        ``after``: its columns and keys. ``keeps_key``: rows stay what they were, or their keys were looked at.
        """

    def check_puts(self, url: str) -> None:
        """Raise InvalidArgument where rows are not put and deleted by their keys."""
        raise InvalidArgument(TableUrl(url) + " has no primary key: rows are appended, and changed by merge")

    def keeps_row_count(self, before: Snapshot) -> bool:
        """Whether as many rows are counted as in the state before, after a commit that changed none.

        Rows that others hide by their keys are counted while they lie in the tail.
        """
        return self.snapshot.row_count == before.row_count

    def without_hiding(self, table: _TableT) -> _TableT:
        """The part of this table in which no row hides another by its key."""
        return table

    def open_segments(self, store: Store, rows: pa.Table, tail: pa.Table | None) -> SegmentFrame:
        """The segments of the state, of which what later rows hide does not count.

        ``rows``: the list of segments. ``tail``: rows of the hot blocks, if there are any. Raises Corrupt.
        """
        return SegmentFrame(store, self.snapshot, rows, tail)


@dataclass(frozen=True, slots=True)
class KeyedRules:
    """What holds of rows with a primary key: there is at most one for each, the last that was put."""

    snapshot: Snapshot

    @property
    def key_ids(self) -> tuple[int, ...]:
        return self.snapshot.key_ids

    @property
    def key(self) -> tuple[str, ...]:
        return self.snapshot.key

    @property
    def why_key_stays(self) -> str:
        return f"primary key {list(self.key)}, which stays"

    def check_key(self, ids: Sequence[int]) -> None:
        if tuple(ids) != self.key_ids:
            raise SchemaError(f"the primary key {list(self.key)} stays that of its table: make another table")

    def check_partition_column(self, field: Field) -> None:
        if field.id not in self.key_ids:
            raise SchemaError(
                f"the table cannot be partitioned by {field.name!r}, which is not of its primary key "
                f"{list(self.key)}: a row of one key would move from partition to partition; make the column part "
                f"of the key, or cluster by it"
            )

    def check_commit(self, after: Snapshot, keeps_key: bool, operation: str) -> None:
        if not keeps_key:
            raise InvalidArgument(
                f"{operation!r} adds or changes rows without regard to the primary key {list(self.key)}, and is not "
                "done: use " + Advice.call("upsert") + ", " + Advice.call("delete_keys") + " or " + Advice.call("apply")
            )
        for column_id, name in zip(self.key_ids, self.key, strict=True):
            old, new = self.snapshot.schema.by_id(column_id), after.schema.by_id(column_id)
            if (old.type, new.nullable) != (new.type, False):
                raise InvalidArgument(f"column {name!r} is of the primary key: its type stays, and it is never NULL")

    def check_puts(self, url: str) -> None:
        pass

    def keeps_row_count(self, before: Snapshot) -> bool:
        return True

    def without_hiding(self, table: _TableT) -> _TableT:
        return table.without_tail()

    def open_segments(self, store: Store, rows: pa.Table, tail: pa.Table | None) -> SegmentFrame:
        if tail is None:
            return SegmentFrame(store, self.snapshot, rows, tail)
        if not self.key_ids:
            raise Corrupt(
                TableUrl(store.url)
                + f": snapshot {self.snapshot.stored.id} has a primary key of no columns: {RESTORE_HINT}"
            )
        return KeyedSegmentFrame(store, self.snapshot, rows, tail)


def is_keyed(snapshot: Snapshot) -> bool:
    """Whether the table has a primary key. For whoever chooses between two ways, once: others call one of them."""
    return PRIMARY_KEY_FEATURE in snapshot.writer_features


def row_rules(snapshot: Snapshot) -> HeapRules | KeyedRules:
    """What holds of the rows of a state."""
    return KeyedRules(snapshot) if is_keyed(snapshot) else HeapRules(snapshot)
