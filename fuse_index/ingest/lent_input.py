"""A file of Python's that Arrow's threads read, and hold nothing of when the interpreter ends.

Arrow reads ahead, and frees what it has read, in threads of its own. One that needs the interpreter's lock while the
interpreter ends takes the process with it (SIGABRT, of 360 processes that read a small file 10). So whatever is lent to
Arrow is known, and the process waits for it before it ends.
"""

from __future__ import annotations

import atexit
import io
import time
import weakref
from collections import deque
from threading import Lock
from typing import Any

import pyarrow as pa

_PATIENCE = 0.5
"""Seconds that the end of a process waits for Arrow. Rows that somebody still reads then are held for good."""
_lent: deque[weakref.ref[Any]] = deque()
_lock = Lock()


class LentInput(io.RawIOBase):
    """A file that ends where its reader wants. ``source``: has ``read``, which is called by one thread at a time."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self._reading = Lock()
        self._stopped = False
        _lend(self)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> Any:
        """Read as many bytes, as a pa.Buffer."""
        with self._reading:
            return _lend(pa.py_buffer(b"" if self._stopped else self._source.read(size)))

    def stop(self) -> None:
        """Wait for who reads, and let nobody read more."""
        with self._reading:
            self._stopped = True


def _lend(thing: Any) -> Any:
    with _lock:
        for first in [_lent.popleft() for _ in range(min(2, len(_lent)))]:  # so that few stay that nobody holds
            if first() is not None:
                _lent.append(first)
        _lent.append(weakref.ref(thing))
    return thing


@atexit.register
def wait_for_arrow() -> None:
    """Stop whoever reads, and wait until Arrow has let go of what was lent to it."""
    for lent in _references():
        if isinstance(thing := lent(), LentInput):
            thing.stop()
    thing, end = None, time.monotonic() + _PATIENCE
    while any(lent() is not None for lent in _references()) and time.monotonic() < end:
        time.sleep(0.001)


def _references() -> list[weakref.ref[Any]]:
    with _lock:
        return list(_lent)
