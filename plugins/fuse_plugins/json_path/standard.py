"""The part of JSONPath's standard, RFC 9535, that is read here, and how jsonpath-ng is told it.

A reader goes over a path by the standard's grammar, and writes it anew in the one spelling that jsonpath-ng reads as
the standard means it: each name in single quotes, without escapes but those of a quote and a backslash. What is no
JSONPath, and what is left out of the standard, is refused in words, with the place:

- functions of filters (``length(@.a) > 1``, regular expressions among them), and literals left of a comparison,
- a second ``..``, and queries within a filter that begin at the root and find more than one value: they look at
  everything again for each value, and two kilobytes would take half a minute,
- selectors of several sorts side by side (``['a', 1]``), and ``!`` before parentheses, which jsonpath-ng does not read.

>>> read_standard_path("$.a['\\\\u0062'][?@.c=='d'&&!@.e]").spelling
"$['a']['b'][?@['c'] == 'd' && !@['e']]"
>>> read_standard_path("$[01]")
Traceback (most recent call last):
ValueError: '$[01]' is no JSON path at 2: a number begins with 0
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

StandardStep = str | int | None
"""A name, a position from 0, or None for every child of an object or array."""

_BLANK = re.compile(r"[ \t\n\r]*")
_NAME = re.compile(r"[A-Za-z_\u0080-\ud7ff\ue000-\U0010ffff][0-9A-Za-z_\u0080-\ud7ff\ue000-\U0010ffff]*")
_INTEGER = re.compile(r"-?[0-9]+")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_TEXT = {
    quote: re.compile(rf"{quote}((?:[^\\\x00-\x1f{quote}]|\\(?:[bfnrt/\\{quote}]|u[0-9a-fA-F]{{4}}))*){quote}")
    for quote in "'\""
}
_COMPARISON = re.compile(r"==|!=|<=|>=|<|>")
_LITERAL = re.compile(r"(?:true|false|null)(?![0-9A-Za-z_(])")
_FUNCTION = re.compile(r"[a-z][a-z_0-9]*\(")
_MAX_INTEGER = (1 << 53) - 1
_MAX_NESTED, _MAX_SEGMENTS = 16, 64
"""Filters and parentheses within each other, and segments of a path that jsonpath-ng walks: it does so by recursion."""


@dataclass(frozen=True)
class StandardPath:
    """A path of the standard, spelled for jsonpath-ng; ``steps`` if it has names, positions and ``[*]`` alone."""

    spelling: str
    steps: tuple[StandardStep, ...] | None


def read_standard_path(text: str) -> StandardPath:
    """Read a path. Raises ValueError, with the place, for what is no path, and for what is left out of the standard."""
    reader = _PathReader(text)
    if not text.startswith("$"):
        reader.refuse("it begins with $")
    segments = reader.segments(1)
    if reader.position < len(text):
        reader.refuse("here a segment would begin, as in .name, ['name'], [0], [*] or [?@.a > 1]")
    steps = [segment.step for segment in segments]
    spelling = "$" + "".join(segment.spelling for segment in segments)
    if not any(step is _NO_STEP for step in steps):
        return StandardPath(spelling, tuple(steps))  # type: ignore[arg-type]  # no step is _NO_STEP
    if len(segments) > _MAX_SEGMENTS:
        reader.refuse(f"it has {len(segments)} segments, and {_MAX_SEGMENTS} are the most")
    return StandardPath(spelling, None)


_NO_STEP = object()


@dataclass(frozen=True)
class _Segment:
    spelling: str
    step: object = _NO_STEP
    sort: str = ""
    """``name`` or ``position``, which find one value at most; empty for what finds many."""

    @property
    def is_singular(self) -> bool:
        return bool(self.sort)


@dataclass
class _PathReader:
    text: str
    position: int = 0
    nested: int = 0
    descents: int = 0

    # --- segments -------------------------------------------------------------------------------------------------

    def segments(self, start: int) -> list[_Segment]:
        """Read what follows a $ or @: as many segments as there are."""
        self.position = start
        segments: list[_Segment] = []
        while True:
            after_blanks = self._after_blanks()
            if self.text[after_blanks : after_blanks + 1] not in (".", "["):
                return segments
            self.position = after_blanks
            segments.append(self._segment())

    def _segment(self) -> _Segment:
        if self._takes(".."):
            self.descents += 1
            if self.descents > 1:
                self.refuse("a second '..' would look at everything again for each value")
            inner = self._brackets() if self._peek() == "[" else self._dotted()
            return _Segment(f"..{inner.spelling}")
        return self._brackets() if self._peek() == "[" else self._dotted(self._takes("."))

    def _dotted(self, dot: bool = True) -> _Segment:
        if dot and self._takes("*"):
            return _Segment("[*]", None)
        name = self._match(
            _NAME, "a name begins with a letter or _, and has letters, digits and _; others stand in ['…']"
        )
        return _Segment(f"[{_quoted(name)}]", name, "name")

    def _brackets(self) -> _Segment:
        self._takes("[")
        selectors = [self._selector()]
        while self._takes_after_blanks(","):
            selectors.append(self._selector())
        if not self._takes_after_blanks("]"):
            self.refuse("a ']' is missing")
        if len(selectors) == 1:
            return selectors[0]
        if len({selector.sort for selector in selectors}) > 1 or not selectors[0].sort:
            self.refuse("several selectors side by side are all names, or all positions")
        return _Segment(f"[{','.join(selector.spelling[1:-1] for selector in selectors)}]")

    def _selector(self) -> _Segment:
        self._skip_blanks()
        letter = self._peek()
        if letter in ("'", '"'):
            name = self._quoted_text()
            return _Segment(f"[{_quoted(name)}]", name, "name")
        if self._takes("*"):
            return _Segment("[*]", None)
        if self._takes("?"):
            return _Segment(f"[?{self._inside(self._any_of)}]")
        return self._index_or_slice()

    def _index_or_slice(self) -> _Segment:
        bounds: list[int | None] = [self._optional_integer()]
        while len(bounds) < 3 and self._takes_after_blanks(":"):
            self._skip_blanks()
            bounds.append(self._optional_integer())
        if len(bounds) > 1:
            return _Segment(f"[{':'.join('' if bound is None else str(bound) for bound in bounds)}]")
        index = bounds[0]
        if index is None:
            self.refuse("between brackets stand a name in quotes, a number, a slice, * or ?filter")
        return _Segment(f"[{index}]", index if index >= 0 else _NO_STEP, "position")

    def _optional_integer(self) -> int | None:
        found = _INTEGER.match(self.text, self.position)
        if found is None:
            return None
        if found[0] != "0" and found[0].lstrip("-").startswith("0"):
            self.refuse("a number begins with 0")
        if len(found[0]) > 17 or abs(int(found[0])) > _MAX_INTEGER:
            self.refuse("a number is beyond 2^53 - 1")
        self.position = found.end()
        return int(found[0])

    # --- filters --------------------------------------------------------------------------------------------------

    def _any_of(self) -> str:
        return self._joined("||", self._all_of)

    def _all_of(self) -> str:
        return self._joined("&&", self._operand)

    def _joined(self, sign: str, read: Callable[[], str]) -> str:
        parts = [read()]
        while self._takes_after_blanks(sign):
            parts.append(read())
        return f" {sign} ".join(parts)

    def _operand(self) -> str:
        self._skip_blanks()
        negated = "!" * self._takes("!")
        self._skip_blanks()
        if self._takes("("):
            if negated:
                self.refuse("! stands before a query here, not before parentheses")
            inner = self._inside(self._any_of)
            if not self._takes_after_blanks(")"):
                self.refuse("a ')' is missing")
            return f"({inner})"
        start = self.position
        query, is_singular = self._query()
        if negated or not (found := _COMPARISON.match(self.text, self._after_blanks())):
            return negated + query
        if not is_singular:
            self.position = start
            self.refuse("what finds many values is not compared")
        self.position = found.end()
        self._skip_blanks()
        return f"{query} {found[0]} {self._comparable()}"

    def _query(self) -> tuple[str, bool]:
        """Read a query within a filter; return its spelling, and whether it finds one value at most."""
        root = self._peek()
        if root not in ("@", "$"):
            if _FUNCTION.match(self.text, self.position):
                self.refuse("functions of filters are not read here")
            self.refuse("a condition begins with a query of @ or $, as in [?@.a > 1]")
        start = self.position
        segments = self.segments(self.position + 1)
        is_singular = all(segment.is_singular for segment in segments)
        if root == "$" and not is_singular:
            self.position = start
            self.refuse("a query of the root that finds many values would be asked again for each")
        return root + "".join(segment.spelling for segment in segments), is_singular

    def _comparable(self) -> str:
        letter = self._peek()
        if letter in ("'", '"'):
            return _quoted(self._quoted_text())
        if (word := _LITERAL.match(self.text, self.position)) or (word := _NUMBER.match(self.text, self.position)):
            self.position = word.end()
            return json.dumps(json.loads(word[0]))
        start = self.position
        query, is_singular = self._query()
        if not is_singular:
            self.position = start
            self.refuse("what finds many values is not compared")
        return query

    def _inside(self, read: Callable[[], str]) -> str:
        self.nested += 1
        if self.nested > _MAX_NESTED:
            self.refuse(f"more than {_MAX_NESTED} filters and parentheses stand within each other")
        inner = read()
        self.nested -= 1
        return inner

    # --- signs ----------------------------------------------------------------------------------------------------

    def _quoted_text(self) -> str:
        quote = self._peek()
        found = self._match(
            _TEXT[quote], "a text in quotes has no control characters, and no other escapes than JSON's"
        )
        inner = found[1:-1]
        if quote == "'":
            inner = inner.replace("\\'", "'").replace('"', '\\"')  # as JSON has it
        text = str(json.loads(f'"{inner}"'))
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            self.refuse("half of a surrogate pair is no letter")
        return text

    def _match(self, pattern: re.Pattern[str], expected: str) -> str:
        found = pattern.match(self.text, self.position)
        if found is None:
            self.refuse(expected)
        self.position = found.end()
        return found[0]

    def _peek(self) -> str:
        return self.text[self.position : self.position + 1]

    def _takes(self, sign: str) -> bool:
        if not self.text.startswith(sign, self.position):
            return False
        self.position += len(sign)
        return True

    def _takes_after_blanks(self, sign: str) -> bool:
        start = self._after_blanks()
        if not self.text.startswith(sign, start):
            return False
        self.position = start + len(sign)
        return True

    def _skip_blanks(self) -> None:
        self.position = self._after_blanks()

    def _after_blanks(self) -> int:
        return _BLANK.match(self.text, self.position).end()  # type: ignore[union-attr]

    def refuse(self, why: str) -> NoReturn:
        raise ValueError(f"{self.text!r} is no JSON path at {self.position}: {why}")


def _quoted(name: str) -> str:
    return "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"
