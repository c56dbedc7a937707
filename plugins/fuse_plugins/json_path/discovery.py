"""Which paths are worth an index: those that lead to a scalar in many documents. Found anew in every block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from fuse_plugins.json_path.paths import MISSING, Pattern, of_steps, parsed

SAMPLE = 1000
"""Documents of a block that are looked at."""


def frequent(documents: pa.Array, presence: float, count: int, depth: int) -> list[Pattern]:
    """At most so many paths, those first that most documents have; ties in the order of their names."""
    known = documents.drop_null()
    sample = known.take(pa.array(range(0, len(known), max(1, len(known) // SAMPLE)), pa.int64())).to_pylist()
    seen = Counter(path for text in sample for path in set(_scalars(parsed(text), (), depth)))
    ranked = sorted((-times, path) for path, times in seen.items() if times >= presence * len(sample))
    return [of_steps(path) for _, path in ranked[:count]]


def _scalars(node: Any, above: tuple[str, ...], depth: int) -> Iterator[tuple[str, ...]]:
    if type(node) is dict:
        for name, child in node.items() if len(above) < depth else ():
            if "'" not in name:
                yield from _scalars(child, (*above, name), depth)
    elif above and node is not None and node is not MISSING and type(node) is not list:
        yield above
