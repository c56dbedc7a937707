"""``json_contains(document, path, value)``: whether some value at the path has this text. Exact on any rows, indexed or
not.

The path is jsonpath-ng's, the text as ``get_json_object`` spells scalars; null, objects and arrays are no text. FALSE
for a document that is malformed, NULL for NULL.
"""

from __future__ import annotations

import pyarrow as pa

from fuse_index.plugin import Function
from fuse_plugins.json_path.extract import values_at
from fuse_plugins.json_path.paths import parse_pattern, scalar_text


def json_contains(documents: pa.Array, paths: pa.Array | pa.Scalar, values: pa.Array | pa.Scalar) -> pa.BooleanArray:
    """Raises ValueError for what is no path to jsonpath-ng."""
    count = max((len(one) for one in (documents, paths, values) if not isinstance(one, pa.Scalar)), default=1)
    columns = [
        [one.as_py()] * count if isinstance(one, pa.Scalar) else one.to_pylist() for one in (documents, paths, values)
    ]
    return pa.array([None if None in row else _contains(*row) for row in zip(*columns, strict=True)], pa.bool_())


def _contains(document: str, path: str, wanted: str) -> bool:
    return any(scalar_text(value) == wanted for value in values_at(parse_pattern(path), document))


def check_json_contains(document: str | None, path: str, wanted: str) -> None:
    """Raises ValueError for what is no path."""
    parse_pattern(path)


JSON_CONTAINS = Function(
    "json_contains",
    (pa.string(), pa.string(), pa.string()),
    json_contains,
    constants=frozenset({1, 2}),
    check=check_json_contains,
)
