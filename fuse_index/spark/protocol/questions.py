"""What Spark's planner asks of a snapshot, and of the indexes of a source, as tagged values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from fuse_index.predicate import Context
from fuse_index.spark.protocol.words import tag_of
from fuse_index.sql.catalyst_terms import CatalystTree


class SnapshotQuestion(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="question", tag=tag_of
):
    """What a planner is asked about a snapshot of a table that its session was given."""

    url: str
    snapshot: str
    """The key of a state, as ``state_key`` gives it."""


class Refresh(SnapshotQuestion, frozen=True, kw_only=True):
    """Which is the newest snapshot of the branch, if it is not this one?"""

    branch: str


class FindSourceIndex(SnapshotQuestion, frozen=True, kw_only=True):
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
    off: str = ""
    """Indexes that are not asked, by commas, as the session's setting ``spark.fuse.index.off`` has them."""
    top: Mapping[str, Any] | None = None
    """The first rows that are wanted, as ``OrderedLimit.java`` writes it; None: all."""

    def plan_key(self) -> str:
        """What two questions have in common whose plans are the same."""
        return json.dumps([self.url, self.snapshot, self.mode, str(self.context), self.filters, self.top, self.off])


class Prune(ScanQuestion, frozen=True):
    """Which blocks may hold the rows?"""


class ReadRows(ScanQuestion, frozen=True, kw_only=True):
    """Which are the rows? Others may be among them, unless ``exact``."""

    columns: list[str]
    exact: bool
    max_bytes: int
    seconds: float


class EstimateColumns(ScanQuestion, frozen=True, kw_only=True):
    """What may an optimizer know of columns in blocks that may hold the rows?"""

    columns: list[str]


class JoinKeys(ScanQuestion, frozen=True, kw_only=True):
    """May values that a join finds for terms leave out blocks?"""

    keys: list[CatalystTree]


class AnswerAggregate(ScanQuestion, frozen=True, kw_only=True):
    """What is known of aggregates of the rows, without reading any?"""

    groups: list[CatalystTree]
    aggregates: list[Mapping[str, Any]]

    def plan_key(self) -> str:
        return json.dumps([super().plan_key(), self.groups, self.aggregates])


Question = Prune | ReadRows | EstimateColumns | JoinKeys | AnswerAggregate | Refresh | FindSourceIndex


def decode_question(text: str) -> Question:
    """The question that the JVM wrote. Raises msgspec.ValidationError, which names the member, for any other text."""
    # Metadata of columns, which trees have, may hold numbers that only Python's own reader takes.
    return msgspec.convert(json.loads(text), Question)  # type: ignore[no-any-return]
