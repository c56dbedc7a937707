"""All names in the documents of a block, as long as they are few: what is not among them is in no document.

They stand in a summary as if they were a path of their own, under a name that no path has: ``low`` lists them, to as
many levels as ``present`` says. So summaries keep their type, and code that does not know of it finds no such path.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fuse_index.plugin import json_documents

NAMES_ENTRY = "names"
"""The path of the entry; paths begin with $."""
_MAX_LEVELS = 4
_MAX_LEVEL_BYTES = 200
"""Bytes of the names of one level beyond which that level, and those below it, are left out."""

_MAX_SHAPES = 10_000

Names = tuple[str, ...]
"""Names one within the other, from the root."""


@dataclass
class KnownNames:
    """Names that are collected; ``levels`` is how many of them all are known."""

    levels: int = _MAX_LEVELS
    found: set[Names] = field(default_factory=set)
    shapes: set[tuple[Any, ...]] = field(default_factory=set)
    """Names of objects that were seen, so that those of like objects are not added again."""
    sizes: list[int] = field(default_factory=lambda: [0] * _MAX_LEVELS)

    def add_tree(self, node: Any, above: Names = ()) -> None:
        """Add the names in a document that was parsed, be it to dictionaries or to ``json_documents.Members``."""
        if len(above) >= self.levels:
            return
        if type(node) is dict:
            self._add_names((above, *node))
            for name, child in node.items():
                if type(child) is dict:
                    self.add_tree(child, (*above, name))
        elif isinstance(node, json_documents.Members):
            self._add_names((above, *(name for name, _ in node)))
            for name, child in node:
                self.add_tree(child, (*above, name))

    def _add_names(self, shape: tuple[Any, ...]) -> None:
        """Add the names in one object: its first element is those above it."""
        if shape in self.shapes:
            return
        if len(self.shapes) < _MAX_SHAPES:
            self.shapes.add(shape)
        for name in shape[1:]:
            if (names := (*shape[0], name)) not in self.found:
                self.add(names)

    def add_text(self, text: str) -> None:
        """Add the names in a document as the engine's own reader has it."""
        try:
            self.add_tree(json_documents.read_json(text))
        except json_documents.MalformedJson:
            return
        except json_documents.NotReproducible:
            self.levels = 0

    def add(self, names: Names) -> None:
        level = len(names) - 1
        self.found.add(names)
        self.sizes[level] += len(json.dumps(names)) + 2
        if self.sizes[level] > _MAX_LEVEL_BYTES:
            self.levels = min(self.levels, level)

    def entry(self) -> dict[str, Any] | None:
        """The entry of a summary; None if not even the outermost names are known."""
        if not self.levels:
            return None
        names = sorted(names for names in self.found if len(names) <= self.levels)
        nothing = dict.fromkeys(("high", "least", "greatest", "first", "last"))
        return nothing | {"path": NAMES_ENTRY, "kinds": 0, "present": self.levels, "low": json.dumps(names)}


def merge_known_names(entries: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Merge the entries of several blocks."""
    merged = KnownNames(min(entry["present"] for entry in entries))
    for entry in entries:
        for names in json.loads(entry["low"]):
            merged.add(tuple(names))
    return merged.entry()


def lacks_names(listed: str | None, levels: int, wanted: Names) -> bool:
    """Say whether no document has these names within each other, by what an entry lists."""
    if listed is None or not 0 < levels <= _MAX_LEVELS or not wanted:
        return False
    known = {tuple(names) for names in json.loads(listed)}
    return wanted[:levels] not in known
