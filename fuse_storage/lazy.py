"""Properties that are computed once, without a lock: what ``functools`` has by this name since Python 3.12.

Its lock in Python 3.11 is one for all objects of a class. To say which rows a tail hides asks a table without the tail
the same questions, so that two threads that did so at once waited for each other forever.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property as cached_property  # type checkers know its name
else:

    class cached_property(functools.cached_property):  # noqa: N801  # named as the one that it is
        """A property that is computed when it is first asked for; by two threads perhaps twice, and then one counts."""

        def __get__(self, instance: object, owner: type[Any] | None = None) -> Any:
            """The value, which is then found before this is."""
            if instance is None:
                return self
            return instance.__dict__.setdefault(self.attrname, self.func(instance))
