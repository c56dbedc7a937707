"""Tables of PyIceberg's catalogues, also those whose schemas have columns of types that PyIceberg does not know.

Catalogues give no metadata before they have parsed it. Where that fails it is given to them without these columns:
those that read it as a file are given a store that leaves them out, and of REST's the answer is changed.
"""

from __future__ import annotations

import json
from contextlib import suppress
from io import BytesIO
from typing import Any

from fuse_index.sources.iceberg.metadata import UnknownColumns, drop_unknown_columns, load_metadata

_LENIENT_IO = "fuse_index.sources.iceberg.lenient_io.LenientFileIO"


def load_table_of_catalog(catalog: str, name: str) -> tuple[Any, UnknownColumns]:
    """A table, and its columns of unknown types. Raises what PyIceberg and its catalogues do."""
    from pyiceberg.catalog import load_catalog

    with load_catalog(catalog) as opened:  # a catalogue in a database holds connections until it is closed
        try:
            return opened.load_table(name), {}
        except Exception:  # of pydantic, of PyIceberg, which has no common base, or of a catalogue of somebody else
            with suppress(Exception):
                session = getattr(opened, "_session", None)  # a catalogue of REST has no other place for whom it asks
                table, unknown = _from_file(catalog, name) if session is None else _from_answer(opened, session, name)
                if any(unknown.values()):
                    return table, unknown
            raise


def _from_file(catalog: str, name: str) -> tuple[Any, UnknownColumns]:
    from pyiceberg.catalog import load_catalog
    from pyiceberg.io import PY_IO_IMPL

    from fuse_index.sources.iceberg.lenient_io import without_lenience

    with load_catalog(catalog, **{PY_IO_IMPL: _LENIENT_IO}) as opened:
        table = opened.load_table(name)
    return load_metadata(table.metadata_location, without_lenience(table.io.properties))


def _from_answer(opened: Any, session: Any, name: str) -> tuple[Any, UnknownColumns]:
    from requests import Response

    unknown: dict[int, Any] = {}

    def without_unknown(answer: Response, **_: Any) -> Response:
        if not answer.ok or "metadata" not in (described := answer.json()):
            return answer
        unknown.update(drop_unknown_columns(described["metadata"]))
        changed = Response()
        changed.status_code, changed.url, changed.request = answer.status_code, answer.url, answer.request
        changed.headers, changed.encoding = answer.headers, "utf-8"
        changed.raw = BytesIO(json.dumps(described).encode())
        return changed

    session.hooks["response"].append(without_unknown)
    return opened.load_table(name), unknown
