"""Sentences on paths that name no column, with the names that are near."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.types as is_


def lookup_problem(path: str, name: str, above: Sequence[str], names: Sequence[str], count: int) -> str:
    """Why a name of a path is that of no field, or of ``count`` of them. ``names``: those of the fields there."""
    where = f"struct {'.'.join(above)!r}" if above else "the table"
    if count:
        return f"{path!r} is ambiguous: {where} has {[n for n in names if n.lower() == name.lower()]}"
    if not names:
        return f"no column {path!r}: {where} has no fields"
    near = difflib.get_close_matches(name, names, 3)
    return f"no column {path!r}: {where} has no {name!r}; " + (
        f"did you mean {near}?" if near else f"it has {names[:10]}."
    )


def no_fields_problem(path: Sequence[str], above: Sequence[str], data_type: pa.DataType) -> str:
    """Why nothing is found below a value that has no fields."""
    parts = {is_.is_list: ": elements are asked for as [0]", is_.is_map: f": values are asked for as [{path[-1]!r}]"}
    how = next((said for test, said in parts.items() if test(data_type)), "")
    return f"no column {'.'.join(path)!r}: {'.'.join(above)!r} is {data_type}, which has no fields{how}"
