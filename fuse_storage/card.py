"""How a value looks to a person: a line in a REPL, a card in a notebook, and names after a dot.

A card is HTML that stands by itself: no script, nothing from elsewhere, all text escaped, and no longer than its bounds
make it, however much there is. Colours are those of the page, so that it can be read on dark and on light ground.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from html import escape
from itertools import islice
from typing import Any, ClassVar

MAX_GRID_ROWS, MAX_GRID_COLUMNS, MAX_TEXT = 20, 24, 160
"""What a card shows at most: rows and columns of a grid, and characters of one value."""

CARD_STYLE = (
    "<style>.fuse{font:13px/1.5 system-ui,sans-serif;color:inherit;max-width:72em}"
    ".fuse b.fuse-title{font-size:14px}"
    ".fuse p{margin:.5em 0 .2em}"
    ".fuse table{border-collapse:collapse;margin:.4em 0;font:inherit;font-size:12.5px;color:inherit}"
    ".fuse th,.fuse td{padding:2px 10px 2px 0;text-align:left;vertical-align:top;border:0;background:none;"
    "overflow-wrap:break-word;max-width:44em}"
    ".fuse .fuse-grid th{border-bottom:1px solid rgba(127,127,127,.5);font-weight:600}"
    ".fuse .fuse-grid th{white-space:nowrap}"
    ".fuse .fuse-grid td{border-bottom:1px solid rgba(127,127,127,.2)}"
    ".fuse .fuse-number{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}"
    ".fuse .fuse-name{opacity:.7;font-weight:400;white-space:nowrap}"
    ".fuse .fuse-scroll{overflow-x:auto}"
    ".fuse code{font:12px ui-monospace,monospace;color:inherit;background:none;padding:0}"
    ".fuse .fuse-rest{opacity:.7}</style>"
)
"""What cards look like; each brings it along, as it may stand alone."""

_shortened = reprlib.Repr()
_shortened.maxstring = _shortened.maxother = 60
_shortened.maxtuple = _shortened.maxlist = _shortened.maxdict = 5
_MAX_LINE = 320


class Shown:
    """The base of whatever is handed to a person.

    ``_shown``: the attributes that are told, in this order. ``_offered``: the names that are offered after a dot; None
    for all that are public. Both have spaces between them.
    """

    __slots__ = ()
    _shown: ClassVar[str] = ""
    _offered: ClassVar[str | None] = None

    def __repr__(self) -> str:
        return show_line(type(self).__name__, self._facts())

    def _repr_html_(self) -> str:
        return show_card(type(self).__name__, self._facts(), self._sections())

    def __dir__(self) -> list[str]:
        names = super().__dir__()
        if self._offered is None:
            return list(names)
        offered = {*self._shown.split(), *self._offered.split()}
        return [name for name in names if name in offered or name.startswith("_")]

    def _facts(self) -> Mapping[str, Any]:
        """What is told, by name."""
        return {name: getattr(self, name) for name in self._shown.split()}

    def _sections(self) -> Iterable[str]:
        """HTML below what is told."""
        return ()


def show_line(title: str, facts: Mapping[str, Any], *given: Any) -> str:
    """One line that names the facts, as a call would; empty ones are left out. ``given``: what needs no name.

    >>> show_line("Snapshot", {"version": 3, "operation": "append", "summary": {}})
    "Snapshot(version=3, operation='append')"
    """
    named = [f"{name}={_shortened.repr(_plain(value))}" for name, value in facts.items() if not _empty(value)]
    told = ", ".join([*map(repr, given), *named])
    return f"{title}({told})" if len(told) <= _MAX_LINE else f"{title}({told[:_MAX_LINE]}…)"


def show_card(title: str, facts: Mapping[str, Any], sections: Iterable[str] = ()) -> str:
    """A card: a title, facts in two columns, and HTML below them."""
    rows = "".join(
        f'<tr><td class="fuse-name">{escape(_bounded(name.replace("_", " ")))}</td>'
        f"<td>{escape(value_text(value, name))}</td></tr>"
        for name, value in facts.items()
        if not _empty(value)
    )
    return (
        f'{CARD_STYLE}<div class="fuse"><b class="fuse-title">{escape(title)}</b>'
        f"<table>{rows}</table>{''.join(sections)}</div>"
    )


def value_grid(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    total: int | None = None,
    title: str = "",
    more: str = "rows",
    limit: int = MAX_GRID_ROWS,
) -> str:
    """A table of the first rows and columns. ``total``: how many rows there are, where fewer are given."""
    shown = list(islice(rows, limit))
    total = len(shown) if total is None else total
    kept = range(min(len(columns), MAX_GRID_COLUMNS))
    numeric = {at for at in kept if shown and all(isinstance(row[at], int | float | datetime | None) for row in shown)}
    head = "".join(f"<th{_number(at in numeric)}>{escape(value_text(columns[at]))}</th>" for at in kept)
    body = "".join(
        "<tr>"
        + "".join(f"<td{_number(at in numeric)}>{escape(value_text(row[at], columns[at]))}</td>" for at in kept)
        + "</tr>"
        for row in shown
    )
    left = [
        *([f"{total - len(shown):,} more {more}"] if total > len(shown) else []),
        *([f"{len(columns) - len(kept):,} more columns"] if len(columns) > len(kept) else []),
    ]
    rest = f'<p class="fuse-rest">… and {" and ".join(left)}</p>' if left else ""
    caption = f"<p><b>{escape(title)}</b></p>" if title else ""
    return (
        f'{caption}<div class="fuse-scroll"><table class="fuse-grid"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>{rest}"
    )


def _number(numeric: bool) -> str:
    return ' class="fuse-number"' if numeric else ""


def value_text(value: Any, name: str = "") -> str:
    """A value as text of bounded length. ``name``: what it is called, by which bytes are told from other numbers."""
    if value is None:
        return "NULL" if name else ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return bytes_text(value) if name == "bytes" or name.endswith("_bytes") else f"{value:,}"
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, str):
        return _bounded(value)
    if isinstance(value, Mapping):
        return _bounded(", ".join(f"{value_text(key)}: {value_text(each)}" for key, each in islice(value.items(), 20)))
    if isinstance(value, list | tuple | set | frozenset):
        ends = f", … {len(value):,} in all" if len(value) > 20 else ""
        return _bounded(", ".join(value_text(each) for each in islice(value, 20)) + ends)
    return _bounded(_shortened.repr(value) if isinstance(value, bytes) else str(value))


def bytes_text(count: int) -> str:
    """A number of bytes in a unit that people read.

    >>> bytes_text(709), bytes_text(1_302_112)
    ('709 B', '1.3 MB')
    """
    size, unit = float(count), 0
    while size >= 999.95 and unit < 5:
        size, unit = size / 1000, unit + 1
    return f"{size:.1f} {['B', 'kB', 'MB', 'GB', 'TB', 'PB'][unit]}" if unit else f"{count:,} B"


def _bounded(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"


def _empty(value: Any) -> bool:
    return value is None or (not isinstance(value, int | float | datetime) and hasattr(value, "__len__") and not value)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds")
    return dict(value) if isinstance(value, Mapping) else value
