"""Functions of regular expressions: RLIKE and its like, with constant patterns that Java and RE2 read alike."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from fuse_index.expressions.errors import NotReproducible, UnsupportedExpression
from fuse_index.expressions.functions.signature import (
    BOOLEAN,
    INT,
    TEXT,
    Evaluation,
    SparkFunction,
    argument,
    check_count,
    constant_of,
)
from fuse_index.expressions.java_patterns import LINE_ENDS, JavaPattern
from fuse_index.predicate import Call, Context, Literal, Term

_LINE_ENDS_AT_END = rf"[{LINE_ENDS}]\z"
_TEXTS = pa.list_(pa.string())


def _pattern_of(name: str, terms: Sequence[Term], context: Context) -> tuple[Term, Literal]:
    """The text and the pattern. Raises UnsupportedExpression for a pattern that is not known to mean the same."""
    text = argument(name, 0, terms[0], TEXT, context)
    pattern = terms[1]
    constant_of(name, "pattern", pattern)
    made = argument(name, 1, pattern, TEXT, context)
    assert isinstance(made, Literal)  # of a constant, a constant is made
    if made.value is not None:
        JavaPattern.parse(made.value)
    return text, made


def _parsed(call: Call, capture: int | None = None) -> JavaPattern | None:
    pattern = call.arguments[1]
    if not isinstance(pattern, Literal) or pattern.value is None:
        return None
    return JavaPattern.parse(pattern.value, capture)


def _check_ends(pattern: JavaPattern, texts: pa.Array) -> None:
    """Java's ``$`` is also before a line end that ends the text, which RE2 cannot say."""
    if pattern.ends and pc.any(pc.match_substring_regex(texts, _LINE_ENDS_AT_END), min_count=0).as_py():
        raise NotReproducible("a text that ends with a line end, before which Java's '$' matches, too")


def _matches(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
    pattern, texts = _parsed(call), columns[0]
    if pattern is None:
        return pa.nulls(len(texts), BOOLEAN)
    found = pc.match_substring_regex(texts, pattern.regex)
    if not pattern.ends:
        return found
    # without its line end, the text ends where Java's '$' is as well
    return pc.or_(found, pc.match_substring_regex(_without_line_end(texts), pattern.regex))


def _without_line_end(texts: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(texts, rf"(?:\r\n|[{LINE_ENDS}])\z", "")


def _build_rlike(terms: Sequence[Term], context: Context) -> Term:
    check_count("rlike", terms, 2, 2)
    return Call("rlike", _pattern_of("rlike", terms, context), BOOLEAN)


def _build_extract(terms: Sequence[Term], context: Context) -> Term:
    check_count("regexp_extract", terms, 2, 3)
    text, pattern = _pattern_of("regexp_extract", terms, context)
    group = constant_of("regexp_extract", "group", terms[2]) if len(terms) == 3 else 1
    if not isinstance(group, int) or (pattern.value is not None and not 0 <= group <= _groups(pattern)):
        raise UnsupportedExpression(f"regexp_extract() of group {group!r}, which {pattern.value!r} does not have")
    return Call("regexp_extract", (text, pattern, Literal(group, INT)), TEXT)


def _groups(pattern: Literal) -> int:
    return JavaPattern.parse(pattern.value).groups


def _extract(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
    group = call.arguments[2]
    assert isinstance(group, Literal)  # as it was built
    return _first(_parsed(call, group.value), columns[0], "")


def _first(pattern: JavaPattern | None, texts: pa.Array, otherwise: str | None) -> pa.Array:
    """The group of the first match, or what stands for none."""
    if pattern is None:
        return pa.nulls(len(texts), TEXT)
    _check_ends(pattern, texts)
    found = pc.struct_field(pc.extract_regex(texts, pattern.regex), "found")
    found = pc.if_else(pc.match_substring_regex(texts, pattern.regex), found, pa.scalar(otherwise, TEXT))
    return pc.if_else(pc.is_valid(texts), found, pa.scalar(None, TEXT))


def _never_empty(name: str, terms: Sequence[Term], context: Context) -> tuple[Term, Literal]:
    """A pattern that matches no empty text, of which Java and RE2 find a different number."""
    text, pattern = _pattern_of(name, terms, context)
    if pattern.value is not None and JavaPattern.parse(pattern.value).can_be_empty:
        raise UnsupportedExpression(f"{name}() with the pattern {pattern.value!r}, which also matches nothing")
    return text, pattern


def _build_replace(terms: Sequence[Term], context: Context) -> Term:
    check_count("regexp_replace", terms, 3, 3)
    text, pattern = _never_empty("regexp_replace", terms, context)
    other = constant_of("regexp_replace", "replacement", terms[2])
    if not isinstance(other, str) or "\\" in other or "$" in other:
        raise UnsupportedExpression(f"regexp_replace() by {other!r}: only by plain text")
    return Call("regexp_replace", (text, pattern, Literal(other, TEXT)), TEXT)


def _replace(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
    pattern, other = _parsed(call), call.arguments[2]
    assert isinstance(other, Literal)  # as it was built
    if pattern is None:
        return pa.nulls(len(columns[0]), TEXT)
    _check_ends(pattern, columns[0])
    return pc.replace_substring_regex(columns[0], pattern.regex, other.value)


def _build_count(terms: Sequence[Term], context: Context) -> Term:
    check_count("regexp_count", terms, 2, 2)
    return Call("regexp_count", _never_empty("regexp_count", terms, context), INT)


def _count(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
    pattern = _parsed(call)
    if pattern is None:
        return pa.nulls(len(columns[0]), INT)
    _check_ends(pattern, columns[0])
    return pc.count_substring_regex(columns[0], pattern.regex).cast(INT)


def _build_substring(terms: Sequence[Term], context: Context) -> Term:
    check_count("regexp_substr", terms, 2, 2)
    return Call("regexp_substr", _never_empty("regexp_substr", terms, context), TEXT)


def _substring(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
    return _first(_parsed(call, 0), columns[0], None)


def _build_place(terms: Sequence[Term], context: Context) -> Term:
    check_count("regexp_instr", terms, 2, 2)
    return Call("regexp_instr", _never_empty("regexp_instr", terms, context), INT)


def _place(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
    pattern, texts = _parsed(call), columns[0]
    if pattern is None:
        return pa.nulls(len(texts), INT)
    _check_ends(pattern, texts)
    byte_places = pc.find_substring_regex(texts, pattern.regex)

    def place(text: str, byte_place: int) -> int:
        return len(text.encode()[:byte_place].decode()) + 1 if byte_place >= 0 else 0

    return evaluation.by_row(place, [texts, byte_places], INT)


def _build_split(terms: Sequence[Term], context: Context) -> Term:
    check_count("split", terms, 2, 3)
    text, pattern = _never_empty("split", terms, context)
    limit = constant_of("split", "limit", terms[2]) if len(terms) == 3 else -1
    if limit != -1:
        raise UnsupportedExpression(f"split() with the limit {limit!r}")
    return Call("split", (text, pattern), _TEXTS)


def _split(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
    pattern = _parsed(call)
    if pattern is None:
        return pa.nulls(len(columns[0]), _TEXTS)
    _check_ends(pattern, columns[0])
    return pc.split_pattern_regex(columns[0], pattern.regex).cast(_TEXTS)


PATTERN_FUNCTIONS: Sequence[SparkFunction] = (
    SparkFunction("rlike", _build_rlike, _matches),
    SparkFunction("regexp_extract", _build_extract, _extract),
    SparkFunction("regexp_replace", _build_replace, _replace),
    SparkFunction("regexp_count", _build_count, _count),
    SparkFunction("regexp_substr", _build_substring, _substring),
    SparkFunction("regexp_instr", _build_place, _place),
    SparkFunction("split", _build_split, _split),
)
