"""What a signal needs to know of a plan's account, which is made above."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


class CountedTotals(Protocol):
    """How many there are, and how many are read."""

    @property
    def total(self) -> int: ...

    @property
    def kept(self) -> int: ...


class GivenVote(Protocol):
    """What one index did for one leaf."""

    @property
    def leaf(self) -> str: ...

    @property
    def index(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def reason(self) -> Any: ...

    @property
    def detail(self) -> str: ...

    @property
    def blocks_removed(self) -> int: ...


class PlanAccount(Protocol):
    """The account of a plan: an ``Explanation``."""

    @property
    def table(self) -> str: ...

    @property
    def snapshot(self) -> str: ...

    @property
    def predicate(self) -> Any: ...

    @property
    def blocks(self) -> CountedTotals: ...

    @property
    def rows(self) -> CountedTotals: ...

    @property
    def bytes(self) -> CountedTotals: ...

    @property
    def votes(self) -> Sequence[GivenVote]: ...

    @property
    def seconds(self) -> float: ...

    def to_dict(self) -> dict[str, Any]: ...
