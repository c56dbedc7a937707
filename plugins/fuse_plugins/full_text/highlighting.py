"""Where in a text a query is met, for people to see: every token that is a term of the query."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from fuse_plugins.full_text.analysis import Analyzer, build_tokenizer
from fuse_plugins.full_text.evaluate import within_distance
from fuse_plugins.full_text.syntax import BooleanQuery, Fuzzy, Phrase, Prefix, Query, TermRange, Word

_Test = Callable[[str], bool]


def highlight_spans(query: Query, analyzer: Analyzer, text: str) -> list[tuple[int, int]]:
    """(start, end) in characters, ascending; what overlaps is one."""
    tests = list(_tests(query))
    found: list[tuple[int, int]] = []
    for token in build_tokenizer(analyzer.tokenizer).pre_tokenize(text).tokens:
        term = analyzer.filter_token(token.text)
        if term is None or not any(test(term) for test in tests):
            continue
        start, end = token.char_offset_from, token.char_offset_to
        if found and start < found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def _tests(query: Query) -> Iterator[_Test]:
    match query:
        case Word(wanted):
            yield wanted.__eq__
        case Phrase(terms):
            yield frozenset(term for _, term in terms).__contains__
        case Prefix(start):
            yield lambda term: term.startswith(start)
        case Fuzzy(wanted, distance):
            yield lambda term: bool(within_distance(wanted, distance)(pa.array([term]))[0].as_py())
        case TermRange(low, high, with_low, with_high):
            yield lambda term: _is_ordered(low, term, with_low) and _is_ordered(term, high, with_high)
        case BooleanQuery(must, may, _):
            for part in (*must, *may):
                yield from _tests(part)


def _is_ordered(first: str | None, second: str | None, equal: bool) -> bool:
    """Whether the second comes after the first, by its bytes; None is no bound."""
    if first is None or second is None:
        return True
    return first.encode() < second.encode() or (equal and first == second)
