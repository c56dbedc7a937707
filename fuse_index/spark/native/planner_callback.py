"""The endpoint that Spark calls while it plans a query: which blocks may hold an answer to these filters?

A remote procedure call with a memo. One ``PlannerCallback`` per session takes requests, as JSON, from threads of the
JVM, hands them to a ``Planner``, and encodes its replies as bytes. It remembers replies by the text of the request,
since Spark asks the same two or three times per query. It never raises: a reply without a mask means that every block
is read. Knows no table.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from math import inf
from typing import ClassVar, Literal, Protocol

import numpy as np
import numpy.typing as npt

from fuse_index.errors import FuseIndexError, InputError
from fuse_index.pruning.explanation import Explanation
from fuse_index.spark.native.column_estimates import ColumnEstimate
from fuse_index.spark.native.lru_cache import LruCache
from fuse_index.spark.protocol import (
    DOUBTFUL_SECONDS,
    AnswerAggregate,
    EstimateColumns,
    FindSourceIndex,
    JoinKeys,
    Prune,
    Question,
    ReadRows,
    Refresh,
    decode_question,
)
from fuse_storage import StorageError

_logger = logging.getLogger("fuse_index.spark")

_MAX_TEXT_KEY = 10_000
"""Characters of a request that is remembered as it is; of a longer one, which may have megabytes, by its hash."""

_MAX_INT = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class PruneReply:
    """What a scan must read.

    ``block_mask``: bool, shape (n,), True for each of the snapshot's n blocks to read. ``ranges``: int64, shape (k, 3):
    a block, and the first byte and the number of bytes of zones of it to read; a block without a range is read whole.
    ``certain_rows``: so many rows at least the filters are true on. ``named_rows``: how many rows they may be true on,
    where votes name those one by one; else None.
    """

    block_mask: npt.NDArray[np.bool_]
    explanation: Explanation
    ranges: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 3), np.int64))
    certain_rows: int = 0
    named_rows: int | None = None


@dataclass(frozen=True, slots=True)
class RefreshReply:
    """A newer snapshot of the same schema, and its files as ``pack_file_listing`` gives them."""

    snapshot_id: str
    file_listing: bytes


@dataclass(frozen=True, slots=True)
class SourceIndexReply:
    """A table that votes on files of a source, as ``SourceIndex.java`` reads it, and its files."""

    description: str
    file_listing: bytes


class SourceIndexFinder(Protocol):
    """The service that knows which tables vote on files of sources. Its method may raise, and take long."""

    def find(self, question: FindSourceIndex) -> SourceIndexReply | Literal["unchanged"] | None:
        """The table, unless it is the one that the question names; None where there is none."""
        ...


@dataclass(frozen=True, slots=True)
class AggregateReply:
    """What is known of an aggregate without reading rows, and what is left to scan.

    ``scan_mask``: bool, shape (n,), True for each of the snapshot's n blocks whose rows Spark must still add up.
    ``states``: an Arrow stream of the states of all others; its columns are the groups, then the parts of each
    aggregate in turn. None where nothing is answered.
    """

    scan_mask: npt.NDArray[np.bool_]
    states: bytes | None
    explanation: Explanation


class LeftToExecutors(InputError):
    """Executors are to read the rows: they are more than was asked for, took longer, or Spark may raise on one."""

    code = "LEFT_TO_EXECUTORS"


class Planner(Protocol):
    """The service behind the endpoint, which knows tables.

    All methods may raise, take long, and run on several threads at once.
    """

    def prune_blocks(self, request: Prune) -> PruneReply:
        """Which blocks may hold rows that the filters are true on."""
        ...

    def answer_aggregate(self, request: AnswerAggregate) -> AggregateReply:
        """What is known of an aggregate; raises nothing for what is not known."""
        ...

    def read_rows(self, request: ReadRows) -> bytes:
        """The rows on which the filters are true, as an Arrow stream of the columns that the request names.

        Others may be among them. Raises LeftToExecutors beyond ``max_bytes`` and ``seconds``.
        """
        ...

    def column_statistics(self, request: EstimateColumns) -> Mapping[str, ColumnEstimate]:
        """For each column what an optimizer may know of it in the blocks that the filters leave."""
        ...

    def may_prune_by_keys(self, request: JoinKeys) -> Sequence[bool]:
        """For each term: whether blocks may be left out by the values that a join finds for it."""
        ...

    def refresh_snapshot(self, request: Refresh) -> RefreshReply | None:
        """The head of the branch; None if the request has it. Raises if the schema is another one by now."""
        ...


class PlannerCallback:
    """A session's endpoint, with a memo of its replies.

    A reply begins with byte 1, the number of blocks and a bit for each; or it is byte 0 and the reason why there is no
    mask. To a scan follow, as ints, how many zones are read, how many there are, how many rows match for certain, how
    many are named, and how many ranges; then each range, as longs: block, first byte, number of bytes. All big-endian.
    Rows are byte 1 and an Arrow stream, and are not remembered; statistics of columns are byte 1 and JSON. Of keys of
    joins it is told by byte 1, and for each by byte 1 if it may leave out blocks, else by 0.
    """

    MAX_REMEMBERED_PRUNINGS: ClassVar[int] = 256
    MAX_REMEMBERED_AGGREGATES: ClassVar[int] = 32
    MAX_REMEMBERED_KEYS: ClassVar[int] = 256
    FAULTY_REPLY_SECONDS: ClassVar[float] = DOUBTFUL_SECONDS
    """So long a reply that a fault has spoiled is remembered: for the query that is being planned, and not for ever."""

    def __init__(self, planner: Planner, source_indexes: SourceIndexFinder | None = None) -> None:
        self._planner = planner
        self._source_indexes = source_indexes
        self._aggregates: LruCache[str, tuple[bytes, Explanation]] = LruCache(self.MAX_REMEMBERED_AGGREGATES)
        self._prunings: LruCache[str, tuple[bytes, Explanation]] = LruCache(self.MAX_REMEMBERED_PRUNINGS)
        self._keys: LruCache[str, bytes] = LruCache(self.MAX_REMEMBERED_KEYS)

    def apply(self, request: str) -> bytes:
        try:
            return self._reply(request)
        except LeftToExecutors as refusal:
            return b"\0" + str(refusal).encode()
        except BaseException as failure:  # whatever it is, the query must go on
            told = isinstance(failure, StorageError | FuseIndexError)  # in a sentence: where it was raised adds nothing
            _logger.warning("no index was asked about %.1000s: %s", request, failure, exc_info=not told)
            return b"\0" + f"{type(failure).__name__}: {failure}".encode(errors="replace")

    def explain(self, request: str) -> Explanation:
        """The explanation of a reply, from the memo if it is still there. Raises what the planner raises."""
        question = decode_question(request)
        if not isinstance(question, Prune | AnswerAggregate):
            raise InputError(f"{type(question).__name__} has no explanation")
        return self._explained_reply(request, question)[1]

    def _reply(self, text: str) -> bytes:
        question: Question = decode_question(text)
        match question:
            case Prune() | AnswerAggregate():
                return self._explained_reply(text, question)[0]
            case ReadRows():
                return b"\1" + self._planner.read_rows(question)
            case EstimateColumns():
                columns = self._planner.column_statistics(question)
                return b"\1" + json.dumps({name: asdict(estimate) for name, estimate in columns.items()}).encode()
            case JoinKeys():
                # Who said no may have had no time: it costs little to ask again.
                return self._keys.get(
                    text,
                    lambda: b"\1" + bytes(self._planner.may_prune_by_keys(question)),
                    lambda reply: inf if all(reply) else self.FAULTY_REPLY_SECONDS,
                )
            case Refresh():
                return _encode_refresh_reply(self._planner.refresh_snapshot(question))
            case FindSourceIndex():
                found = None if self._source_indexes is None else self._source_indexes.find(question)
                return _encode_source_index(found)

    def _explained_reply(self, text: str, question: Prune | AnswerAggregate) -> tuple[bytes, Explanation]:
        name = text if len(text) <= _MAX_TEXT_KEY else sha256(text.encode()).hexdigest()
        if isinstance(question, AnswerAggregate):
            return self._aggregates.get(
                name,
                lambda: _encode_aggregate_reply(self._planner.answer_aggregate(question)),
                self._reply_ttl_seconds,
            )
        return self._prunings.get(
            name, lambda: _encode_prune_reply(self._planner.prune_blocks(question)), self._reply_ttl_seconds
        )

    def _reply_ttl_seconds(self, reply: tuple[bytes, Explanation]) -> float:
        return self.FAULTY_REPLY_SECONDS if reply[1].faulty else inf


def _encode_prune_reply(reply: PruneReply) -> tuple[bytes, Explanation]:
    totals = reply.explanation.zones
    certain_rows = min(reply.certain_rows, _MAX_INT)
    named_rows = _MAX_INT if reply.named_rows is None else min(reply.named_rows, _MAX_INT)
    counts = np.array([totals.kept, totals.total, certain_rows, named_rows, len(reply.ranges)])
    ranges = np.ascontiguousarray(reply.ranges.astype(">i8")).tobytes()
    return _encode_mask(reply.block_mask) + counts.astype(">i4").tobytes() + ranges, reply.explanation


def _encode_aggregate_reply(reply: AggregateReply) -> tuple[bytes, Explanation]:
    if reply.states is None:
        return b"\0", reply.explanation
    return _encode_mask(reply.scan_mask) + reply.states, reply.explanation


def _encode_mask(mask: npt.NDArray[np.bool_]) -> bytes:
    return b"\1" + len(mask).to_bytes(4, "big") + np.packbits(mask, bitorder="little").tobytes()


def _encode_refresh_reply(reply: RefreshReply | None) -> bytes:
    if reply is None:
        return b"\1"
    snapshot_id = reply.snapshot_id.encode()
    return bytes([1, len(snapshot_id)]) + snapshot_id + reply.file_listing


def _encode_source_index(reply: SourceIndexReply | Literal["unchanged"] | None) -> bytes:
    """Byte 1: alone for none, with byte 0 for an unchanged one; else with a length, the description, and the files."""
    if reply is None or reply == "unchanged":
        return b"\1" if reply is None else b"\1\0"
    description = reply.description.encode()
    return b"\1" + len(description).to_bytes(4, "big") + description + reply.file_listing
