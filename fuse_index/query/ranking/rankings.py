"""The index that ranks a query: found once per search, exact unless less is allowed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa

from fuse_index.errors import DefinitionError, IndexFault
from fuse_index.expressions.to_sql import term_sql
from fuse_index.indexes.builder import IndexBuilder
from fuse_index.indexes.definition import IndexDefinition
from fuse_index.indexes.engine import Engine
from fuse_index.indexes.interface import Approximates, Probe, Ranks, Refusal
from fuse_index.indexes.sandbox import PluginFailure, sandboxed_call
from fuse_index.predicate import Call, Column, Literal, Term
from fuse_index.pruning.calls.switches import askable_definitions
from fuse_index.query.checked_answers import checked_ranking
from fuse_index.reasons import Reason
from fuse_storage import StoredTable

_T = TypeVar("_T")

RANKING_TIMEOUT_SECONDS = 60.0
"""How long a kind may take for one block."""


@dataclass(frozen=True)
class RankedQuery:
    """What rows of a column are ranked by: ``query``, and options of the function that the index ranks by.

    ``recall``: the share of the best rows that is to be found.
    """

    column: Term
    query: Literal
    options: str | None = None
    recall: float = 1.0

    @property
    def text(self) -> str:
        """What is searched for, for people."""
        value = self.query.value
        if not isinstance(value, list):
            return str(value)
        return f"[{', '.join(map(str, value[:3]))}{', …' if len(value) > 3 else ''}]"

    def call(self, function: str) -> Call:
        """The question to a kind that ranks by this function."""
        options = () if self.options is None else (Literal(self.options, pa.string()),)
        return Call(function, (self.column, self.query, *options))


@dataclass(frozen=True)
class CompiledRanking:
    """One index that ranks what is searched for."""

    definition: IndexDefinition
    kind: Any
    probe: Probe[Any]
    builder: IndexBuilder
    text: str
    """What is searched for, for people."""

    def call(self, work: Callable[[], _T]) -> _T:
        """What ``work`` asks of the kind, where nobody else can answer. Raises IndexFault if the kind cannot."""
        result = sandboxed_call(work, RANKING_TIMEOUT_SECONDS)
        if isinstance(result, PluginFailure):
            name, kind = self.definition.name, self.definition.kind
            raise IndexFault(name, kind, result.reason, result.detail) from result.error
        return result

    @property
    def precision(self) -> str:
        """Whether all of the best rows are found, in words."""
        return (
            "exact" if self.probe.recall == 1.0 else f"approximate: recall {self.probe.recall:g}, as the search allows"
        )


def compile_ranking(table: StoredTable, engine: Engine, query: RankedQuery) -> CompiledRanking:
    """Find the first index on the column that ranks such a query. Raises DefinitionError where there is none."""
    refusals = []
    for found in _ranking_indexes(table, engine, query.column):
        if isinstance(found, str):
            refusals.append(found)
            continue
        match ask_to_rank(engine, found, query):
            case CompiledRanking() as ranking:
                return ranking
            case Refusal(_, detail):
                refusals.append(f"index {found.name!r}: {detail}")
    why = "; ".join(refusals) or "there is no index on it that ranks: create one, such as full_text"
    name = ".".join(query.column.path) if isinstance(query.column, Column) else term_sql(query.column)
    raise DefinitionError(f"column {name!r} cannot be searched: {why}")


def _ranking_indexes(table: StoredTable, engine: Engine, term: Term) -> Iterator[IndexDefinition | str]:
    """Indexes on the term whose kinds rank; or, of one that is not available, why not."""
    for definition in askable_definitions(table, engine):
        if not isinstance(definition, IndexDefinition):
            yield f"index {definition.name!r}: {definition.refusal.detail or definition.refusal.reason}"
        elif isinstance(definition.kind_in(engine.host), Ranks) and term in [given.term for given in definition.inputs]:
            yield definition


def ranking_indexes(table: StoredTable, engine: Engine, call: Call, best: str) -> list[IndexDefinition]:
    """Indexes that rank by the values of this call, of which the least, or the greatest, are the best."""
    found = [] if not call.arguments else _ranking_indexes(table, engine, call.arguments[0])
    kinds = [(each, each.kind_in(engine.host)) for each in found if isinstance(each, IndexDefinition)]
    return [each for each, kind in kinds if (kind.searches, kind.best) == (call.name, best)]  # type: ignore[attr-defined]


def ask_to_rank(engine: Engine, definition: IndexDefinition, query: RankedQuery) -> CompiledRanking | Refusal:
    """The ranking of one index: with the recall that is enough if its kind can guess, else exact; or why not."""
    kind: Any = definition.kind_in(engine.host)
    call = query.call(kind.searches)
    given = (call, definition.inputs, definition.options, engine.context)
    compilers: list[tuple[Callable[[], object], float]] = [(partial(kind.compile_ranking, *given), 1.0)]
    if query.recall < 1.0 and isinstance(kind, Approximates):
        compilers.insert(0, (partial(kind.compile_approximation, *given, query.recall), query.recall))
    refusal = Refusal(Reason.LEAF_UNSUPPORTED)
    for compiler, recall in compilers:
        answer = sandboxed_call(partial(checked_ranking, compiler, recall), RANKING_TIMEOUT_SECONDS)
        match answer:
            case Probe():
                builder = IndexBuilder.for_definition(definition, engine.host, strict=True)
                return CompiledRanking(definition, kind, answer, builder, term_sql(call))
            case Refusal() as refusal:
                pass
            case PluginFailure(reason, detail):
                refusal = Refusal(reason, detail)
    return refusal
