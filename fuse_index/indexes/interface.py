"""What an author of an index kind implements; ``fuse_index.plugin`` has all that authors may import.

A kind is one stateless class and one hook. It builds a **sidecar** from the rows of one block, and implements those
of the protocols ``Votes``, ``Ranks`` and ``Answers`` that it can. The engine owns the rest: AND, OR and NOT, NULLs,
coverage, the order of asking, budgets, failure, caching and explanation. So an author judges one leaf (or one
Conjunction) at a time, and only rows whose inputs are not NULL.

**An index never changes an answer.** Whatever a kind cannot promise, it must call possible; inherit
``fuse_index.testing.IndexTests`` to have it proven.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt
import pluggy
import pyarrow as pa

from fuse_index.aggregates.state import Aggregate, Aggregation
from fuse_index.expressions.conjunction import Conjunction
from fuse_index.expressions.function import Function
from fuse_index.indexes.ballot import Ballot
from fuse_index.indexes.block_batch import BlockBatch
from fuse_index.predicate import Call, Context, Leaf, Term
from fuse_index.reasons import Reason
from fuse_index.signals.events import Event
from fuse_storage import Pack, Sidecar

API, APIS = 2, frozenset({1, 2})
"""The version of this interface, and those whose kinds are taken as they are; others are refused by name."""

hookspec = pluggy.HookspecMarker("fuse_index")
hookimpl = pluggy.HookimplMarker("fuse_index")


class Hooks:
    """What a plugin module may implement."""

    @hookspec
    def fuse_index_kinds(self) -> Iterable[type[IndexKind]]:
        """The index kinds that this module brings."""
        raise NotImplementedError  # never called: pluggy reads the signature

    @hookspec
    def fuse_index_functions(self) -> Iterable[Function]:
        """The functions that this module brings to conditions, values and Spark SQL."""
        raise NotImplementedError  # never called: pluggy reads the signature

    @hookspec
    def fuse_index_events(self, event: Event) -> None:
        """Called with what happens in a process where the plugin is installed; see ``fuse_index.signals.events``."""
        raise NotImplementedError  # never called: pluggy reads the signature


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why something cannot be done: a reason for machines, a sentence for people."""

    reason: Reason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Input:
    """One term that an index is on, and the Arrow type of its values.

    ``function``: the aggregate function that is kept of it ("sum"); empty for what the index is on itself. Of
    ``count(*)`` the term is a literal. ``lg_k`` is the size of a sketch.
    """

    term: Term
    type: pa.DataType
    function: str = ""
    lg_k: int = 0

    @property
    def aggregate(self) -> Aggregate:
        """What is kept of the term, where ``function`` says that something is."""
        return Aggregate(self.function, self.term, self.lg_k)  # type: ignore[arg-type]  # the engine has read it


@dataclass(frozen=True, slots=True)
class NoOptions:
    """For kinds without options."""


_What = TypeVar("_What")


@dataclass(frozen=True)
class Probe(Generic[_What]):
    """A leaf, compiled once per query. Picklable, as ``what`` must be: whatever the kind makes of the leaf.

    ``cost`` orders the asking: 0 for what lives in statistics or summaries, else about the bytes to read per block.
    ``judges_null``: the ballots say themselves where the leaf may be NULL on rows whose inputs are not (a path that is
    missing from a document); without it, the engine takes "may be NULL" as possible for any leaf that is not on the
    inputs themselves. ``recall``, of rankings: the share of the best rows that is found; 1 is all of them.
    ``selectivity``: on which share of rows the leaf may be TRUE, if that is known: who leaves out more is asked sooner.
    """

    what: _What
    cost: float = 0.0
    judges_null: bool = False
    recall: float = 1.0
    selectivity: float | None = None


class IndexKind:
    """A kind of index. Stateless, importable on driver and executors, picklable by reference."""

    name: ClassVar[str]
    api: ClassVar[int] = API
    writes: ClassVar[int] = 1
    """The payload version that ``build`` makes."""
    reads: ClassVar[frozenset[int]] = frozenset({1})
    """The payload versions that ``probe`` understands; others are unknown to it (PAYLOAD_TOO_NEW)."""
    Options: ClassVar[type] = NoOptions
    """A frozen dataclass of JSON-able fields with defaults: validation, command-line flags, definition hash."""
    implicit: ClassVar[bool] = False
    """Asked about every column without a definition, because all it needs are the statistics each block has."""
    best: ClassVar[Literal["", "least", "greatest"]] = ""
    """The values of the function ``searches`` that rank best; a score is the value, with "least" -1 times it."""

    def aggregates(self, options: Any) -> Sequence[str]:
        """Aggregates that the options name, such as "sum(amount)".

        The engine reads them, and puts an input for each behind the columns.
        """
        return ()

    def condition(self, options: Any) -> str | None:
        """A condition that the options name: then ``build`` is shown only the rows on which it is TRUE, as one zone.

        For kinds that answer. Of one that votes or ranks, ``create_index`` raises DefinitionError: it would speak of
        rows that it has not seen.
        """
        return None

    def accepts(self, inputs: Sequence[Input], options: Any) -> Refusal | None:
        """None if such an index can be made."""
        return None

    def summary_type(self, inputs: Sequence[Input], options: Any) -> pa.DataType:
        """The Arrow type of a block's summary. Keep values under about 1 KiB: they are read for every query."""
        return pa.null()

    def build(self, rows: pa.Table, zones: npt.NDArray[np.int64], options: Any) -> Sidecar:
        """Index one block.

        ``rows`` has one column per input, in order. ``zones``: int64, shape (number of zones + 1,), ascending from 0;
        zone z is ``rows[zones[z]:zones[z + 1]]``.
        """
        raise NotImplementedError(f"index kind {self.name!r} builds nothing")

    def pack(self, sidecars: Sequence[Sidecar]) -> Pack:
        """Lay the payloads that one writing task made into one file; may rewrite summaries to say where things lie."""
        return Pack.concatenate(sidecars)

    def inspect(self, sidecars: BlockBatch, options: Any) -> Mapping[str, Any]:
        """What ``fuse-index index show`` prints of these blocks, besides coverage and sizes."""
        return {}


@runtime_checkable
class Votes(Protocol):
    """ "Which rows can this leaf be true on": for skipping."""

    def compile(
        self, what: Leaf | Conjunction, inputs: Sequence[Input], options: Any, context: Context
    ) -> Probe[Any] | Refusal:
        """Understand the leaf, once per query.

        A leaf has its column side on the left and non-NULL literals of the input's own type on the right; its ``IN``
        list holds no NULL. IS [NOT] NULL of an input is the engine's. A Conjunction is what an AND says of them.
        """
        ...

    def probe(self, probe: Probe[Any], batch: BlockBatch) -> Ballot:
        """Vote NONE, ALL or SOME for each unit, or for each zone of the batch if the index knows zones.

        ``bits`` of the ballot are uint8, of shape ``(len(batch),)``, one per unit, or of the shape of
        ``batch.zone_rows``, one per zone; ``rows`` of a zone, uint8, one per row of it, narrow it to single rows. Votes
        on units without a summary are ignored. May block on reads; may run on any thread.
        """
        ...


@runtime_checkable
class RollsUp(Protocol):
    """Optional: a summary of a whole segment, probed like a block's, lets the segment be skipped unread."""

    def roll_up(self, summaries: pa.Array) -> pa.Scalar | None:
        """One summary of all units that these are of, of the kind's ``summary_type`` as they are; None for none.

        ``summaries``: one per block of the segment, none of them null.
        """
        ...


@runtime_checkable
class Ranks(Protocol):
    """ "Which rows are best": for top-k searches."""

    searches: ClassVar[str]
    """The function by a call of which rows are ranked: its arguments are a term, a literal of any type, and options."""

    def compile_ranking(
        self, what: Call, inputs: Sequence[Input], options: Any, context: Context
    ) -> Probe[Any] | Refusal:
        """Understand what is searched for, a call of ``searches``, once per search."""
        ...

    def gather(self, probe: Probe[Any], batch: BlockBatch) -> Any:
        """Statistics of these blocks that a score depends on; picklable."""
        ...

    def merge_statistics(self, parts: Sequence[Any]) -> Any:
        """The statistics of all blocks, from those that ``gather`` gave of some each."""
        ...

    def bound(self, probe: Probe[Any], statistics: Any, batch: BlockBatch) -> npt.NDArray[np.float64]:
        """A bound per unit: float64, shape ``(len(batch),)``.

        No row of unit i scores above element i, which is -inf if no row matches.
        """
        ...

    def top(
        self,
        probe: Probe[Any],
        statistics: Any,
        batch: BlockBatch,
        unit: int,
        k: int,
        among: npt.NDArray[np.bool_] | None,
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """The k best rows of one block, best first, or all that match if they are fewer.

        Gives their numbers in the block, int64, and their scores, float64, both of shape (rows,). ``among``: only rows
        that are set in it, bool, one element per row of the block; None: of all rows.
        """
        ...


@runtime_checkable
class Approximates(Protocol):
    """Optional, for kinds that rank: for searches that may miss some of the best rows."""

    def compile_approximation(
        self, what: Call, inputs: Sequence[Input], options: Any, context: Context, recall: float
    ) -> Probe[Any] | Refusal:
        """Like ``compile_ranking``, where this share of the best rows is enough; ``Probe.recall`` is at least that."""
        ...


@runtime_checkable
class Scores(Protocol):
    """Optional, for kinds whose scores hang on the row alone: nothing is built to search rows without an index."""

    def score(self, probe: Probe[Any], rows: pa.Table) -> npt.NDArray[np.float64]:
        """The score of each row, as ``top`` gives it: float64, shape (n,). ``rows`` has one column per input."""
        ...


@runtime_checkable
class Highlights(Protocol):
    """Optional, for kinds that rank texts: where the query is met."""

    def highlight(self, probe: Probe[Any], text: str) -> Sequence[tuple[int, int]]:
        """Spans of the text as (start, end), in characters, ascending and apart."""
        ...


@runtime_checkable
class Answers(Protocol):
    """ "What is the aggregate": answers without rows.

    The engine knows which blocks are wanted as a whole, computes the states of all others from their rows, and merges.
    """

    def match(
        self, request: Aggregation, inputs: Sequence[Input], options: Any, context: Context
    ) -> Probe[Any] | Refusal:
        """Whether states of this request can be given, of any block that is indexed.

        Conditions are not the author's concern.
        """
        ...

    def state(self, probe: Probe[Any], batch: BlockBatch, unit: int) -> pa.Table | Refusal | None:
        """The state of all rows of one block, of the schema ``request.schema``; None, or why not, where none is kept.

        It may have several rows of one group: what ``state_of`` gives of the block's rows, or anything that merges to
        the same.
        """
        ...
