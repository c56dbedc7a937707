"""Trials that end in each bad way, to see that the harness notices."""

from __future__ import annotations

import os
import time
from collections.abc import Generator

from tests.hostile.trial import Lost, Trial, Wrong


def harmful(seed: int) -> Generator[Trial, None, None]:
    """Harm of every kind; what ends the process comes last, and after another start, what never ends."""
    yield Trial("loses", lambda: _raise(Lost("two rows")))
    yield Trial("answers wrongly", lambda: _raise(Wrong("2 instead of 3")))
    yield Trial("raises", lambda: _raise(KeyError("x")))
    yield Trial("holds", lambda: None)
    yield Trial("dies", os.abort) if seed == 0 else Trial("hangs", lambda: time.sleep(3600))


def _raise(error: Exception) -> None:
    raise error
