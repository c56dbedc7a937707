"""The SQL function ``json_contains(document, path, value)``: does some value at the path have this text?

It is exact on any rows, indexed or not. The path is the standard's, the text as ``get_json_object`` spells scalars;
null, objects and arrays are no text. FALSE for a document that is malformed, NULL for NULL.
"""

from __future__ import annotations

import pyarrow as pa

from fuse_index.plugin import Function
from fuse_plugins.json_path.extract import values_at
from fuse_plugins.json_path.paths import parse_pattern, scalar_text


def json_contains(documents: pa.Array, paths: pa.Array | pa.Scalar, values: pa.Array | pa.Scalar) -> pa.BooleanArray:
    """Evaluate on n rows, constants as scalars: n booleans. Raises ValueError for what is no path."""
    count = max(
        (len(argument) for argument in (documents, paths, values) if not isinstance(argument, pa.Scalar)), default=1
    )
    columns = [
        [argument.as_py()] * count if isinstance(argument, pa.Scalar) else argument.to_pylist()
        for argument in (documents, paths, values)
    ]
    return pa.array([None if None in row else _contains(*row) for row in zip(*columns, strict=True)], pa.bool_())


def _contains(document: str, path: str, text: str) -> bool:
    return any(scalar_text(value) == text for value in values_at(parse_pattern(path), document))


def check_json_contains(document: str | None, path: str, text: str) -> None:
    """Raise ValueError for what is no path."""
    parse_pattern(path)


JSON_CONTAINS = Function(
    "json_contains",
    (pa.string(), pa.string(), pa.string()),
    json_contains,
    constants=frozenset({1, 2}),
    check=check_json_contains,
)
