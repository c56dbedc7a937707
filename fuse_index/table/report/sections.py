"""The parts of a table's page, each within bounds: a large table has more pages, and no longer ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from fuse_index.display.arrow import arrow_grid
from fuse_index.errors import FuseIndexError
from fuse_index.handle import TableHandle, resolve_evaluable
from fuse_index.pruning.explanation import Explanation
from fuse_index.table.inspection.card import index_section, table_facts
from fuse_index.table.inspection.columns import bounds_texts, columns_table
from fuse_index.table.inspection.commits import snapshots_table
from fuse_index.table.report.page import problem, section
from fuse_storage import BlockFrame, StorageError, show_card, value_grid

PAGE_ROWS, MAX_BOUNDS = 25, 8
"""Rows of one page, and columns whose bounds in zones are shown."""


@dataclass(frozen=True)
class PageQuestion:
    """What is asked of a table's page.

    ``where``: a condition, empty for none. ``block``: whose zones are shown. ``table``: its name in its warehouse,
    empty where it has none. ``link``: makes the address of the page with other members, where pages are linked.
    """

    where: str = ""
    blocks_from: int = 0
    commits_from: int = 0
    block: int | None = None
    table: str = ""
    link: Callable[..., str] | None = None


def table_page_sections(
    table: TableHandle, explain: Callable[[str], Explanation], question: PageQuestion
) -> Iterator[str]:
    """All sections; one that fails says why, and leaves the others."""
    name = table.name or table.stored.store.url
    if question.table:
        yield '<nav><a href="/">All tables</a></nav>'
    yield f"<h1>{escape(name)}</h1>"
    yield section("In short", show_card("", {"at": table.stored.store.url, **table_facts(table)}))
    yield _tried("What a condition skips", lambda: _condition(table, question, explain), "condition")
    for title, anchor, show in (
        ("Columns", "columns", lambda: arrow_grid(columns_table(table.stored).drop(["id", "stored_as"]))),
        ("Indexes", "indexes", lambda: index_section(table, "")),
        ("Blocks", "blocks", lambda: _blocks(table, question)),
        ("Zones of a block", "zones", lambda: _zones(table, question)),
        ("Commits", "commits", lambda: _commits(table, question)),
        ("Properties", "properties", lambda: _properties(table)),
    ):
        yield _tried(title, show, anchor)


def _tried(title: str, show: Callable[[], str], anchor: str) -> str:
    try:
        return section(title, show(), anchor)
    except (FuseIndexError, StorageError) as wrong:
        return section(title, problem(str(wrong)), anchor)


def _condition(table: TableHandle, question: PageQuestion, explain: Callable[[str], Explanation]) -> str:
    form = ""
    if question.link is not None:
        example, typed = escape("price < 10 AND city = 'Bonn'"), escape(question.where)
        form = _form(
            "condition",
            {"name": question.table},
            f'<input type="text" name="where" aria-label="Condition" placeholder="{example}" maxlength="20000" '
            f'value="{typed}"><button>Explain</button>',
        )
    if not question.where.strip():
        return form
    try:
        explained = explain(question.where)._repr_html_()
    except (FuseIndexError, StorageError) as wrong:
        return form + problem(str(wrong))
    try:
        resolve_evaluable(question.where, table.snapshot, table.engine)
    except FuseIndexError as only:  # by Spark, which may ask about the rest of it
        return form + problem(str(only)) + explained
    return form + explained


def _form(anchor: str, kept: Mapping[str, str], inputs: str) -> str:
    """A form that asks for the same page anew. ``kept``: members of its address that stay."""
    hidden = "".join(
        f'<input type="hidden" name="{name}" value="{escape(value)}">' for name, value in kept.items() if value
    )
    return f'<form method="get" action="#{anchor}">{hidden}{inputs}</form>'


def _blocks(table: TableHandle, question: PageQuestion) -> str:
    total = table.snapshot.block_count
    if not total:
        return "<p>There are no rows yet.</p>"
    first = min(max(question.blocks_from, 0), total - 1)
    numbers = np.arange(first, min(first + PAGE_ROWS, total))
    blocks = table.stored.blocks().take(numbers)
    rows = zip(
        numbers.tolist(),
        blocks.live_row_counts.tolist(),
        np.diff(blocks.zone_offsets).tolist(),
        blocks.sizes.tolist(),
        blocks.added_by.tolist(),
        blocks.locations,
        strict=True,
    )
    columns = ["block", "rows", "zones", "bytes", "added_by", "location"]
    return value_grid(columns, rows, len(numbers), limit=PAGE_ROWS) + _pages(question, "blocks_from", first, total)


def _zones(table: TableHandle, question: PageQuestion) -> str:
    if question.link is None:
        return ""
    total, chosen = table.snapshot.block_count, question.block
    form = _form(
        "zones",
        {"name": question.table, "where": question.where},
        f'<input type="number" name="block" min="0" max="{max(total - 1, 0)}" aria-label="Number of a block" '
        f'value="{"" if chosen is None else chosen}"><button>Show</button>',
    )
    if chosen is None:
        return form
    if not 0 <= chosen < total:
        return form + problem(f"there is no block {chosen:,}: give a number from 0 to {total - 1:,}")
    return form + _zone_grid(table, table.stored.blocks().take(np.array([chosen])))


def _zone_grid(table: TableHandle, block: BlockFrame) -> str:
    zones, columns = block.zones(), [("rows", [f"{rows:,}" for rows in block.zone_rows.tolist()])]
    for path, field in table.snapshot.schema.leaves():
        if len(columns) <= MAX_BOUNDS and (statistics := zones.statistics(field.id)) is not None:
            columns.append((".".join(path), bounds_texts(statistics)))
    listed = zip(range(len(block.zone_rows)), *(values for _, values in columns), strict=True)
    return value_grid(["zone", *(name for name, _ in columns)], listed, len(block.zone_rows), "", "zones", PAGE_ROWS)


def _commits(table: TableHandle, question: PageQuestion) -> str:
    first = max(question.commits_from, 0)
    listed = snapshots_table(table.stored, first + PAGE_ROWS).slice(first)
    kept = listed.select(["sequence", "timestamp", "operation", "rows", "blocks", "bytes", "indexes", "snapshot"])
    rows = ([row[name] for name in kept.column_names] for row in kept.to_pylist())
    grid = value_grid(kept.column_names, rows, len(kept), limit=PAGE_ROWS)
    return grid + _pages(question, "commits_from", first, table.snapshot.version)


def _properties(table: TableHandle) -> str:
    properties = dict(table.snapshot.properties)
    return value_grid(["property", "value"], properties.items(), len(properties)) if properties else ""


def _pages(question: PageQuestion, name: str, first: int, total: int) -> str:
    """Links to the rows before and after, or how many there are."""
    shown = f"{first + 1:,} to {min(first + PAGE_ROWS, total):,} of {total:,}"
    if question.link is None:
        return f'<p class="fuse-rest">{shown}</p>' if total > PAGE_ROWS else ""
    around: Sequence[tuple[str, int, bool]] = [
        ("earlier", max(first - PAGE_ROWS, 0), first > 0),
        ("later", first + PAGE_ROWS, first + PAGE_ROWS < total),
    ]
    anchor = name.partition("_")[0]
    links = "".join(
        f'<a href="{escape(question.link(**{name: place}))}#{anchor}">{text}</a>'
        for text, place, is_there in around
        if is_there
    )
    return f'<p class="go">{links}{shown}</p>'
