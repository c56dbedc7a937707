"""Which paths are worth an index: those that lead to a scalar in many documents. Found anew in every block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from fuse_plugins.json_path.paths import MISSING_VALUE, PathPattern, parse_document, pattern_of_steps

MAX_SAMPLED_DOCUMENTS = 1000
"""Documents of a block that are looked at."""


def frequent_paths(documents: pa.Array, presence: float, count: int, depth: int) -> list[PathPattern]:
    """At most so many paths, those first that most documents have; ties in the order of their names."""
    known = documents.drop_null()
    sample = known.take(
        pa.array(range(0, len(known), max(1, len(known) // MAX_SAMPLED_DOCUMENTS)), pa.int64())
    ).to_pylist()
    seen = Counter(path for text in sample for path in set(_scalar_paths(parse_document(text), (), depth)))
    ranked = sorted((-times, path) for path, times in seen.items() if times >= presence * len(sample))
    return [pattern_of_steps(path) for _, path in ranked[:count]]


def _scalar_paths(node: Any, above: tuple[str, ...], depth: int) -> Iterator[tuple[str, ...]]:
    if type(node) is dict:
        for name, child in node.items() if len(above) < depth else ():
            if "'" not in name:
                yield from _scalar_paths(child, (*above, name), depth)
    elif above and node is not None and node is not MISSING_VALUE and type(node) is not list:
        yield above
