"""Who listens in this process, and how they are told. Where nobody does, no event is made.

A listener is a function of an event, or an object with the hook ``fuse_index_events``: a plugin that is installed, or
what ``listen`` was given. One that raises is told in the log, once, and never fails what it hears of.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from fuse_index.errors import InputError
from fuse_index.signals.events import Event

HOOK = "fuse_index_events"

_logger = logging.getLogger("fuse_index.events")
_LISTENERS: dict[int, Callable[[Event], object]] = {}
"""By the identity of what was given."""
_failed: set[int] = set()
_UNHEARD: ContextVar[bool] = ContextVar("fuse_index_unheard", default=False)


@contextmanager
def listen(listener: Any) -> Iterator[Any]:
    """Tell a listener of what happens in this process to tables and indexes, in all threads.

    Args:
        listener: A function of an event, or an object that has the hook ``fuse_index_events``.

    Yields:
        The listener.

    Raises:
        InputError: It is neither.

    Example:
        >>> table = fuse.create_table("memory://listen", "id BIGINT")
        >>> heard = []
        >>> with fuse.listen(heard.append):
        ...     snapshot = table.append([{"id": 1}])
        ...     rows = table.to_arrow("id = 1")
        >>> [type(event).__name__ for event in heard]
        ['CommitMade', 'PlanMade']
    """
    add_listener(listener)
    try:
        yield listener
    finally:
        _LISTENERS.pop(id(listener), None)


def add_listener(listener: Any) -> None:
    """Tell a listener for the rest of the process. Raises InputError as ``listen``."""
    call = getattr(listener, HOOK, listener)
    if not callable(call):
        raise InputError(f"{listener!r} cannot listen: give a function of an event, or an object with {HOOK}(event)")
    _LISTENERS[id(listener)] = call


@contextmanager
def unheard() -> Iterator[None]:
    """Tell nobody of what happens within, in this thread: to tables that nobody knows."""
    token = _UNHEARD.set(True)
    try:
        yield
    finally:
        _UNHEARD.reset(token)


def is_unheard() -> bool:
    """Whether nobody is to know of what happens here."""
    return _UNHEARD.get()


def is_heard() -> bool:
    """Whether an event would be told to anybody."""
    if _UNHEARD.get():
        return False
    return bool(_LISTENERS) or _logger.isEnabledFor(logging.DEBUG)


def emit(make: Callable[[], Event]) -> None:
    """Tell all listeners of an event, which is made only if there are any. Never raises."""
    if not is_heard():
        return
    event = make()
    _logger.debug("%s", event)
    for number, call in list(_LISTENERS.items()):
        try:
            call(event)
        except Exception:
            if number not in _failed:
                _failed.add(number)
                _logger.warning("a listener failed on %s, and is told no more of its failures", event, exc_info=True)
