"""Votes so far on the leaves of one predicate, and who is believed where votes contradict each other.

Exact statistics, that the engine reads or a built-in kind does, are believed before any index. An index that
contradicts them, or another one, was wrong once, and is not believed on any unit of that query: whoever plans begins
anew without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import and_
from typing import Any

import numpy as np
import numpy.typing as npt

from fuse_index.expressions.conjunction import Conjunction
from fuse_index.expressions.to_sql import predicate_sql
from fuse_index.expressions.traversal import predicate_leaves
from fuse_index.indexes.ballot import FALSE, UNKNOWN, Ballot
from fuse_index.predicate import Leaf
from fuse_index.pruning.combine import VoteCount, VoteTree, best_case_outcomes, combine_votes
from fuse_index.pruning.compile import CompiledProbe, PredicateProbes
from fuse_index.pruning.trace import PruningTrace
from fuse_index.reasons import Reason

_Subject = Leaf | Conjunction


class Contradiction(Exception):
    """Indexes that contradict themselves or each other. The planner catches this, and plans anew without them."""

    def __init__(self, indexes: frozenset[str], detail: str) -> None:
        super().__init__(detail)
        self.indexes, self.detail = indexes, detail


@dataclass
class Tally:
    """What is known of each subject on n units: by all that voted, and by exact statistics alone.

    ``count``: their ballots, put together. ``voters``: by subject, the indexes that voted on it, not exact statistics.
    ``leaves``: of the conjunctions, as far as they were needed.
    """

    probes: PredicateProbes
    trace: PruningTrace
    units: int
    count: VoteCount
    exact: dict[_Subject, Ballot]
    voters: dict[_Subject, set[str]] = field(default_factory=dict)
    leaves: dict[Conjunction, frozenset[Leaf]] = field(default_factory=dict)

    @classmethod
    def begin(cls, probes: PredicateProbes, trace: PruningTrace, units: int) -> Tally:
        """Nothing is known of any of so many units."""
        unknown = {subject: Ballot.unknown(units) for subject in probes.by_leaf}
        tree = VoteTree.of(probes.grouped, probes.by_leaf, probes.conjunctions, probes.implied)
        return cls(probes, trace, units, VoteCount(tree, unknown, units), dict(unknown))

    @property
    def ballots(self) -> Mapping[_Subject, Ballot]:
        """What is known by all that voted."""
        return self.count.votes

    def cut(self, owners: npt.NDArray[np.int64], row_counts: npt.NDArray[np.int64]) -> Tally:
        """The votes so far, on what some of the units are cut into.

        ``owners``, ``row_counts``: int64, shape (k,), as of ``Ballot.cut``.
        """
        ballots = {subject: ballot.cut(owners, row_counts) for subject, ballot in self.ballots.items()}
        exact = {
            subject: ballots[subject] if ballot is self.ballots[subject] else ballot.cut(owners, row_counts)
            for subject, ballot in self.exact.items()
        }
        count = VoteCount(self.count.tree, ballots, len(owners))
        return Tally(self.probes, self.trace, len(owners), count, exact, self.voters, self.leaves)

    def combined(self) -> Ballot:
        """What the whole predicate may be on each unit."""
        return self.count.ballot

    def best_case(self, pending: Iterable[_Subject]) -> VoteCount:
        """The tally as it would be if every index yet to be asked about these units gave the best answer."""
        wished: Mapping[Any, int] = best_case_outcomes(self.probes.predicate)
        best = {subject: Ballot.constant(self.units, wished.get(subject, FALSE)) for subject in pending}
        return VoteCount(self.count.tree, {**self.ballots, **best}, self.units)

    def add(self, subject: _Subject, compiled: CompiledProbe | None, vote: Ballot) -> None:
        """Add a vote; None: the engine's own. Raises Contradiction."""
        is_exact = compiled is None or compiled.exact
        votes = self.ballots[subject].intersect(vote)
        alone = self.exact[subject] is self.ballots[subject]  # as long as no index has voted
        exact = votes if alone else self.exact[subject].intersect(vote)
        if len(wrong := _impossible_units(votes)):
            voters = self.voters.get(subject, set())
            if not is_exact and len(_impossible_units(exact)):
                voters = set()  # what others said does not matter
            self._doubt(voters if is_exact or compiled is None else {*voters, compiled.index}, subject, len(wrong))
            votes = _unknown_on(votes, wrong)
            exact = votes if alone else _unknown_on(exact, wrong)
        self.count.update(subject, votes)
        if is_exact:
            self.exact[subject] = exact
        elif compiled is not None:
            self.voters.setdefault(subject, set()).add(compiled.index)

    def check_conjunctions(self) -> None:
        """A conjunction is what its leaves are together: votes on both must leave something. Raises Contradiction."""
        for subject in self.probes.by_leaf if self.voters else ():
            if isinstance(subject, Conjunction):
                leaves = self._leaves_of(subject)
                voters = set().union(*(self.voters.get(each, ()) for each in (subject, *leaves)))
                if voters and len(wrong := _impossible_units(self._both(subject, self.ballots))):
                    own = self.voters.get(subject, set())
                    exact_leaves = {**self.exact, subject: self.ballots[subject]}
                    self._doubt(
                        own if own and len(_impossible_units(self._both(subject, exact_leaves))) else voters,
                        subject,
                        len(wrong),
                    )

    def _leaves_of(self, conjunction: Conjunction) -> frozenset[Leaf]:
        if conjunction not in self.leaves:
            found = (leaf for part in conjunction.leaves for leaf in predicate_leaves(part))
            self.leaves[conjunction] = frozenset(found)
        return self.leaves[conjunction]

    def _both(self, conjunction: Conjunction, ballots: Mapping[_Subject, Ballot]) -> Ballot:
        asked = [part for part in conjunction.leaves if any(leaf in ballots for leaf in predicate_leaves(part))]
        parts = (combine_votes(part, ballots, self.units) for part in asked)
        return reduce(and_, parts, Ballot.unknown(self.units) if not asked else next(parts)).intersect(
            ballots[conjunction]
        )

    def _doubt(self, indexes: set[str], subject: _Subject, units: int) -> None:
        """Raise Contradiction for these indexes; where there are none, note that statistics contradict each other."""
        names, sql = " and ".join(sorted(indexes)), predicate_sql(subject)
        others = "exact statistics" if len(indexes) == 1 else "each other"
        detail = f"contradicting votes: what {names} said of {sql} contradicts {others} on {units} units"
        if indexes:
            raise Contradiction(frozenset(indexes), f"{detail}; not believed in this query: verify, and rebuild")
        self.trace.note(subject, None, Reason.CORRUPT, f"contradicting statistics on {units} units: check the table")


def _impossible_units(ballot: Ballot) -> npt.NDArray[np.int64]:
    """Units of which votes leave no outcome, or none of one of their rows."""
    rows = [unit for unit, votes in ballot.rows.items() if not votes.all()]
    return np.union1d(np.flatnonzero(ballot.bits == 0), np.array(rows, np.int64)).astype(np.int64)


def _unknown_on(ballot: Ballot, units: npt.NDArray[np.int64]) -> Ballot:
    bits = ballot.bits.copy()
    bits[units] = UNKNOWN
    return Ballot(bits, {unit: rows for unit, rows in ballot.rows.items() if unit not in set(units.tolist())})
