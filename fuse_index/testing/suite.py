"""``IndexTests``: which tests a kind has to pass, by the protocols that it has."""

from __future__ import annotations

from typing import Any

from fuse_index.indexes.interface import Answers, Ranks, Votes
from fuse_index.testing.answer_tests import AnswerTests
from fuse_index.testing.isolation_tests import IsolationTests
from fuse_index.testing.rank_tests import RankTests
from fuse_index.testing.score_tests import ScoreTests
from fuse_index.testing.table_tests import TableTests
from fuse_index.testing.vote_tests import VoteTests

_SUITES = (
    (VoteTests, Votes),
    (IsolationTests, Votes),
    (TableTests, Votes),
    (RankTests, Ranks),
    (ScoreTests, Ranks),
    (AnswerTests, Answers),
)


class IndexTests(TableTests, IsolationTests, ScoreTests, AnswerTests):
    """Inherit, name your kind, and it is tested.

    ``index``: the kind. ``inputs``: what it is put on; by default a column of each type that it accepts. ``options``:
    an instance of its Options, or their values by name. ``functions``: what its leaves call, and what it ranks by. What
    rows hold (``rows``, ``drawn``), what they are compared with (``literals``) and which leaves are asked (``leaves``)
    may be overridden: a kind on documents brings documents. A kind that ranks gives ``rankings`` and ``scores``, one
    that answers gives ``requests`` and ``answer``.
    """

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Tests of protocols that the kind does not have are none of it."""
        super().__init_subclass__(**arguments)
        kind = getattr(cls, "index", None)
        for suite, protocol in _SUITES:
            if kind is not None and not isinstance(kind(), protocol):
                for name in vars(suite):
                    if name.startswith("test_"):
                        setattr(cls, name, None)  # pytest collects what can be called
