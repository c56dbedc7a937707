"""The words of a statement, one after the other: names, strings and numbers as Spark's own grammar has them."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
      (?P<space>\s+|--[^\n]*|/\*.*?\*/)
    | (?P<quoted>`(?:[^`]|``)*`)
    | (?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    | (?P<number>\d+(?:\.\d+)?(?!\w))
    | (?P<word>\w+)
    | (?P<sign>.)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A word, name, string, number or sign. ``start``: where it begins in the text."""

    kind: str
    text: str
    start: int

    @property
    def name(self) -> str:
        """A name without back-quotes."""
        return self.text[1:-1].replace("``", "`") if self.kind == "quoted" else self.text

    @property
    def content(self) -> str:
        """A string without its quotes."""
        return re.sub(r"\\(.)", r"\1", self.text[1:-1], flags=re.DOTALL)


class StatementReader:
    """A statement, read from its beginning to its end. What is asked for and is not there leaves it where it is."""

    def __init__(self, text: str) -> None:
        self._text = text
        tokens = [Token(str(match.lastgroup), match[0], match.start()) for match in _TOKEN.finditer(text)]
        self._tokens = [token for token in tokens if token.kind != "space"]
        while self._tokens and self._tokens[-1].text == ";":
            del self._tokens[-1]
        self._next = 0

    @property
    def rest(self) -> str:
        """All that is not read yet; empty at the end."""
        return self._text[self._tokens[self._next].start :].rstrip("; \n\t") if self._next < len(self._tokens) else ""

    def take(self, *words: str) -> bool:
        """Read these words, if they come next, in capitals or not."""
        following = self._tokens[self._next : self._next + len(words)]
        if [token.text.upper() for token in following if token.kind in ("word", "sign")] != list(words):
            return False
        self._next += len(words)
        return True

    def take_until(self, word: str) -> str:
        """Read all before a word, or the end, as it stands in the text."""
        start = end = self._next
        while end < len(self._tokens) and (self._tokens[end].kind, self._tokens[end].text.upper()) != ("word", word):
            end += 1
        self._next = end
        if start == end:
            return ""
        last = self._tokens[end - 1]
        return self._text[self._tokens[start].start : last.start + len(last.text)]

    def take_one(self, *kinds: str) -> Token | None:
        """Read the next token, if it is of such a kind."""
        if self._next == len(self._tokens) or self._tokens[self._next].kind not in kinds:
            return None
        self._next += 1
        return self._tokens[self._next - 1]

    def take_name(self) -> str | None:
        """Read a name of one part."""
        token = self.take_one("word", "quoted")
        return None if token is None else token.name

    def take_table(self) -> tuple[str, ...]:
        """Read the parts of a table's name; a string is a place, and has one. Nothing for what is neither."""
        place = self.take_one("string")
        if place is not None:
            return (place.content,)
        parts: list[str] = []
        while (name := self.take_name()) is not None:
            parts.append(name)
            if not self.take("."):
                break
        return tuple(parts)

    def take_names(self) -> tuple[str, ...]:
        """Read names of columns, in brackets or not; fields of structs with dots."""
        bracket, names = self.take("("), list[str]()
        while path := self.take_table():
            names.append(".".join(path))
            if not self.take(","):
                break
        if bracket:
            self.take(")")
        return tuple(names)
