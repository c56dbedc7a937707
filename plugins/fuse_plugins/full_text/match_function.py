"""``match(column, query [, options])``: what it means on any rows, and what Spark can say of it in its own words."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fuse_index.plugin import Function
from fuse_index.predicate import Call, Literal
from fuse_plugins.full_text.analysis import LONGEST_TERM
from fuse_plugins.full_text.evaluate import judge, needles
from fuse_plugins.full_text.inverted import Inverted
from fuse_plugins.full_text.syntax import Clauses, Options, Phrase, Prefix, Query, Word, read

NAME = "match"
Asked = tuple[Query, Options]


@lru_cache(maxsize=1024)
def asked(query: str, options: str = "") -> Asked:
    """A query as it is read. Raises ValueError: for an option, or showing the place in the query."""
    chosen = Options.read(options)
    return read(query, chosen), chosen


def of_call(call: Call) -> Asked | None:
    """What a call of ``match`` asks, if it is one of a column and constants."""
    match call:
        case Call("match", (_, Literal(str(query)))):
            return asked(query)
        case Call("match", (_, Literal(str(query)), Literal(str(options)))):
            return asked(query, options)
        case _:
            return None


def match(texts: pa.Array, query: pa.Scalar, options: pa.Scalar | None = None) -> pa.Array:
    """Whether a text has what a query asks: ``match("body", "late refund", "operator=and")``. NULL of a text that is
    NULL.
    """
    wanted, chosen = asked(query.as_py(), "" if options is None else options.as_py())
    possible = pc.fill_null(_possible(texts, wanted, chosen), False)
    some = texts.filter(possible)
    found = np.zeros(len(texts), np.bool_)
    numbers = possible.to_numpy(zero_copy_only=False)
    found[numbers] = judge(wanted, Inverted.of(chosen.analyzer.tokens(some), len(some))).does
    return pc.if_else(pc.is_valid(texts), pa.array(found), pa.scalar(None, pa.bool_()))


def _possible(texts: pa.Array, query: Query, options: Options) -> pa.Array:
    """Texts that a quick look does not rule out: what has only ASCII letters has a term in them, or has it not."""
    wanted = needles(query) if options.analyzer.keeps_letters else None
    if wanted is None or len(wanted) > 8 or not all(text.isascii() for text in wanted):
        return pa.array(np.ones(len(texts), np.bool_))
    found = pc.invert(pc.string_is_ascii(texts))
    for text in wanted:
        found = pc.or_(found, pc.match_substring(texts, text, ignore_case=True))
    return found


def check(column: Any, query: str, options: str | None = None) -> None:
    asked(query, options or "")


def native(column: Any, query: Literal, options: Literal | None = None) -> str | None:
    """Raw and blank-separated terms are the same to Spark; what a letter is elsewhere, its Java may see otherwise."""
    wanted, chosen = asked(query.value, "" if options is None else options.value)
    if chosen.analyzer.stop_words or isinstance(column, Literal):
        return None
    match chosen.analyzer.tokenizer:
        case "raw":
            return _native(wanted, lambda test: test(f"{column}"))
        case "whitespace":
            words = f"split({column}, '[ ' || CAST(X'090a0c0d' AS STRING) || ']+')"
            return _native(wanted, lambda test: f"exists({words}, word -> {test('word')})")
    return None


def narrows(column: Any, query: Literal, options: Literal | None = None) -> str | None:
    """The quick look of ``_possible``, as Spark says it: what is not all ASCII is left to tantivy."""
    wanted, chosen = asked(query.value, "" if options is None else options.value)
    texts = needles(wanted) if chosen.analyzer.keeps_letters else None
    if isinstance(column, Literal) or not texts or len(texts) > 8 or not all(text.isascii() for text in texts):
        return None
    looks = [f"contains(lower({column}), {_text(text.lower())})" for text in texts]
    return " OR ".join([*looks, f"octet_length({column}) <> char_length({column})"])


def _native(query: Query, over: Any) -> str | None:
    match query:
        case Word(term):
            return str(over(lambda word: f"{word} = {_text(term)}"))
        case Prefix(start):
            # a longer term is none to tantivy, and only here could Spark take it for one: queries have none as long
            return str(
                over(lambda word: f"(startswith({word}, {_text(start)}) AND octet_length({word}) <= {LONGEST_TERM})")
            )
        case Clauses(must, may, never) if must or may:
            parts = [_native(part, over) for part in (must or may)]
            kept = [_native(part, over) for part in never]
            if None in parts or None in kept:
                return None
            wanted = (" AND " if must else " OR ").join(f"({part})" for part in parts)
            return " AND ".join([f"({wanted})", *(f"NOT ({part})" for part in kept)])
        case Phrase() | _:
            return None


def _text(text: str) -> str:
    return f"CAST(X'{text.encode().hex()}' AS STRING)"


MATCH = Function(
    NAME,
    (pa.string(), pa.string(), pa.string()),
    match,
    native=native,
    optional=1,
    constants=frozenset([1, 2]),
    check=check,
    narrows=narrows,
)
