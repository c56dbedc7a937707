"""Which index can say something about which part of a predicate: compiled once per query, before any block is looked
at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fuse_index.expressions.conjunction import Conjunction
from fuse_index.expressions.traversal import columns_of, leaf_terms, predicate_leaves
from fuse_index.indexes.definition import Definition, Unavailable
from fuse_index.indexes.interface import IndexKind, Input, Probe, Refusal, Votes
from fuse_index.indexes.registry import Host
from fuse_index.indexes.sandbox import Failure, ask
from fuse_index.predicate import (
    And,
    Call,
    Column,
    Compare,
    Context,
    In,
    IsNull,
    Leaf,
    Opaque,
    Predicate,
)
from fuse_index.pruning.combine import groups, has_null, is_null_literal, is_null_test
from fuse_index.reasons import Reason


@dataclass(frozen=True)
class Voter:
    """One index that understood one leaf."""

    index: str
    kind: IndexKind
    inputs: tuple[Input, ...]
    probe: Probe
    definition: Definition | None = None
    """None: an implicit kind, which lives on the statistics that every block has."""
    exact: bool = True
    """The leaf is on the inputs themselves, so it is NULL only where one of them is."""


@dataclass(frozen=True)
class Silence:
    """One index that was asked about a leaf, and cannot say anything."""

    index: str
    kind: str
    refusal: Refusal


@dataclass(frozen=True)
class Question:
    leaf: Leaf | Conjunction
    voters: tuple[Voter, ...]
    silent: tuple[Silence, ...]


@dataclass(frozen=True)
class Questions:
    """All that can be asked for one predicate."""

    predicate: Predicate
    asked: Mapping[Leaf | Conjunction, Question]
    boxes: Mapping[And, Sequence[Conjunction]]
    implied: Mapping[Leaf, Sequence[Leaf]]
    strict_functions: frozenset[str]
    """Functions that are NULL exactly where an argument is."""


@dataclass(frozen=True)
class Panel:
    """Who may be asked: the host's kinds, and the definitions of one snapshot."""

    host: Host
    definitions: Sequence[Definition | Unavailable]
    context: Context
    budget: float
    implicit: bool = True
    """Kinds that need no definition are asked, too."""

    def about(self, predicate: Predicate) -> Questions:
        implied = dict(self._implied(predicate_leaves(predicate)))
        everything = list(
            dict.fromkeys([*predicate_leaves(predicate), *(leaf for more in implied.values() for leaf in more)])
        )
        boxes = {group: made for group in groups(predicate) if (made := list(self._boxes(group)))}
        subjects: list[Leaf | Conjunction] = [
            *everything,
            *dict.fromkeys(box for made in boxes.values() for box in made),
        ]
        strict = frozenset(name for name, function in self.host.functions.items() if function.null_on_null)
        return Questions(predicate, {subject: self._question(subject) for subject in subjects}, boxes, implied, strict)

    def _implied(self, found: Iterable[Leaf]) -> Iterator[tuple[Leaf, Sequence[Leaf]]]:
        for leaf in found:
            function = self.host.functions.get(leaf.name) if isinstance(leaf, Call) else None
            if function is not None and function.implies is not None:
                implies = function.implies
                consequences = ask(lambda implies=implies, leaf=leaf: tuple(implies(leaf)), self.budget)  # type: ignore[misc]
                if not isinstance(consequences, Failure):
                    yield leaf, consequences

    def _boxes(self, group: And) -> Iterator[Conjunction]:
        """What the group says of each term that it names more than once, and of the terms of each wider index."""
        whole = Conjunction.of(group)
        if whole is None:
            return
        named = [term for term, _ in whole.domains]
        for term in named:
            box = whole.restrict((term,))
            if box is not None and len(box.leaves) > 1:
                yield box
        for definition in self.definitions:
            terms = tuple(given.term for given in definition.inputs if given.term in named)
            if len(terms) > 1 and (box := whole.restrict(terms)) is not None:
                yield box

    def _question(self, subject: Leaf | Conjunction) -> Question:
        if isinstance(subject, Opaque) or decided_by_engine(subject):
            return Question(subject, (), ())
        voters: list[Voter] = []
        silent: list[Silence] = []
        for opinion in self._opinions(subject):
            (voters if isinstance(opinion, Voter) else silent).append(opinion)  # type: ignore[arg-type]
        return Question(subject, tuple(sorted(voters, key=lambda voter: voter.probe.cost)), tuple(silent))

    def _opinions(self, subject: Leaf | Conjunction) -> Iterator[Voter | Silence]:
        terms = leaf_terms(subject)
        if self.implicit and len(terms) == 1 and isinstance(terms[0], Column):
            given = (Input(terms[0], terms[0].type),)
            for name, kind in self.host.kinds.items():
                if kind.implicit:
                    yield self._opinion(subject, name, kind, given, None)
        columns = {column for term in terms for column in columns_of(term)}
        for definition in self.definitions:
            if isinstance(definition, Unavailable):
                if not definition.inputs or columns & {
                    c for given in definition.inputs for c in columns_of(given.term)
                }:
                    yield Silence(definition.name, definition.kind, definition.refusal)
            elif columns & {column for given in definition.inputs for column in columns_of(given.term)}:
                yield self._opinion(
                    subject, definition.name, self.host.kinds[definition.kind], definition.inputs, definition
                )

    def _opinion(
        self,
        subject: Leaf | Conjunction,
        name: str,
        kind: IndexKind,
        inputs: tuple[Input, ...],
        definition: Definition | None,
    ) -> Voter | Silence:
        if not isinstance(kind, Votes):
            return Silence(name, kind.name, Refusal(Reason.LEAF_UNSUPPORTED, f"index kind {kind.name!r} does not skip"))
        on_inputs = all(term in {given.term for given in inputs} for term in leaf_terms(subject))
        options: Any = definition.options if definition else kind.Options()
        probe = ask(lambda: kind.compile(for_author(subject), inputs, options, self.context), self.budget)
        match probe:
            case Refusal():
                return Silence(name, kind.name, probe)
            case Probe():
                return Voter(name, kind, inputs, probe, definition, on_inputs)
            case Failure(reason, detail):
                return Silence(name, kind.name, Refusal(reason, detail))
            case _:
                wrong = f"compile() gave {type(probe).__name__}, not a Probe or a Refusal"
                return Silence(name, kind.name, Refusal(Reason.PLUGIN_ERROR, wrong))


def for_author(subject: Leaf | Conjunction) -> Leaf | Conjunction:
    """The leaf as authors are promised it: no NULL among the values, and ``<=>`` as ``=`` (they differ on NULLs
    only).
    """
    if isinstance(subject, In) and has_null(subject):
        return replace(subject, values=tuple(value for value in subject.values if value.value is not None))
    if isinstance(subject, Compare) and subject.operator == "<=>":
        if is_null_literal(subject.right):
            return IsNull(subject.left)
        return replace(subject, operator="=")
    return subject


def decided_by_engine(subject: Leaf | Conjunction) -> bool:
    """Null tests of plain columns, comparisons with NULL, constants: what needs no index."""
    match subject:
        case Conjunction():
            return False
        case IsNull(Column()):
            return True
        case Compare(_, Column(), right) if is_null_literal(right):
            return True
        case In(_, values) if all(value.value is None for value in values):
            return True
        case _:
            return not is_null_test(subject) and not any(True for term in leaf_terms(subject) for _ in columns_of(term))
