"""Where in a text a query is met, for people to see: every token that is a term of the query."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from fuse_plugins.full_text.analysis import Analyzer, splitter
from fuse_plugins.full_text.evaluate import near
from fuse_plugins.full_text.syntax import Clauses, Fuzzy, Phrase, Prefix, Query, Span, Word

Test = Callable[[str], bool]


def spans(query: Query, analyzer: Analyzer, text: str) -> list[tuple[int, int]]:
    """(start, end) in characters, ascending; what overlaps is one."""
    tests = list(_tests(query))
    found: list[tuple[int, int]] = []
    for token in splitter(analyzer.tokenizer).pre_tokenize(text).tokens:
        term = analyzer.filtered(token.text)
        if term is None or not any(test(term) for test in tests):
            continue
        start, end = token.char_offset_from, token.char_offset_to
        if found and start < found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def _tests(query: Query) -> Iterator[Test]:
    match query:
        case Word(wanted):
            yield wanted.__eq__
        case Phrase(terms):
            yield frozenset(term for _, term in terms).__contains__
        case Prefix(start):
            yield lambda term: term.startswith(start)
        case Fuzzy(wanted, distance):
            yield lambda term: bool(near(wanted, distance)(pa.array([term]))[0].as_py())
        case Span(low, high, with_low, with_high):
            yield lambda term: _after(low, term, with_low) and _after(term, high, with_high)
        case Clauses(must, may, _):
            for part in (*must, *may):
                yield from _tests(part)


def _after(first: str | None, second: str | None, equal: bool) -> bool:
    """Whether the second comes after the first, by its bytes; None is no bound."""
    if first is None or second is None:
        return True
    return first.encode() < second.encode() or (equal and first == second)
