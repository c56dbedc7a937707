"""``get_json_object`` of a column of documents, where its texts are known beyond doubt."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from fuse_index.errors import OpaqueError
from fuse_index.expressions.errors import NotReproducible
from fuse_index.expressions.json import path as json_paths
from fuse_index.expressions.to_sql import term_sql
from fuse_index.predicate import JsonPath


def texts_at_path(term: JsonPath, documents: pa.Array, doubt: int = json_paths.SURE) -> pa.Array:
    """What ``get_json_object`` gives of each document, if no text of it is more doubtful than that.

    Raises OpaqueError where it is, and for other functions.
    """
    if term.function != "get_json_object":
        raise OpaqueError(f"only Spark can evaluate {term_sql(term)}")
    try:
        found = json_paths.get_json_objects(documents, term.path)
    except NotReproducible as unsure:
        raise OpaqueError(f"only Spark can evaluate {term_sql(term)}: {unsure}") from None
    doubtful = np.flatnonzero(found.doubts > doubt)
    if len(doubtful):
        document = documents[int(doubtful[0])].as_py()
        shown = document if len(document) < 100 else f"{document[:100]}…"
        raise OpaqueError(
            f"only Spark can evaluate {term_sql(term)} of {shown!r}: Java's versions write it in different ways"
        )
    return found.texts
