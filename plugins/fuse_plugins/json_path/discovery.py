"""Discovery of paths worth an index: those that lead to a scalar in many documents. Done anew in every block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from fuse_plugins.json_path.paths import MISSING_VALUE, PathPattern, parse_document, pattern_of_steps

_MAX_SAMPLED_DOCUMENTS = 1000
"""Documents of a block that are looked at."""


def frequent_paths(documents: pa.Array, presence: float, count: int, depth: int) -> list[PathPattern]:
    """Find at most ``count`` paths of at most ``depth`` names that a share of ``presence`` of the documents has.

    Those that most documents have come first; ties in the order of their names.
    """
    not_null = documents.drop_null()
    sample = not_null.take(
        pa.array(range(0, len(not_null), max(1, len(not_null) // _MAX_SAMPLED_DOCUMENTS)), pa.int64())
    ).to_pylist()
    counts = Counter(path for text in sample for path in set(_scalar_paths(parse_document(text), (), depth)))
    ranked = sorted((-times, path) for path, times in counts.items() if times >= presence * len(sample))
    return [pattern_of_steps(path) for _, path in ranked[:count]]


def _scalar_paths(node: Any, prefix: tuple[str, ...], depth: int) -> Iterator[tuple[str, ...]]:
    if type(node) is dict:
        for name, child in node.items() if len(prefix) < depth else ():
            if "'" not in name:
                yield from _scalar_paths(child, (*prefix, name), depth)
    elif prefix and node is not None and node is not MISSING_VALUE and type(node) is not list:
        yield prefix
