"""Arrow tables in notebooks: history, blocks, search results and whatever else is rows, as a grid of the first ones.

pyarrow prints a table column by column, and no class of ours can stand for one. IPython, where it runs, is told instead
how to show it in HTML, unless somebody else has told it already.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

import pyarrow as pa

from fuse_storage import CARD_STYLE, MAX_GRID_COLUMNS, MAX_GRID_ROWS, value_grid


def arrow_html(rows: pa.Table) -> str:
    """Show the first rows of a table, with the types of its columns below their names."""
    size = f"{rows.num_rows:,} {'row' if rows.num_rows == 1 else 'rows'}, {rows.num_columns:,} columns"
    return f'{CARD_STYLE}<div class="fuse">{arrow_grid(rows)}<p class="fuse-rest">{size}</p></div>'


def arrow_grid(rows: pa.Table, title: str = "") -> str:
    """The first rows of a table as a grid, within a card."""
    return value_grid(rows.column_names, _values(rows), rows.num_rows, title)


def _values(rows: pa.Table) -> Iterator[list[Any]]:
    columns = [rows.column(number) for number in range(min(rows.num_columns, MAX_GRID_COLUMNS))]
    for place in range(min(rows.num_rows, MAX_GRID_ROWS)):
        yield [_value(column[place]) for column in columns] + [None] * (rows.num_columns - len(columns))


def _value(scalar: Any) -> Any:
    """A value of Python, or as much of a long one as is shown. Times may be none of Python's."""
    if isinstance(scalar, pa.ListScalar) and scalar.is_valid:
        shown = [_value(each) for each in islice(scalar.values, MAX_GRID_ROWS)]
        return shown if len(shown) == len(scalar.values) else [*shown, f"… {len(scalar.values):,} in all"]
    with suppress(ValueError, OverflowError):
        return scalar.as_py()
    return str(scalar)


def show_arrow_in_notebooks() -> None:
    """Have IPython, where it runs and was not told otherwise, show Arrow's tables as grids."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    if shell is None or (formatter := shell.display_formatter.formatters.get("text/html")) is None:
        return
    try:
        formatter.lookup_by_type(pa.Table)
    except KeyError:
        formatter.for_type(pa.Table, arrow_html)
