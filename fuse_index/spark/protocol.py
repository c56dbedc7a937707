"""What Python and the planner's JVM say to each other in the same words, and the limits that both keep to.

``java/rpc/Protocol.java`` has the same names and values, and a test holds the two together. Knows no table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec

from fuse_index.operations.merge_match import MAX_KEYS_IN_PREDICATE
from fuse_index.predicate import Context
from fuse_index.sql.call_markers import CALL_MARK_PREFIX
from fuse_index.sql.catalyst_terms import CatalystTree

MAX_KEYS: Final = MAX_KEYS_IN_PREDICATE
"""Keys of a join or a MERGE beyond which nobody asks about them one by one: nearly every block has one of so many."""

DOUBTFUL_SECONDS: Final = 30
"""So long an answer is remembered that may be better later: a fault has spoiled it, or there was no time."""

LATE_ROWS: Final = "the driver had not read them within %d ms"
"""Why executors read rows after all, whichever side notices."""

CALL_MARK: Final = CALL_MARK_PREFIX + "{"
"""How the mark of a call of a plugin's function begins."""

ARGUMENT: Final = "fuse argument "
"""What stands for an argument, by its number, in the text that Python writes for such a call."""

UDF: Final = "fuse udf"
"""What stands for the call of a Python UDF there."""


class Change(StrEnum):
    """What a statement does to the rows of a table."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    OVERWRITE_PARTITIONS = "overwrite partitions"
    """The partitions that rows come for."""
    TRUNCATE = "truncate"
    DELETE = "delete"
    UPDATE = "update"
    MERGE = "merge"
    INSERT_UNMATCHED = "insert unmatched"
    """The inserts of a MERGE that does nothing else."""


class SnapshotQuestion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="question"):
    """What a planner is asked about a snapshot of a table that its session was given."""

    url: str
    snapshot: str
    """The key of a state, as ``state_key`` gives it."""


class Refresh(SnapshotQuestion, tag="refresh", frozen=True, kw_only=True):
    """Which is the newest snapshot of the branch, if it is not this one?"""

    branch: str


class FindSourceIndex(SnapshotQuestion, tag="find source index", frozen=True, kw_only=True):
    """Which table votes on files of a source, if it is not this one, or in another state?

    ``url`` and ``snapshot`` are empty where none is known.
    """

    format: str
    location: str
    unknown_files: int
    """How many files a query met, since this was asked last, that the table does not know."""


class ScanQuestion(SnapshotQuestion, frozen=True, kw_only=True):
    """What a planner is asked about rows of a snapshot: those that all filters are true on."""

    mode: str
    context: Context
    filters: list[CatalystTree]
    top: Mapping[str, Any] | None = None
    """The first rows that are wanted, as ``TopRule.java`` writes it; None: all."""

    def plan_key(self) -> str:
        """What two questions have in common whose plans are the same."""
        return json.dumps([self.url, self.snapshot, self.mode, str(self.context), self.filters, self.top])


class Prune(ScanQuestion, tag="prune", frozen=True):
    """Which blocks may hold the rows?"""


class ReadRows(ScanQuestion, tag="read rows", frozen=True, kw_only=True):
    """Which are the rows? Others may be among them, unless ``exact``."""

    columns: list[str]
    exact: bool
    max_bytes: int
    seconds: float


class EstimateColumns(ScanQuestion, tag="estimate columns", frozen=True, kw_only=True):
    """What may an optimizer know of columns in blocks that may hold the rows?"""

    columns: list[str]


class JoinKeys(ScanQuestion, tag="join keys", frozen=True, kw_only=True):
    """May values that a join finds for terms leave out blocks?"""

    keys: list[CatalystTree]


class AnswerAggregate(ScanQuestion, tag="answer aggregate", frozen=True, kw_only=True):
    """What is known of aggregates of the rows, without reading any?"""

    groups: list[CatalystTree]
    aggregates: list[Mapping[str, Any]]


Question = Prune | ReadRows | EstimateColumns | JoinKeys | AnswerAggregate | Refresh | FindSourceIndex


def decode_question(text: str) -> Question:
    """The question that the JVM wrote. Raises msgspec.ValidationError, which names the member, for any other text."""
    # Metadata of columns, which trees have, may hold numbers that only Python's own reader takes.
    return msgspec.convert(json.loads(text), Question)  # type: ignore[no-any-return]
