"""The query language: words, "phrases", prefix*, fuzzy~1, [a TO b], +must, -must_not, AND, OR, NOT and parentheses.

A query is read once, with the analyser that the text is read with. Words side by side are alternatives, or all wanted
with ``operator=and``. What is wrong is a ``QueryError`` that shows the place; a lenient reading takes signs it cannot
use for blanks. Knows no index.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn

from fuse_plugins.full_text.analysis import Analyzer


class QueryError(ValueError):
    """A query that cannot be read; the message shows where."""


@dataclass(frozen=True, slots=True)
class Word:
    term: str


@dataclass(frozen=True, slots=True)
class Phrase:
    """Terms at their distances: each with its position in the phrase."""

    terms: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Prefix:
    start: str


@dataclass(frozen=True, slots=True)
class Fuzzy:
    """Terms at most ``distance`` letters away: inserted, left out, replaced, or two neighbours swapped."""

    term: str
    distance: int


@dataclass(frozen=True, slots=True)
class TermRange:
    """Terms between two, by the bytes of their UTF-8; None is no bound."""

    low: str | None
    high: str | None
    with_low: bool
    with_high: bool


@dataclass(frozen=True, slots=True)
class BooleanQuery:
    """All of ``must``, none of ``never``, and where nothing must be, one of ``may`` (if there are any)."""

    must: tuple[Query, ...] = ()
    should: tuple[Query, ...] = ()
    must_not: tuple[Query, ...] = ()


Query = Word | Phrase | Prefix | Fuzzy | TermRange | BooleanQuery
MATCH_NONE = BooleanQuery(must_not=(BooleanQuery(),))
"""Matches no row: what is left of a query without a single term."""

_TOKEN = re.compile(r'\s+|[()]|[+-](?=\S)|"(?:[^"\\]|\\.)*"?|[\[{][^\]}]*[\]}]?|(?:\\.|[^\s()"\\])+|\\')
_RANGE = re.compile(r"([\[{])\s*(\S+)\s+TO\s+(\S+)\s*([\]}])")


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """How a query is read: the third argument of ``match``, as ``name=value`` separated by semicolons."""

    analyzer: Analyzer = field(default_factory=Analyzer)
    operator: str = "or"
    lenient: bool = False

    @classmethod
    def parse(cls, text: str) -> QueryOptions:
        """Raises ValueError naming the option and what it takes."""
        made, given = cls(), dict(_parse_option(part) for part in text.split(";") if part.strip())
        for name, value in given.items():
            match name, value.lower():
                case "tokenizer", _:
                    made = replace(made, analyzer=replace(made.analyzer, tokenizer=value))
                case "stop_words", _:
                    made = replace(made, analyzer=replace(made.analyzer, stop_words=value))
                case "operator", ("or" | "and") as operator:
                    made = replace(made, operator=operator)
                case "lenient", ("true" | "false") as answer:
                    made = replace(made, lenient=answer == "true")
                case (("operator" | "lenient"), _):
                    raise ValueError(
                        f"option {name}={value!r}: operator is 'and' or 'or', lenient is 'true' or 'false'"
                    )
                case _:
                    raise ValueError(f"no option {name!r}: there are tokenizer, stop_words, operator and lenient")
        return made


def _parse_option(part: str) -> tuple[str, str]:
    name, sign, value = part.partition("=")
    if not sign:
        raise ValueError(f"option {part.strip()!r}: write name=value, separated by semicolons")
    return name.strip().lower(), value.strip()


def parse_query(text: str, options: QueryOptions) -> Query:
    """The query. Raises QueryError."""
    reader = _QueryParser(
        text, options, [(found[0], found.start()) for found in _TOKEN.finditer(text) if found[0].strip()]
    )
    made = reader.sequence(inner=False)
    return MATCH_NONE if made is None else made


@dataclass
class _QueryParser:
    text: str
    options: QueryOptions
    tokens: Sequence[tuple[str, int]]
    position: int = 0

    def sequence(self, inner: bool) -> Query | None:
        """Clauses side by side, up to the end or a closing parenthesis."""
        must: list[Query] = []
        may: list[Query] = []
        never: list[Query] = []
        seen = 0
        while (token := self._peek()) is not None and not (inner and token == ")"):
            if token == ")":
                self._report("no '(' before this ')'")
                continue
            into = must if self.options.operator == "and" else may
            if token in ("+", "-"):
                self.position += 1
                into = must if token == "+" else never
            made, negated = self._disjunction()
            seen += 1
            if made is not None:
                (into if not negated else must if into is never else never).append(made)
        if inner and not seen:
            self._report("nothing between the parentheses")
        return _clauses(must, may, never)

    def _disjunction(self) -> tuple[Query | None, bool]:
        found = [self._conjunction()]
        while self._peek() == "OR":
            self.position += 1
            found.append(self._conjunction())
        if len(found) == 1:
            return found[0]
        return _clauses([], [q for each in found if (q := _as_query(each)) is not None], []), False

    def _conjunction(self) -> tuple[Query | None, bool]:
        found = [self._clause()]
        while self._peek() == "AND":
            self.position += 1
            found.append(self._clause())
        if len(found) == 1:
            return found[0]
        wanted = [made for made, negated in found if made is not None and not negated]
        return _clauses(wanted, [], [made for made, negated in found if made is not None and negated]), False

    def _clause(self) -> tuple[Query | None, bool]:
        negated = False
        while self._peek() in ("NOT", "+", "-"):
            negated ^= self._peek() != "+"
            self.position += 1
        token = self._peek()
        if token is None or token in (")", "AND", "OR"):
            self._report("a word is missing here")
            if token in ("AND", "OR"):
                self.position += 1
            return None, False
        self.position += 1
        if token == "(":
            made = self.sequence(inner=True)
            if self._peek() == ")":
                self.position += 1
            else:
                self._report("a ')' is missing at the end")
            return made, negated
        return self._leaf(token), negated

    def _leaf(self, token: str) -> Query | None:
        if token.startswith('"'):
            if len(token) < 2 or not token.endswith('"'):
                self._report('this " is never closed', back=1)
            return self._terms(_unescaped(token.strip('"')))
        if token[0] in "[{":
            return self._span(token)
        if token.endswith("*") and not token.endswith("\\*"):
            return self._single(token[:-1], Prefix, "prefix*")
        if fuzzy := re.fullmatch(r"(.*[^\\])~(\d*)", token):
            distance = int(fuzzy[2] or 1)
            if distance > 2:
                self._report("a fuzzy word is at most 2 letters away", back=1)
            return self._single(fuzzy[1], lambda term: Fuzzy(term, min(distance, 2)), "fuzzy~1")
        return self._terms(_unescaped(token))

    def _terms(self, text: str) -> Query | None:
        found = self.options.analyzer.analyze(text)
        if not found:
            return None
        first = found[0][0]
        if all(place == first for place, _ in found):  # one word, or all n-grams of a text
            return _clauses([Word(term) for term in dict.fromkeys(term for _, term in found)], [], [])
        return Phrase(tuple((place - first, term) for place, term in found))

    def _single(self, text: str, make: Callable[[str], Query], what: str) -> Query | None:
        term = self.options.analyzer.normalize_word(_unescaped(text)) if text else None
        if term is None:
            self._report(f"{what} takes one word of letters and digits, as the tokenizer splits them", back=1)
            return self._terms(_unescaped(text))
        return make(term)

    def _span(self, token: str) -> Query | None:
        found = _RANGE.fullmatch(token)
        if found is None:
            self._report("a range is written [from TO to], or with braces without its ends", back=1)
            return self._terms(token)
        ends = [
            None if end == "*" else self.options.analyzer.normalize_word(_unescaped(end))
            for end in (found[2], found[3])
        ]
        if [end is None for end in ends] != [end == "*" for end in (found[2], found[3])]:
            self._report("each end of a range is one word, or *", back=1)
            return None
        return TermRange(ends[0], ends[1], found[1] == "[", found[4] == "]")

    def _peek(self) -> str | None:
        return self.tokens[self.position][0] if self.position < len(self.tokens) else None

    def _report(self, message: str, back: int = 0) -> None:
        if not self.options.lenient:
            self._raise(message, self.position - back)
        if not back and self._peek() == ")":
            self.position += 1

    def _raise(self, message: str, number: int) -> NoReturn:
        token, start = self.tokens[number] if number < len(self.tokens) else (" ", len(self.text))
        mark = " " * start + "^" * max(1, len(token.strip()))
        raise QueryError(f"query {self.text!r} cannot be read at {start + 1}: {message}\n{self.text}\n{mark}")


def _as_query(found: tuple[Query | None, bool]) -> Query | None:
    made, negated = found
    return BooleanQuery(must_not=(made,)) if negated and made is not None else made


def _clauses(must: Sequence[Query], may: Sequence[Query], never: Sequence[Query]) -> Query | None:
    if not (must or may or never):
        return None
    if len(must) + len(may) == 1 and not never:
        return (*must, *may)[0]
    return BooleanQuery(tuple(must), tuple(may), tuple(never))


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)
