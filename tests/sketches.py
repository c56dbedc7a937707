"""HLL sketches in tests: left out on Python 3.14 and newer, for which ``datasketches`` has no wheel yet."""

import sys
from collections.abc import Iterable
from importlib.util import find_spec

import pytest

HAVE_SKETCHES = sys.version_info < (3, 14) or find_spec("datasketches") is not None
needs_sketches = pytest.mark.skipif(not HAVE_SKETCHES, reason="datasketches has no wheel for this Python")


def computable(aggregates: Iterable[str]) -> list[str]:
    """Aggregates without sketches, where these cannot be made."""
    return [text for text in aggregates if HAVE_SKETCHES or not text.startswith("hll_")]
