"""The endpoint that Spark calls while it plans a query: which blocks may hold an answer to these filters?

One ``PlannerCallback`` per session takes requests, as JSON, from threads of the JVM, hands them to a ``Planner``, and
encodes its replies as bytes, which the JVM remembers (``ReplyMemo.java``). Of what was asked it remembers what the JVM
does not. It never raises: a reply without a mask means that every block is read. Knows no table.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from hashlib import sha256
from math import inf
from typing import Any, ClassVar, Literal, Protocol

import msgspec

from fuse_index.errors import FuseIndexError, InputError
from fuse_index.pruning.calls.switches import indexes_off, split_switches
from fuse_index.pruning.explanation import Explanation
from fuse_index.spark.native.column_estimates import ColumnEstimate
from fuse_index.spark.native.lru_cache import LruCache
from fuse_index.spark.protocol.questions import (
    AnswerAggregate,
    EstimateColumns,
    FindSourceIndex,
    JoinKeys,
    Prune,
    Question,
    ReadRows,
    Refresh,
    ScanQuestion,
    decode_question,
)
from fuse_index.spark.protocol.replies import AggregateReply, Framed, KeptPlan, PruneReply, RefreshReply
from fuse_index.spark.protocol.requests import ChangeRowsRequest
from fuse_index.spark.protocol.words import DOUBTFUL_SECONDS
from fuse_storage import StorageError

_logger = logging.getLogger("fuse_index.spark")

_MAX_TEXT_KEY = 10_000
"""Characters of a question that is remembered as it is; of a longer one, which may have megabytes, by its hash."""
_KEPT_BYTES = 10_000
"""So much an explanation takes besides its map."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """What is kept of an answer.

    ``reply``: None where the JVM keeps it, as it does unless a fault has spoiled it. ``plan``: by which the rows of the
    same question are read.
    """

    explanation: Explanation
    reply: bytes | None = None
    plan: KeptPlan | None = None

    @property
    def nbytes(self) -> int:
        known = self.explanation.map
        fates = 0 if known is None else known.fates.nbytes
        return _KEPT_BYTES + fates + len(self.reply or b"") + (0 if self.plan is None else self.plan.nbytes)


class SourceIndexFinder(Protocol):
    """The service that knows which tables vote on files of sources. Its method may raise, and take long."""

    def find(self, question: FindSourceIndex) -> Framed | Literal["unchanged"] | None:
        """The table, as a SourceIndexDescription and its files, unless it is the one that the question names.

        None where there is none.
        """
        ...


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

    def read_rows(self, request: ReadRows, planned: Any) -> bytes:
        """The rows on which the filters are true, as an Arrow stream of the columns that the request names.

        Others may be among them. ``planned``: the ``plan`` of the ``PruneReply`` to the same question, if it is still
        known. Raises LeftToExecutors beyond ``max_bytes`` and ``seconds``.
        """
        ...

    def column_statistics(self, request: EstimateColumns, planned: Any) -> Mapping[str, ColumnEstimate]:
        """For each column what an optimizer may know of it in the blocks that the filters leave.

        ``planned``: as of ``read_rows``.
        """
        ...

    def may_prune_by_keys(self, request: JoinKeys) -> Sequence[bool]:
        """For each term: whether blocks may be left out by the values that a join finds for it."""
        ...

    def refresh_snapshot(self, request: Refresh) -> RefreshReply | None:
        """The head of the branch; None if the request has it. Raises if the schema is another one by now."""
        ...


class PlannerCallback:
    """A session's endpoint, with a memo of its answers.

    A reply that says nothing is byte 0, and why. All others begin with byte 1; the bytes of what says most are in
    ``protocol.replies``. Rows are an Arrow stream, and not remembered; statistics of columns are JSON. Of keys of joins
    there is a byte 1 for each that may leave out blocks, else 0: whoever asks remembers it. For the index of a source
    nothing follows where there is none, and byte 0 where it is the one that was named.
    """

    MAX_REMEMBERED: ClassVar[int] = 256
    MAX_REMEMBERED_BYTES: ClassVar[int] = 256 << 20
    """Explanations are small; states of aggregates that a fault has spoiled have up to 64 MiB."""
    FAULTY_REPLY_SECONDS: ClassVar[float] = DOUBTFUL_SECONDS
    """So long a reply that a fault has spoiled is remembered: for the query that is being planned, and not for ever."""

    def __init__(self, planner: Planner, source_indexes: SourceIndexFinder | None = None) -> None:
        self._planner = planner
        self._source_indexes = source_indexes
        self._answers: LruCache[str, _Answer] = LruCache(
            self.MAX_REMEMBERED, self.MAX_REMEMBERED_BYTES, lambda answer: answer.nbytes
        )

    def apply(self, request: str) -> bytes:
        try:
            question = decode_question(request)
            with switched_off(question):
                return self._reply(request, question)
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
        with switched_off(question):
            known = self._known(question)
            return self._ask(question)[1] if known is None else known.explanation

    def _reply(self, text: str, question: Question) -> bytes:
        match question:
            case Prune() | AnswerAggregate():
                known = self._known(question)
                return self._ask(question)[0] if known is None or known.reply is None else known.reply
            case ReadRows():
                known = self._known(question)
                return b"\1" + self._planner.read_rows(question, known and known.plan)
            case EstimateColumns():
                known = self._known(question)
                columns = self._planner.column_statistics(question, known and known.plan)
                return b"\1" + msgspec.json.encode(columns)
            case JoinKeys():
                return b"\1" + bytes(self._planner.may_prune_by_keys(question))
            case Refresh():
                newer = self._planner.refresh_snapshot(question)
                return b"\1" if newer is None else newer.encode()
            case FindSourceIndex():
                found = None if self._source_indexes is None else self._source_indexes.find(question)
                if found is None or found == "unchanged":
                    return b"\1" if found is None else b"\1\0"
                return b"\1" + found.encode()

    def _known(self, question: ScanQuestion) -> _Answer | None:
        return self._answers.find(_name_of(question))

    def _ask(self, question: Prune | AnswerAggregate) -> tuple[bytes, Explanation]:
        if isinstance(question, Prune):
            pruned = self._planner.prune_blocks(question)
            reply, explanation, plan = pruned.encode(), pruned.explanation, pruned.plan
        else:
            known = self._planner.answer_aggregate(question)
            reply, explanation, plan = known.encode(), known.explanation, None
        answer = _Answer(explanation, reply if explanation.faulty else None, plan)
        ttl_seconds = self.FAULTY_REPLY_SECONDS if explanation.faulty else inf
        self._answers.put(_name_of(question), answer, ttl_seconds)
        return reply, explanation


def _name_of(question: ScanQuestion) -> str:
    key = question.plan_key()
    return key if len(key) <= _MAX_TEXT_KEY else sha256(key.encode()).hexdigest()


def switched_off(asked: Question | ChangeRowsRequest) -> AbstractContextManager[None]:
    """Switch off within what the session's setting says, as a question or a statement has it. Raises InputError."""
    switches = split_switches(asked.off) if isinstance(asked, ScanQuestion | ChangeRowsRequest) else ()
    return indexes_off(*switches, by="the setting spark.fuse.index.off")
