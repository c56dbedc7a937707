"""Garbage of a process that soon ends: Python looks for cycles seldom, and at the end not at all."""

import atexit
import gc

_PYTHONS_OWN = gc.get_threshold()
_NEW_OBJECTS, _YOUNG, _OLD = 200_000, 50, 100
"""After so many new objects Python looks among them, in place of 700: imports make a hundred thousand, which stay."""


def spare_garbage_collection() -> None:
    """Make the collector of this process rare, and have it pass over what is left when the process ends."""
    gc.set_threshold(_NEW_OBJECTS, _YOUNG, _OLD)
    atexit.register(gc.freeze)


def resume_garbage_collection() -> None:
    """Collect as Python does by itself, in a process that goes on: what it keeps may keep what is in a JVM."""
    gc.set_threshold(*_PYTHONS_OWN)
