"""Substrings by n-grams: a text that holds a part holds the n-grams of it, so a row without one of them does not match.

What is found is a bound: a row with all n-grams may have them in other places.
"""

from __future__ import annotations

from fuse_index.plugin import Conjunction, LikePattern
from fuse_index.predicate import Compare, Contains, EndsWith, Leaf, Like, Literal, StartsWith, Term
from fuse_plugins.full_text.analysis import NGRAM_TOKENIZER, Analyzer
from fuse_plugins.full_text.syntax import BooleanQuery, Query, Word

_MAX_GRAMS = 32
"""N-grams that are looked up: each costs a read."""


def substring_query(what: Leaf | Conjunction, analyzer: Analyzer) -> tuple[Term, Query] | None:
    """Return the term that a leaf is on, and the n-grams that a text has on which it is TRUE; None without any.

    >>> from fuse_index.predicate import Column
    >>> import pyarrow as pa
    >>> leaf = Like(Column(("c",), pa.string()), Literal("%Refund_x%", pa.string()))
    >>> term, query = substring_query(leaf, Analyzer("ngram(2,3)"))
    >>> [word.term for word in query.must]
    ['ref', 'und']
    """
    parts = _required_parts(what)
    bounds = NGRAM_TOKENIZER.fullmatch(analyzer.tokenizer)
    if parts is None or bounds is None:
        return None
    term, texts = parts
    grams = [gram for text in texts for gram in _grams(text, int(bounds[1]), int(bounds[2]))]
    # Each n-gram is filtered by itself, here as in the text that it is a part of, so both become the same term.
    terms = [filtered for gram in dict.fromkeys(grams) if (filtered := analyzer.filter_token(gram)) is not None]
    return (term, BooleanQuery(tuple(map(Word, terms[:_MAX_GRAMS])))) if terms else None


def _required_parts(what: Leaf | Conjunction) -> tuple[Term, tuple[str, ...]] | None:
    """Return parts that a text has on which the leaf is TRUE."""
    match what:
        case Contains(term, Literal(str() as text)) | EndsWith(term, Literal(str() as text)):
            return term, (text,)
        case StartsWith(term, Literal(str() as text)) | Compare("=", term, Literal(str() as text)):
            return term, (text,)
        case Like(term, Literal(str() as pattern), escape):
            try:
                return term, LikePattern.parse(pattern, escape).texts
            except ValueError:  # Spark refuses it
                return None
        case _:
            return None


def _grams(text: str, least: int, most: int) -> list[str]:
    """Cut a text into n-grams as long as there are, side by side; the last one ends where the text does."""
    size = min(most, len(text))
    if size < least:
        return []
    starts = [*range(0, len(text) - size, size), len(text) - size]
    return [text[start : start + size] for start in starts]
