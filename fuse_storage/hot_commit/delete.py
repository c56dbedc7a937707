"""Whole blocks of the base go, and keys are deleted, in a table with a primary key, by one commit: a snapshot.

The blocks are not read. The base has each key once, and the tail counts before it, so no older row comes to light where
a block goes; rows of the tail go by their keys, lest they uncover what they hide.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from fuse_storage.commit.head import COMMIT_TIMEOUT_SECONDS, Head
from fuse_storage.commit.replace_blocks import BlockReplacement
from fuse_storage.commit.sidecar_writer import SidecarBuilder
from fuse_storage.commit.transaction import Transaction
from fuse_storage.hot_commit.append import HotAttempt, commit_hot_blocks
from fuse_storage.hot_commit.put import stage_puts

_HeadT = TypeVar("_HeadT", bound=Head)
_OPERATION = "delete"


@dataclass(frozen=True, slots=True)
class WholeBlocks:
    """Blocks of the base that go with all their rows, by their ids.

    ``segment_ids``: of the segments that they are in. ``builders``: of what indexes know of the other blocks there.
    ``row_count``: the rows that count in them.
    """

    ids: tuple[str, ...]
    segment_ids: frozenset[str]
    builders: Sequence[SidecarBuilder]
    row_count: int


def delete_blocks(
    table: _HeadT, blocks: WholeBlocks, deleted_keys: pa.Table, still_holds: Callable[[_HeadT], bool]
) -> _HeadT:
    """Take blocks away, and delete keys, of which there may be none. Gives the table after it.

    ``deleted_keys``, ``still_holds``: as for ``put_rows``; it is False of a state that has not these blocks. Raises as
    ``put_rows``.
    """
    clock, staged = time.monotonic(), stage_puts(table, table.snapshot.schema.empty_table(), deleted_keys)

    def begin(head: _HeadT) -> Transaction[_HeadT]:
        replacements = [BlockReplacement((block_id,)) for block_id in blocks.ids]
        transaction = Transaction(head, {builder.key: builder for builder in blocks.builders})
        return transaction.replace_blocks(replacements, (), blocks.segment_ids, name=_OPERATION)

    summary = {"deleted_rows": blocks.row_count + len(deleted_keys)}
    attempt = HotAttempt(
        table.snapshot, staged.blocks, None, _OPERATION, staged.started, clock, still_holds, begin, summary
    )
    return commit_hot_blocks(table.refresh(), attempt, COMMIT_TIMEOUT_SECONDS)
