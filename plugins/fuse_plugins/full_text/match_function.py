"""The SQL function ``match(column, query [, options])``: its meaning on any rows, and its forms in Spark's own SQL."""

from __future__ import annotations

from collections.abc import Callable
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
_MAX_PREFILTER_TEXTS = 8
"""Texts to look for beyond which a quick look is not quick."""
ParsedMatch = tuple[Query, QueryOptions]


@lru_cache(maxsize=1024)
def parse_match(query: str, options: str = "") -> ParsedMatch:
    """Parse a query and its options. Raises ValueError: for an option, or showing the place in the query."""
    query_options = QueryOptions.parse(options)
    return parse_query(query, query_options), query_options


def parse_match_call(call: Call) -> ParsedMatch | None:
    """Parse a call of ``match``; None if it is not one of a column and constants."""
    match call:
        case Call("match", (_, Literal(str(query)))):
            return parse_match(query)
        case Call("match", (_, Literal(str(query)), Literal(str(options)))):
            return parse_match(query, options)
        case _:
            return None


def evaluate_match(texts: pa.Array, query: pa.Scalar, options: pa.Scalar | None = None) -> pa.Array:
    """Evaluate ``match`` on n strings, such as with "late refund" and "operator=and": n booleans, NULL for NULL."""
    parsed_query, query_options = parse_match(query.as_py(), "" if options is None else options.as_py())
    candidates = pc.fill_null(_prefilter(texts, parsed_query, query_options), False)
    candidate_texts = texts.filter(candidates)
    matches = np.zeros(len(texts), np.bool_)
    candidate_mask = candidates.to_numpy(zero_copy_only=False)
    matches[candidate_mask] = evaluate_query(
        parsed_query, InvertedIndex.from_tokens(query_options.analyzer.tokenize(candidate_texts), len(candidate_texts))
    ).always_matches
    return pc.if_else(pc.is_valid(texts), pa.array(matches), pa.scalar(None, pa.bool_()))


def _prefilter(texts: pa.Array, query: Query, options: QueryOptions) -> pa.Array:
    """Say which of n strings a quick look does not rule out: n booleans, NULL for NULL.

    A text of ASCII letters alone has a required term as a part, or does not match.
    """
    required = required_texts(query) if options.analyzer.keeps_letters else None
    if required is None or len(required) > _MAX_PREFILTER_TEXTS or not all(text.isascii() for text in required):
        return pa.array(np.ones(len(texts), np.bool_))
    possible = pc.invert(pc.string_is_ascii(texts))
    for text in required:
        possible = pc.or_(possible, pc.match_substring(texts, text, ignore_case=True))
    return possible


def check_match(column: Any, query: str, options: str | None = None) -> None:
    """Raise ValueError for a query or options that cannot be read."""
    parse_match(query, options or "")


def match_to_spark_sql(column: Any, query: Literal, options: Literal | None = None) -> str | None:
    """Write a call in Spark's own SQL, where that means the same; None elsewhere.

    Raw and blank-separated terms are the same to Spark; what a letter is elsewhere, its Java may see otherwise.
    """
    parsed_query, query_options = parse_match(query.value, "" if options is None else options.value)
    if query_options.analyzer.stop_words or isinstance(column, Literal):
        return None
    match query_options.analyzer.tokenizer:
        case "raw":
            return _query_to_spark_sql(parsed_query, lambda test: test(f"{column}"))
        case "whitespace":
            words = f"split({column}, '[ ' || CAST(X'090a0c0d' AS STRING) || ']+')"
            return _query_to_spark_sql(parsed_query, lambda test: f"exists({words}, word -> {test('word')})")
    return None


def match_prefilter_sql(column: Any, query: Literal, options: Literal | None = None) -> str | None:
    """Write the quick look of ``_prefilter`` in Spark's SQL: what is not all ASCII passes. None: there is none."""
    parsed_query, query_options = parse_match(query.value, "" if options is None else options.value)
    texts = required_texts(parsed_query) if query_options.analyzer.keeps_letters else None
    if (
        isinstance(column, Literal)
        or not texts
        or len(texts) > _MAX_PREFILTER_TEXTS
        or not all(text.isascii() for text in texts)
    ):
        return None
    conditions = [f"contains(lower({column}), {_sql_text(text.lower())})" for text in texts]
    return " OR ".join([*conditions, f"octet_length({column}) <> char_length({column})"])


def _query_to_spark_sql(query: Query, on_terms: Callable[[Callable[[str], str]], str]) -> str | None:
    """Write a query as a condition; ``on_terms`` makes one of a test that is to hold on some term of the text."""
    match query:
        case Word(term):
            return str(on_terms(lambda word: f"{word} = {_sql_text(term)}"))
        case Prefix(start):
            # a longer term is none to tantivy, and only here could Spark take it for one: queries have none as long
            return str(
                on_terms(
                    lambda word: (
                        f"(startswith({word}, {_sql_text(start)}) AND octet_length({word}) <= {MAX_TERM_BYTES})"
                    )
                )
            )
        case BooleanQuery(must, should, must_not) if must or should:
            parts = [_query_to_spark_sql(part, on_terms) for part in (must or should)]
            excluded = [_query_to_spark_sql(part, on_terms) for part in must_not]
            if None in parts or None in excluded:
                return None
            included = (" AND " if must else " OR ").join(f"({part})" for part in parts)
            return " AND ".join([f"({included})", *(f"NOT ({part})" for part in excluded)])
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
