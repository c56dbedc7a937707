"""Highlighting: where in a text a query is met, which is every token that is a term of the query."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from fuse_plugins.full_text.analysis import Analyzer, build_tokenizer
from fuse_plugins.full_text.evaluate import within_distance
from fuse_plugins.full_text.syntax import BooleanQuery, Fuzzy, Phrase, Prefix, Query, TermRange, Word

_Test = Callable[[str], bool]


def highlight_spans(query: Query, analyzer: Analyzer, text: str) -> list[tuple[int, int]]:
    """List where the query is met: (start, end) in characters, ascending; spans that overlap are joined."""
    tests = list(_tests(query))
    spans: list[tuple[int, int]] = []
    for token in build_tokenizer(analyzer.tokenizer).pre_tokenize(text).tokens:
        term = analyzer.filter_token(token.text)
        if term is None or not any(test(term) for test in tests):
            continue
        start, end = token.char_offset_from, token.char_offset_to
        if spans and start < spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
    return spans


def _tests(query: Query) -> Iterator[_Test]:
    """Yield tests of which a term passes at least one if the query asks for it."""
    match query:
        case Word(text):
            yield text.__eq__
        case Phrase(terms):
            yield frozenset(term for _, term in terms).__contains__
        case Prefix(start):
            yield lambda term: term.startswith(start)
        case Fuzzy(text, distance):
            yield lambda term: bool(within_distance(text, distance)(pa.array([term]))[0].as_py())
        case TermRange(low, high, with_low, with_high):
            yield lambda term: _is_ordered(low, term, with_low) and _is_ordered(term, high, with_high)
        case BooleanQuery(must, should, _):
            for part in (*must, *should):
                yield from _tests(part)


def _is_ordered(first: str | None, second: str | None, equal: bool) -> bool:
    """Return whether the second comes after the first, by its bytes; None is no bound."""
    if first is None or second is None:
        return True
    return first.encode() < second.encode() or (equal and first == second)
