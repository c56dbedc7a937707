"""How much of what could be tried is tried: ``make test EFFORT=4`` tries four times as much as ``make test``."""

import os

_EFFORT = float(os.environ.get("FUSE_INDEX_EFFORT", "1"))


def effort(count: int) -> int:
    """How often something is tried of which ``count`` times are enough for each change; at least once."""
    return max(1, round(count * _EFFORT))
