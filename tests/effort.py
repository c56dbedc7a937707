"""How much of what could be tried is tried: ``make test EFFORT=4`` tries four times as much as ``make test``.

From ``EFFORT=2`` on every test and case runs. By default tests marked ``thorough`` are left out, and of a test marked
``alike``, whose cases are many of one kind, a part runs: see ``part``.
"""

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import TypeVar

import pytest

Case = TypeVar("Case")
_EFFORT = float(os.environ.get("FUSE_INDEX_EFFORT", "1"))
STEP = 5
"""One of so many cases runs, of those that are alike."""


def effort(count: int) -> int:
    """How often something is tried of which ``count`` times are enough for each change; at least once."""
    return max(1, round(count * _EFFORT))


def everything() -> bool:
    """Whether all tests and cases are to run."""
    return effort(1) > 1


def some_of(cases: Sequence[Case]) -> list[Case]:
    """The part that is tried of cases that are alike."""
    return list(cases) if everything() else [cases[number] for number in part([(n,) for n in range(len(cases))])]


def in_turn(cases: Iterable[Case], turn: int, turns: int = 2) -> list[Case]:
    """What is tried in one of several settings, of cases that each need only one of these; with EFFORT all, in each."""
    return [case for number, case in enumerate(cases) if everything() or number % turns == turn % turns]


def flips(places: Iterable[int], changes: Sequence[int]) -> list[tuple[int, int]]:
    """Places of bytes and how these are changed: each in one way, ``changes`` in turn; with EFFORT in every way."""
    return [
        (place, change)
        for place in places
        for number, change in enumerate(changes)
        if everything() or place % len(changes) == number
    ]


def part(places: Sequence[tuple[int, ...]]) -> list[int]:
    """Numbers of the cases that run by default, of cases that are alike.

    ``places``: of each case, where its values stand among those of each parameter. Of a list that is every fifth and
    the last. Of all combinations of several parameters it is a diagonal, which has each value of each of them.
    """
    sides = [side for side in dict.fromkeys(zip(*places, strict=True)) if len(set(side)) > 1]
    widths = [len(set(side)) for side in sides]
    if len(sides) > 1 and prod(widths) == len(places):
        return [number for number, place in enumerate(zip(*sides, strict=True)) if sum(place) % min(widths) == 0]
    return sorted({*range(0, len(places), STEP), len(places) - 1} - {-1})


def numbered(values: Sequence[object]) -> list[int]:
    """Where each stands among those that are different objects: combinations are made of the same ones."""
    seen = dict[int, int]()
    return [seen.setdefault(id(value), len(seen)) for value in values]


def left_out(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """Tests that a run without EFFORT leaves out, of all tests that were collected."""
    alike = defaultdict[str, list[pytest.Item]](list)
    for item in items:
        if item.get_closest_marker("thorough"):
            yield item
        elif item.get_closest_marker("alike"):
            alike[item.nodeid.partition("[")[0]].append(item)
    for cases in alike.values():
        given = [case.callspec.params for case in cases]  # type: ignore[attr-defined]
        runs = part(list(zip(*(numbered([values[name] for values in given]) for name in given[0]), strict=True)))
        yield from (case for number, case in enumerate(cases) if number not in runs)
