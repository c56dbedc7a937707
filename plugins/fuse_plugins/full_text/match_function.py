"""``match(column, query [, options])``: what it means on any rows, and what Spark can say of it in its own words."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fuse_index.plugin import Function
from fuse_index.predicate import Call, Literal
from fuse_plugins.full_text.analysis import MAX_TERM_BYTES
from fuse_plugins.full_text.evaluate import evaluate_query, required_texts
from fuse_plugins.full_text.inverted import InvertedIndex
from fuse_plugins.full_text.syntax import BooleanQuery, Phrase, Prefix, Query, QueryOptions, Word, parse_query

MATCH_NAME = "match"
ParsedMatch = tuple[Query, QueryOptions]


@lru_cache(maxsize=1024)
def parse_match(query: str, options: str = "") -> ParsedMatch:
    """A query as it is read. Raises ValueError: for an option, or showing the place in the query."""
    chosen = QueryOptions.parse(options)
    return parse_query(query, chosen), chosen


def parse_match_call(call: Call) -> ParsedMatch | None:
    """What a call of ``match`` asks, if it is one of a column and constants."""
    match call:
        case Call("match", (_, Literal(str(query)))):
            return parse_match(query)
        case Call("match", (_, Literal(str(query)), Literal(str(options)))):
            return parse_match(query, options)
        case _:
            return None


def evaluate_match(texts: pa.Array, query: pa.Scalar, options: pa.Scalar | None = None) -> pa.Array:
    """Whether a text has what a query asks: ``match("body", "late refund", "operator=and")``. NULL of a text that is
    NULL.
    """
    wanted, chosen = parse_match(query.as_py(), "" if options is None else options.as_py())
    possible = pc.fill_null(_prefilter(texts, wanted, chosen), False)
    some = texts.filter(possible)
    found = np.zeros(len(texts), np.bool_)
    numbers = possible.to_numpy(zero_copy_only=False)
    found[numbers] = evaluate_query(
        wanted, InvertedIndex.from_tokens(chosen.analyzer.tokenize(some), len(some))
    ).always_matches
    return pc.if_else(pc.is_valid(texts), pa.array(found), pa.scalar(None, pa.bool_()))


def _prefilter(texts: pa.Array, query: Query, options: QueryOptions) -> pa.Array:
    """Texts that a quick look does not rule out: what has only ASCII letters has a term in them, or has it not."""
    wanted = required_texts(query) if options.analyzer.keeps_letters else None
    if wanted is None or len(wanted) > 8 or not all(text.isascii() for text in wanted):
        return pa.array(np.ones(len(texts), np.bool_))
    found = pc.invert(pc.string_is_ascii(texts))
    for text in wanted:
        found = pc.or_(found, pc.match_substring(texts, text, ignore_case=True))
    return found


def check_match(column: Any, query: str, options: str | None = None) -> None:
    parse_match(query, options or "")


def match_to_spark_sql(column: Any, query: Literal, options: Literal | None = None) -> str | None:
    """Raw and blank-separated terms are the same to Spark; what a letter is elsewhere, its Java may see otherwise."""
    wanted, chosen = parse_match(query.value, "" if options is None else options.value)
    if chosen.analyzer.stop_words or isinstance(column, Literal):
        return None
    match chosen.analyzer.tokenizer:
        case "raw":
            return _query_to_spark_sql(wanted, lambda test: test(f"{column}"))
        case "whitespace":
            words = f"split({column}, '[ ' || CAST(X'090a0c0d' AS STRING) || ']+')"
            return _query_to_spark_sql(wanted, lambda test: f"exists({words}, word -> {test('word')})")
    return None


def match_prefilter_sql(column: Any, query: Literal, options: Literal | None = None) -> str | None:
    """The quick look of ``_possible``, as Spark says it: what is not all ASCII is left to tantivy."""
    wanted, chosen = parse_match(query.value, "" if options is None else options.value)
    texts = required_texts(wanted) if chosen.analyzer.keeps_letters else None
    if isinstance(column, Literal) or not texts or len(texts) > 8 or not all(text.isascii() for text in texts):
        return None
    looks = [f"contains(lower({column}), {_sql_text(text.lower())})" for text in texts]
    return " OR ".join([*looks, f"octet_length({column}) <> char_length({column})"])


def _query_to_spark_sql(query: Query, over: Any) -> str | None:
    match query:
        case Word(term):
            return str(over(lambda word: f"{word} = {_sql_text(term)}"))
        case Prefix(start):
            # a longer term is none to tantivy, and only here could Spark take it for one: queries have none as long
            return str(
                over(
                    lambda word: (
                        f"(startswith({word}, {_sql_text(start)}) AND octet_length({word}) <= {MAX_TERM_BYTES})"
                    )
                )
            )
        case BooleanQuery(must, may, never) if must or may:
            parts = [_query_to_spark_sql(part, over) for part in (must or may)]
            kept = [_query_to_spark_sql(part, over) for part in never]
            if None in parts or None in kept:
                return None
            wanted = (" AND " if must else " OR ").join(f"({part})" for part in parts)
            return " AND ".join([f"({wanted})", *(f"NOT ({part})" for part in kept)])
        case Phrase() | _:
            return None


def _sql_text(text: str) -> str:
    return f"CAST(X'{text.encode().hex()}' AS STRING)"


MATCH_FUNCTION = Function(
    MATCH_NAME,
    (pa.string(), pa.string(), pa.string()),
    evaluate_match,
    native=match_to_spark_sql,
    optional=1,
    constants=frozenset([1, 2]),
    check=check_match,
    narrows=match_prefilter_sql,
)
