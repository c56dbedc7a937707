"""How results look: rich tables for people, JSON for programs. Knows no table and no index.

Results go to standard output and nothing else does: progress, notes and errors go to standard error.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import Console
    from rich.text import Text

PIPE_WIDTH = 200
"""The width in characters of output that goes to no terminal: rich would cut everything at 80."""


def stdout_console() -> Console:
    """A console on standard output, made anew each time, because tests and pipes replace ``sys.stdout``."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else PIPE_WIDTH, highlight=False)


def stderr_console() -> Console:
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True)


def print_note(text: str) -> None:
    stderr_console().print(text, style="dim", markup=False)


def print_text(text: str) -> None:
    stdout_console().print(text, markup=False)


def print_result(record: Mapping[str, Any], sentence: str, as_json: bool) -> None:
    """Print the result of a command, as JSON or as a sentence."""
    print_json(record) if as_json else print_text(sentence)


def print_error(code: str, message: str, as_json: bool) -> None:
    """Print what went wrong on standard error, for people or, with its code, as JSON."""
    if as_json:
        print(_json_text({"error": {"code": code, "message": message}}, indent=2), file=sys.stderr)
    else:
        from rich.text import Text

        stderr_console().print(Text.assemble(("error: ", "bold red"), message))


def print_json(value: Any) -> None:
    """Print one JSON document, readable by a person too."""
    print(_json_text(value, indent=2))


def print_json_lines(rows: pa.Table | pa.RecordBatch) -> None:
    for row in rows.to_pylist():
        print(_json_text(row))


def _json_text(value: Any, indent: int | None = None) -> str:
    """A value as JSON; letters that standard output may not know are escaped."""
    unicode = (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")
    return json.dumps(to_json_value(value), indent=indent, ensure_ascii=not unicode, allow_nan=False)


def print_rows(rows: pa.Table, title: str | None = None) -> None:
    """Print rows as a grid: numbers to the right, NULL dimmed, text cut by rich where the terminal ends."""
    from rich.table import Table
    from rich.text import Text

    grid = Table(title=title, title_justify="left", header_style="bold")
    for field in rows.schema:
        grid.add_column(Text(field.name), justify="right" if _is_number(field.type) else "left", overflow="fold")
    for row in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        grid.add_row(*(_cell(value) for value in row))
    stdout_console().print(grid)


def print_record(record: Mapping[str, Any], title: str | None = None) -> None:
    """Print the names and values of one thing, a line each."""
    from rich.table import Table
    from rich.text import Text

    grid = Table(title=title, title_justify="left", show_header=False, box=None, pad_edge=False)
    grid.add_column(style="bold")
    grid.add_column(overflow="fold")
    for name, value in record.items():
        grid.add_row(Text(name), _cell(value))
    stdout_console().print(grid)


def records_to_table(records: Sequence[Mapping[str, Any]], columns: Iterable[str]) -> pa.Table:
    """Records of plain values as an Arrow table, text where types differ."""
    import pyarrow as pa

    return pa.table({name: pa.array([_flat_value(record.get(name)) for record in records]) for name in columns})


def format_bytes(count: int) -> str:
    """Bytes for people: ``12 B``, ``3.4 kB``, ``1.2 GB``."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{count} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def to_json_value(value: Any) -> Any:
    """Put a value into JSON's own types; times are ISO text, binary is hex, decimals, NaN and infinities are text."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case Mapping():
            return {str(name): to_json_value(item) for name, item in value.items()}
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta() | Decimal():
            return str(value)
        case bytes():
            return value.hex()
        case list() | tuple() | set() | frozenset():
            return [to_json_value(item) for item in value]
        case _ if hasattr(value, "pandas_metadata"):  # a pa.Schema, which is not imported for JSON of other things
            return {field.name: str(field.type) for field in value}
        case _:
            return to_json_value(value.item()) if hasattr(value, "item") else str(value)


def _is_number(type_: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_))


def _flat_value(value: Any) -> Any:
    value = to_json_value(value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else value


def _lines(record: Mapping[str, Any]) -> Iterator[str]:
    """A record of records: a line for each value, those within indented; the innermost on one line."""
    for name, value in record.items():
        if isinstance(value, Mapping) and any(isinstance(item, Mapping) for item in value.values()):
            yield name
            yield from (f"  {line}" for line in _lines(value))
        elif isinstance(value, Mapping):
            yield f"{name}: " + "; ".join(f"{inner} {_value_text(item)}" for inner, item in value.items())
        else:
            yield f"{name}: {_value_text(value)}"


def _value_text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_value_text, value))
    simple = _flat_value(value)
    return simple if isinstance(simple, str) else json.dumps(simple)


def _cell(value: Any) -> Text:
    from rich.text import Text

    if value is None:
        return Text("NULL", style="dim")
    if isinstance(value, Mapping) and any(isinstance(item, Mapping) for item in value.values()):
        return Text("\n".join(_lines(value)))
    simple = _flat_value(value)
    return Text(simple if isinstance(simple, str) else json.dumps(simple))
