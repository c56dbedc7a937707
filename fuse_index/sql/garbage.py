"""The cyclic garbage collector waits while a long text is read.

A condition of ten thousand terms becomes hundreds of thousands of objects, none of which is garbage before it is read;
the collector looks through them all again and again, which takes as long as everything else (measured: 0.9 of 1.7 s).
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock


class _Pause:
    """Who reads just now, in all threads: the last one lets the collector go on, if it was running before the first."""

    def __init__(self) -> None:
        self._lock, self._readers, self._was_enabled = Lock(), 0, False

    def begin(self) -> None:
        with self._lock:
            if self._readers == 0:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._readers += 1

    def end(self) -> None:
        with self._lock:
            self._readers -= 1
            if self._readers == 0 and self._was_enabled:
                gc.enable()


_PAUSE = _Pause()


@contextmanager
def collector_paused(wanted: bool = True) -> Iterator[None]:
    """Let no cyclic garbage be collected within, in the whole process; nothing happens unless it is ``wanted``."""
    if not wanted:
        yield
        return
    _PAUSE.begin()
    try:
        yield
    finally:
        _PAUSE.end()
