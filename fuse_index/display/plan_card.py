"""A plan as a card: how much is read, which blocks went and by whom, and what each index did for each condition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from fuse_index.display.block_map import READ_COLOR, BlockMap, swatch
from fuse_storage import CARD_STYLE, value_grid, value_text

MAX_CONDITION = 2_000
"""Characters of a condition that are shown."""

_STYLE = (
    "<style>.fuse .fuse-bar{display:inline-block;width:16em;height:.8em;border-radius:3px;overflow:hidden;"
    "background:rgba(127,127,127,.25);vertical-align:middle}"
    f".fuse .fuse-bar i{{display:block;height:100%;background:{READ_COLOR}}}"
    ".fuse .fuse-map{display:block;max-width:100%;height:auto;margin:.3em 0}"
    ".fuse .fuse-key{display:block;margin:.1em 0;overflow-wrap:anywhere}</style>"
)
Level = tuple[str, int, int]
"""What is counted, how many of it are read, and how many there are."""
EFFECTS = ("predicate", "index", "reason", "effect")


def plan_card(
    facts: Mapping[str, str],
    levels: Iterable[Level],
    notes: Iterable[str],
    effects: Sequence[Sequence[str]],
    block_map: BlockMap | None,
) -> str:
    """The card. ``facts``: what is read, and where; ``effects``: a row for each vote, of ``EFFECTS``."""
    told = "".join(
        f'<tr><td class="fuse-name">{escape(name)}</td><td><code>{escape(_cut(value))}</code></td></tr>'
        for name, value in facts.items()
    )
    bars = "".join(_bar(*level) for level in levels)
    said = "".join(f"<p>{escape(_cut(note))}</p>" for note in notes)
    votes = value_grid(EFFECTS, effects, len(effects), more="votes") if effects else ""
    return (
        f'{CARD_STYLE}{_STYLE}<div class="fuse"><table>{told}</table><table>{bars}</table>'
        f"{said}{_map(block_map)}{votes}</div>"
    )


def _bar(name: str, kept: int, total: int) -> str:
    share = 100 * kept / total if total else 0
    width = f"{max(share, 0.6) if kept else 0:.1f}"
    return (
        f'<tr><td class="fuse-name">{escape(name)}</td><td><span class="fuse-bar" role="img" '
        f'aria-label="{share:.0f} % to read"><i style="width:{width}%"></i></span></td>'
        f'<td class="fuse-number">{value_text(kept, name)}</td><td>of {value_text(total, name)} to read</td></tr>'
    )


def _map(block_map: BlockMap | None) -> str:
    if block_map is None or not len(block_map.fates):
        return ""
    entries = "".join(f'<div class="fuse-key">{swatch(*entry)}</div>' for entry in block_map.legend())
    return f"<p><b>Blocks, in their order</b></p>{block_map.to_svg()}{entries}"


def _cut(text: str) -> str:
    return text if len(text) <= MAX_CONDITION else f"{text[:MAX_CONDITION]}…"
