"""Query language: words, "phrases", prefix*, fuzzy~1, [a TO b], +must, -must_not, AND, OR, NOT and parentheses.

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
    """One term."""

    term: str


@dataclass(frozen=True, slots=True)
class Phrase:
    """Terms one after the other, each with its position in the phrase: ``((0, "late"), (1, "refund"))``."""

    terms: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Prefix:
    """Terms that begin with ``start``."""

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
    """All of ``must``, none of ``must_not``, and where ``must`` is empty, one of ``should`` (if there are any)."""

    must: tuple[Query, ...] = ()
    should: tuple[Query, ...] = ()
    must_not: tuple[Query, ...] = ()


Query = Word | Phrase | Prefix | Fuzzy | TermRange | BooleanQuery
MATCH_NONE = BooleanQuery(must_not=(BooleanQuery(),))
"""Matches no row: what is left of a query without a single term."""

_MAX_NESTED = 50
_TOKEN = re.compile(r'\s+|[()]|[+-](?=\S)|"(?:[^"\\]|\\.)*"?|[\[{][^\]}]*[\]}]?|(?:\\.|[^\s()"\\])+|\\')
_RANGE = re.compile(r"([\[{])\s*(\S+)\s+TO\s+(\S+)\s*([\]}])")


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """Options of reading a query: the third argument of ``match``, as ``name=value`` separated by semicolons."""

    analyzer: Analyzer = field(default_factory=Analyzer)
    operator: str = "or"
    lenient: bool = False

    @classmethod
    def parse(cls, text: str) -> QueryOptions:
        """Parse ``name=value; …``. Raises ValueError naming the option and what it takes."""
        options, values = cls(), dict(_parse_option(part) for part in text.split(";") if part.strip())
        for name, value in values.items():
            match name, value.lower():
                case "tokenizer", _:
                    options = replace(options, analyzer=replace(options.analyzer, tokenizer=value))
                case "stop_words", _:
                    options = replace(options, analyzer=replace(options.analyzer, stop_words=value))
                case "operator", ("or" | "and") as operator:
                    options = replace(options, operator=operator)
                case "lenient", ("true" | "false") as answer:
                    options = replace(options, lenient=answer == "true")
                case (("operator" | "lenient"), _):
                    raise ValueError(
                        f"option {name}={value!r}: operator is 'and' or 'or', lenient is 'true' or 'false'"
                    )
                case _:
                    raise ValueError(f"no option {name!r}: there are tokenizer, stop_words, operator and lenient")
        return options


def _parse_option(part: str) -> tuple[str, str]:
    name, sign, value = part.partition("=")
    if not sign:
        raise ValueError(f"option {part.strip()!r}: write name=value, separated by semicolons")
    return name.strip().lower(), value.strip()


def parse_query(text: str, options: QueryOptions) -> Query:
    """Parse a query. Raises QueryError."""
    reader = _QueryParser(
        text, options, [(token[0], token.start()) for token in _TOKEN.finditer(text) if token[0].strip()]
    )
    query = reader.sequence(inner=False)
    return MATCH_NONE if query is None else query


@dataclass
class _QueryParser:
    text: str
    options: QueryOptions
    tokens: Sequence[tuple[str, int]]
    position: int = 0
    nested: int = 0

    def sequence(self, inner: bool) -> Query | None:
        """Read clauses side by side, up to the end or a closing parenthesis."""
        must: list[Query] = []
        should: list[Query] = []
        must_not: list[Query] = []
        clauses = 0
        while (token := self._peek()) is not None and not (inner and token == ")"):
            if token == ")":
                self._report("no '(' before this ')'")
                continue
            target = must if self.options.operator == "and" else should
            if token in ("+", "-"):
                self.position += 1
                target = must if token == "+" else must_not
            clause, negated = self._disjunction()
            clauses += 1
            if clause is not None:
                (target if not negated else must if target is must_not else must_not).append(clause)
        if inner and not clauses:
            self._report("nothing between the parentheses")
        return _clauses(must, should, must_not)

    def _disjunction(self) -> tuple[Query | None, bool]:
        operands = [self._conjunction()]
        while self._peek() == "OR":
            self.position += 1
            operands.append(self._conjunction())
        if len(operands) == 1:
            return operands[0]
        return _clauses([], [query for operand in operands if (query := _as_query(operand)) is not None], []), False

    def _conjunction(self) -> tuple[Query | None, bool]:
        operands = [self._clause()]
        while self._peek() == "AND":
            self.position += 1
            operands.append(self._clause())
        if len(operands) == 1:
            return operands[0]
        required = [clause for clause, negated in operands if clause is not None and not negated]
        return _clauses(required, [], [clause for clause, negated in operands if clause is not None and negated]), False

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
            self.nested += 1
            if self.nested > _MAX_NESTED:
                self._raise(f"more than {_MAX_NESTED} parentheses stand within each other", self.position - 1)
            clause = self.sequence(inner=True)
            self.nested -= 1
            if self._peek() == ")":
                self.position += 1
            else:
                self._report("a ')' is missing at the end")
            return clause, negated
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
        positioned_terms = self.options.analyzer.analyze(text)
        if not positioned_terms:
            return None
        first = positioned_terms[0][0]
        if all(position == first for position, _ in positioned_terms):  # one word, or all n-grams of a text
            return _clauses([Word(term) for term in dict.fromkeys(term for _, term in positioned_terms)], [], [])
        return Phrase(tuple((position - first, term) for position, term in positioned_terms))

    def _single(self, text: str, make: Callable[[str], Query], what: str) -> Query | None:
        term = self.options.analyzer.normalize_word(_unescaped(text)) if text else None
        if term is None:
            self._report(f"{what} takes one word of letters and digits, as the tokenizer splits them", back=1)
            return self._terms(_unescaped(text))
        return make(term)

    def _span(self, token: str) -> Query | None:
        parts = _RANGE.fullmatch(token)
        if parts is None:
            self._report("a range is written [from TO to], or with braces without its ends", back=1)
            return self._terms(token)
        ends = [
            None if end == "*" else self.options.analyzer.normalize_word(_unescaped(end))
            for end in (parts[2], parts[3])
        ]
        if [end is None for end in ends] != [end == "*" for end in (parts[2], parts[3])]:
            self._report("each end of a range is one word, or *", back=1)
            return None
        return TermRange(ends[0], ends[1], parts[1] == "[", parts[4] == "]")

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


def _as_query(operand: tuple[Query | None, bool]) -> Query | None:
    query, negated = operand
    return BooleanQuery(must_not=(query,)) if negated and query is not None else query


def _clauses(must: Sequence[Query], should: Sequence[Query], must_not: Sequence[Query]) -> Query | None:
    if not (must or should or must_not):
        return None
    if len(must) + len(should) == 1 and not must_not:
        return (*must, *should)[0]
    return BooleanQuery(tuple(must), tuple(should), tuple(must_not))


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)
