"""Which index can say something about which part of a predicate.

Compiled once per query, before any block is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from fuse_index.expressions.conjunction import Conjunction
from fuse_index.expressions.monotone import implied_leaves
from fuse_index.expressions.to_sql import predicate_sql
from fuse_index.expressions.traversal import columns_of, leaf_terms
from fuse_index.indexes.definition import IndexDefinition, UnavailableIndex
from fuse_index.indexes.engine import Engine
from fuse_index.indexes.interface import IndexKind, Input, Probe, Refusal, Votes
from fuse_index.indexes.sandbox import PluginFailure, check_probe, sandboxed_call, trusted_call
from fuse_index.predicate import And, Call, Column, Leaf, Opaque, Or, Predicate
from fuse_index.pruning.calls.budget import CallBudget, failure_reason
from fuse_index.pruning.calls.switches import NO_SWITCHES, Switches
from fuse_index.pruning.choose_leaves import LeafChoice
from fuse_index.pruning.combine import best_case_outcomes
from fuse_index.pruning.nulls import decided_by_engine, strict_function_names, strip_nulls_for_kind
from fuse_index.reasons import Reason

_MAX_TURNED_ROUND = 100
"""Leaves whose functions are turned round: each takes some 5 ms."""


@dataclass(frozen=True)
class CompiledProbe:
    """One index that understood one leaf."""

    index: str
    kind: IndexKind
    inputs: tuple[Input, ...]
    probe: Probe[Any]
    definition: IndexDefinition | None = None
    """None: an implicit kind, which lives on the statistics that every block has."""
    built_in: bool = False
    """Whether it comes with the engine, whose time strangers' kinds do not spend."""

    @property
    def exact(self) -> bool:
        """A built-in kind that lives on these statistics: whoever contradicts it is wrong, and it is trusted to end."""
        return self.built_in and self.definition is None

    @property
    def order(self) -> float:
        """Who is asked first: what a block costs, for the share of rows that the answer may leave out."""
        selectivity = self.probe.selectivity
        return self.probe.cost if selectivity is None else self.probe.cost / max(1.0 - selectivity, 1e-3)

    @property
    def identity(self) -> str:
        """The voter's identity in any query of the table: the key of its definition, or the kind."""
        return identify(self.kind, self.definition)


@dataclass(frozen=True)
class IndexRefusal:
    """One index that was asked about a leaf, and cannot say anything."""

    index: str
    kind: str
    refusal: Refusal


@dataclass(frozen=True)
class LeafProbes:
    leaf: Leaf | Conjunction
    probes: tuple[CompiledProbe, ...]
    refusals: tuple[IndexRefusal, ...]

    def without(self, reasons: Mapping[str, Refusal]) -> LeafProbes:
        """Leave out these indexes, by name, each with the reason why it is not asked."""
        left = [each for each in self.probes if each.index in reasons and not each.exact]
        refusals = (IndexRefusal(each.index, each.kind.name, reasons[each.index]) for each in left)
        kept = tuple(each for each in self.probes if each.exact or each.index not in reasons)
        return LeafProbes(self.leaf, kept, (*self.refusals, *refusals)) if left else self


@dataclass(frozen=True)
class PredicateProbes:
    """All that can be asked for one predicate.

    ``grouped``: the same predicate, as votes on it are counted. ``is_whole``: none of its leaves is left out.
    """

    predicate: Predicate
    grouped: Predicate
    by_leaf: Mapping[Leaf | Conjunction, LeafProbes]
    conjunctions: Mapping[And | Or, Sequence[Conjunction]]
    implied: Mapping[Leaf, Sequence[Leaf]]
    strict_functions: frozenset[str]
    """Functions that are NULL wherever an argument is."""
    is_whole: bool = True

    def without(self, reasons: Mapping[str, Refusal]) -> PredicateProbes:
        """Leave out these indexes, by name, each with the reason why it is not asked."""
        by_leaf = {subject: leaf_probes.without(reasons) for subject, leaf_probes in self.by_leaf.items()}
        return replace(self, by_leaf=by_leaf)


@dataclass(frozen=True)
class IndexSet:
    """Who may be asked: the host's kinds, and the definitions of one snapshot."""

    engine: Engine
    definitions: Sequence[IndexDefinition | UnavailableIndex]
    budget: CallBudget
    switches: Switches = NO_SWITCHES

    def compile(self, predicate: Predicate) -> PredicateProbes:
        choice = LeafChoice.of(predicate)
        implied = dict(self._implied(choice.leaves))
        leaves = list(dict.fromkeys([*choice.leaves, *(leaf for more in implied.values() for leaf in more)]))
        by_group: dict[And | Or, Sequence[Conjunction]] = {
            group: conjunctions for group in choice.groups if (conjunctions := list(self._conjunctions(group)))
        }
        by_group |= {group: [said] for group, said in choice.together.items()}
        subjects: list[Leaf | Conjunction] = [
            *leaves,
            *dict.fromkeys(conjunction for conjunctions in by_group.values() for conjunction in conjunctions),
        ]
        strict = strict_function_names(self.engine.functions)
        by_leaf = {subject: self._leaf_probes(subject) for subject in subjects}
        return PredicateProbes(predicate, choice.predicate, by_leaf, by_group, implied, strict, choice.is_whole)

    def _implied(self, found: Iterable[Leaf]) -> Iterator[tuple[Leaf, Sequence[Leaf]]]:
        for number, leaf in enumerate(found):
            known = leaf.asked if isinstance(leaf, Opaque) else leaf
            if number < _MAX_TURNED_ROUND and (bounds := implied_leaves(known, self.engine.context)):
                yield leaf, bounds
            if not isinstance(leaf, Call) or (function := self.engine.functions.get(leaf.name)) is None:
                continue
            if function.implies is not None:
                call = partial(sandboxed_call, partial(_implied_leaves, function.implies, leaf))
                consequences = self.budget.run(f"function {leaf.name}", call, failure_reason)
                if not isinstance(consequences, PluginFailure):
                    yield leaf, consequences

    def _conjunctions(self, group: And) -> Iterator[Conjunction]:
        """What the group says of each term that it names more than once, and of the terms of each wider index."""
        whole = Conjunction.of(group)
        if whole is None:
            return
        by_term = whole.by_term()
        yield from (conjunction for conjunction in by_term.values() if len(conjunction.leaves) > 1)
        for definition in self.definitions:
            terms = tuple(given.term for given in definition.inputs if given.term in by_term)
            if len(terms) > 1 and (conjunction := whole.restrict(terms)) is not None:
                yield conjunction

    def _leaf_probes(self, subject: Leaf | Conjunction) -> LeafProbes:
        asked = subject.asked if isinstance(subject, Opaque) else subject
        if isinstance(asked, Opaque) or decided_by_engine(asked):
            return LeafProbes(subject, (), ())
        probes: list[CompiledProbe] = []
        refusals: list[IndexRefusal] = []
        for result in self._compile_leaf(asked):
            (probes if isinstance(result, CompiledProbe) else refusals).append(result)  # type: ignore[arg-type]
        return LeafProbes(subject, tuple(sorted(probes, key=lambda compiled: compiled.order)), tuple(refusals))

    def _compile_leaf(self, subject: Leaf | Conjunction) -> Iterator[CompiledProbe | IndexRefusal]:
        terms = leaf_terms(subject)
        if len(terms) == 1 and isinstance(terms[0], Column):
            given = (Input(terms[0], terms[0].type),)
            for name, kind in self.engine.host.kinds.items():
                if not kind.implicit:
                    continue
                if refusal := self.switches.refuse(kind, self.engine):
                    yield IndexRefusal(name, kind.name, refusal)
                else:
                    yield self._compile_for_index(subject, name, kind, given, None)
        columns = {column for term in terms for column in columns_of(term)}
        for definition in self.definitions:
            if isinstance(definition, UnavailableIndex):
                if not definition.inputs or columns & {
                    c for given in definition.inputs for c in columns_of(given.term)
                }:
                    yield IndexRefusal(definition.name, definition.kind, definition.refusal)
            elif columns & {column for given in definition.inputs for column in columns_of(given.term)}:
                yield self._compile_for_index(
                    subject, definition.name, definition.kind_in(self.engine.host), definition.inputs, definition
                )

    def _compile_for_index(
        self,
        subject: Leaf | Conjunction,
        name: str,
        kind: IndexKind,
        inputs: tuple[Input, ...],
        definition: IndexDefinition | None,
    ) -> CompiledProbe | IndexRefusal:
        if not isinstance(kind, Votes):
            return IndexRefusal(
                name, kind.name, Refusal(Reason.LEAF_UNSUPPORTED, f"index kind {kind.name!r} does not skip")
            )
        options: Any = definition.options if definition else kind.Options()
        built_in = self.engine.host.source_of(kind).built_in

        def ask() -> Probe[Any] | Refusal:
            return check_probe(
                kind.compile(strip_nulls_for_kind(subject), inputs, options, self.engine.context), "compile"
            )

        probe = (
            trusted_call(ask)
            if built_in and definition is None
            else self.budget.run(
                f"{identify(kind, definition)} compile", partial(sandboxed_call, ask), failure_reason, built_in
            )
        )
        match probe:
            case Refusal():
                return IndexRefusal(name, kind.name, probe)
            case Probe():
                return CompiledProbe(name, kind, inputs, probe, definition, built_in)
            case PluginFailure(reason, detail):
                return IndexRefusal(name, kind.name, Refusal(reason, detail))


def identify(kind: IndexKind, definition: IndexDefinition | None) -> str:
    """What an index, or a kind without one, is in any query of a table."""
    return definition.key if definition is not None else f"{type(kind).__module__}.{type(kind).__qualname__}"


def _implied_leaves(implies: Callable[[Call], Iterable[Leaf]], call: Call) -> tuple[Leaf, ...]:
    """What a plugin says that its function implies, if the engine can go on with it. Raises whatever is wrong with it.

    Each is on columns that the call names; who reads it meets it here first, within the sandbox.
    """
    named = {column for term in leaf_terms(call) for column in columns_of(term)}
    found = []
    for leaf in implies(call):
        if not isinstance(leaf, Leaf) or isinstance(leaf, Opaque):
            raise TypeError(f"{call.name} implies {leaf!r}, which is no condition")
        columns = {column for term in leaf_terms(leaf) for column in columns_of(term)}
        if not columns or not columns <= named:
            raise ValueError(f"{call.name} implies {predicate_sql(leaf)}, which is not on the columns that it is on")
        strip_nulls_for_kind(leaf)
        decided_by_engine(leaf)
        best_case_outcomes(leaf)
        predicate_sql(leaf)
        found.append(leaf)
    return tuple(found)
