"""Functions of text: parts of it, blanks around it, texts in it and texts made of it. A letter is a code point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fuse_index.expressions.coercion import INTEGER_TYPES, coerce_term
from fuse_index.expressions.errors import NotReproducible, SparkWouldRaise, UnsupportedExpression
from fuse_index.expressions.functions.signature import (
    INT,
    LONG,
    TEXT,
    Evaluation,
    SparkFunction,
    argument,
    by_row,
    check_count,
)
from fuse_index.expressions.scalar_functions import SCALAR_FUNCTIONS
from fuse_index.expressions.types import spark_type_name
from fuse_index.predicate import Call, Context, Literal, Term

_MAX_INT = 2**31 - 1
_MAX_MADE_LETTERS = 10_000_000
"""Letters of one text that padding and repeating make here; Spark runs out of memory some time later."""


# --- parts ------------------------------------------------------------------------------------------------------------


def substring(text: str, position: int, length: int) -> str:
    """Letters from a position on, counted from 1, or from the end where it is negative.

    >>> substring("Bonn", -3, 2), substring("Bonn", 0, 2), substring("Bonn", -6, 3)
    ('on', 'Bo', 'B')
    """
    start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    end = min(start + length, _MAX_INT)
    return text[max(start, 0) : max(end, 0)]


def _right(text: str, length: int) -> str:
    return "" if length <= 0 else substring(text, -length, _MAX_INT)


def _padded(text: str, length: int, pad: str, left: bool) -> str:
    missing = length - len(text)
    if missing <= 0 or not pad:
        return text[: max(length, 0)]
    _check_made(length)
    padding = (pad * (missing // len(pad) + 1))[:missing]
    return padding + text if left else text + padding


def _check_made(length: int) -> None:
    if length > _MAX_MADE_LETTERS:
        raise NotReproducible(f"a text of {length:,} letters")


def _substring_index(text: str, delimiter: str, count: int) -> str:
    if not delimiter or count == 0:
        return ""
    place = -1 if count > 0 else len(text) - len(delimiter) + 1
    for _ in range(abs(count)):  # places may overlap, as in Spark
        if count > 0:
            place = text.find(delimiter, place + 1)
        else:
            place = text.rfind(delimiter, 0, max(place - 1 + len(delimiter), 0))
        if place < 0:
            return text
    return text[:place] if count > 0 else text[place + len(delimiter) :]


def _split_part(text: str, delimiter: str, number: int) -> str:
    if number == 0:
        raise SparkWouldRaise("there is no part 0")
    parts = text.split(delimiter) if delimiter else [text]
    return parts[number - 1 if number > 0 else number] if abs(number) <= len(parts) else ""


def _overlay(text: str, other: str, position: int, length: int) -> str:
    length = len(other) if length < 0 else length
    return substring(text, 1, position - 1) + other + substring(text, position + length, _MAX_INT)


# --- places -----------------------------------------------------------------------------------------------------------


def _locate(part: str, text: str, start: int) -> int:
    if start < 1:
        return 0
    return 1 if not part else text.find(part, start - 1) + 1


def _find_in_set(word: str, words: str) -> int:
    listed = words.split(",")
    return 0 if "," in word or word not in listed else listed.index(word) + 1


def _levenshtein(text: str, other: str) -> int:
    before = list(range(len(other) + 1))
    for row, letter in enumerate(text, 1):
        now = [row]
        for column, other_letter in enumerate(other, 1):
            now.append(min(before[column] + 1, now[-1] + 1, before[column - 1] + (letter != other_letter)))
        before = now
    return before[-1]


# --- texts made of texts ----------------------------------------------------------------------------------------------


def _replace(text: str, part: str, other: str) -> str:
    return text.replace(part, other) if part else text


def _translate(text: str, letters: str, others: str) -> str:
    if "\0" in others:
        raise NotReproducible("translate() to a letter of code 0")
    table: dict[int, str | None] = {}
    for place, letter in enumerate(letters):
        table.setdefault(ord(letter), others[place] if place < len(others) else None)
    return text.translate(table)


def _repeat(text: str, count: int) -> str:
    _check_made(len(text) * max(count, 0))
    return text * max(count, 0)


def _initcap(text: str) -> str:
    """Words begin after a blank; letters whose title case is another than their upper case are Java's."""
    words = SCALAR_FUNCTIONS["lower"].evaluate(pa.array([text]))[0].as_py().split(" ")
    for word in words:
        if word and (len(word[0].upper()) != 1 or word[0].upper() != word[0].title()):
            raise NotReproducible(f"the title case of {word[0]!r} is not sure")
    return " ".join(word[:1].upper() + word[1:] for word in words)


def _character(code: int) -> str:
    return "" if code < 0 else chr(code & 0xFF)


def _build_concat(terms: Sequence[Term], context: Context) -> Term:
    check_count("concat", terms, 1, None)
    if any(term.type == pa.binary() for term in terms):
        raise UnsupportedExpression("concat() of binary")
    return Call("concat", tuple(_as_text("concat", *each, context) for each in enumerate(terms)), TEXT)


def _as_text(name: str, number: int, term: Term, context: Context) -> Term:
    return argument(name, number, term, TEXT, context)


def _concat(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
    return pc.binary_join_element_wise(*columns, "")


def _build_concat_ws(terms: Sequence[Term], context: Context) -> Term:
    check_count("concat_ws", terms, 1, None)
    lists = [
        term
        if pa.types.is_list(term.type) and term.type.value_type == TEXT
        else _as_text("concat_ws", n, term, context)
        for n, term in enumerate(terms)
    ]
    if lists[0].type != TEXT:
        raise UnsupportedExpression(f"concat_ws() whose separator is {spark_type_name(lists[0].type)}")
    return Call("concat_ws", tuple(lists), TEXT)


def _concat_ws(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
    def value(separator: str | None, *given: str | list[str | None] | None) -> str | None:
        if separator is None:
            return None
        flat = [part for each in given for part in (each if isinstance(each, list) else [each])]
        return separator.join(part for part in flat if part is not None)

    return evaluation.by_row_with_nulls(value, columns, TEXT)


def _build_elt(terms: Sequence[Term], context: Context) -> Term:
    check_count("elt", terms, 2, None)
    number = argument("elt", 0, terms[0], INT, context)
    return Call("elt", (number, *(_as_text("elt", n, each, context) for n, each in enumerate(terms[1:], 1))), TEXT)


def _elt(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
    def value(number: int | None, *texts: str | None) -> str | None:
        if number is None:
            return None
        if not 1 <= number <= len(texts):
            if evaluation.context.ansi:
                raise SparkWouldRaise(f"there is no text {number}")
            return None
        return texts[number - 1]

    return evaluation.by_row_with_nulls(value, columns, TEXT)


def _stripping(name: str, strip: Callable[[str, str], str]) -> SparkFunction:
    """A function that takes letters from the ends: blanks, unless it is told which."""
    return by_row(name, [TEXT, TEXT], TEXT, strip, defaults=[Literal(" ", TEXT)])


def _sized(name: str, per_byte: int) -> SparkFunction:
    def build(terms: Sequence[Term], context: Context) -> Term:
        check_count(name, terms, 1, 1)
        binary = terms[0].type == pa.binary()
        return Call(name, (terms[0] if binary else _as_text(name, 0, terms[0], context),), INT)

    def evaluate(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
        return pc.multiply(pc.binary_length(columns[0]), pa.scalar(per_byte, INT))

    return SparkFunction(name, build, evaluate)


def _build_hex(terms: Sequence[Term], context: Context) -> Term:
    check_count("hex", terms, 1, 1)
    term = terms[0]
    if term.type in INTEGER_TYPES:
        term = coerce_term(term, LONG, context)
    elif term.type not in (TEXT, pa.binary()):
        raise UnsupportedExpression(f"hex() of {spark_type_name(term.type)}")
    return Call("hex", (term,), TEXT)


def _hex(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
    def value(each: Any) -> str:
        if isinstance(each, int):
            return f"{each % (1 << 64):X}"
        return (each.encode() if isinstance(each, str) else each).hex().upper()

    return evaluation.by_row(value, columns, TEXT)


_FROM_THE_FIRST = Literal(1, INT)

TEXT_FUNCTIONS: Sequence[SparkFunction] = (
    by_row("substring", [TEXT, INT, INT], TEXT, substring, defaults=[Literal(_MAX_INT, INT)]),
    by_row("left", [TEXT, INT], TEXT, lambda text, length: substring(text, 1, length)),
    by_row("right", [TEXT, INT], TEXT, _right),
    _stripping("btrim", str.strip),
    _stripping("ltrim", str.lstrip),
    _stripping("rtrim", str.rstrip),
    by_row("lpad", [TEXT, INT, TEXT], TEXT, partial(_padded, left=True), defaults=[Literal(" ", TEXT)]),
    by_row("rpad", [TEXT, INT, TEXT], TEXT, partial(_padded, left=False), defaults=[Literal(" ", TEXT)]),
    by_row("substring_index", [TEXT, TEXT, INT], TEXT, _substring_index),
    by_row("split_part", [TEXT, TEXT, INT], TEXT, _split_part),
    by_row("overlay", [TEXT, TEXT, INT, INT], TEXT, _overlay, defaults=[Literal(-1, INT)]),
    by_row("instr", [TEXT, TEXT], INT, lambda text, part: _locate(part, text, 1)),
    by_row("locate", [TEXT, TEXT, INT], INT, _locate, defaults=[_FROM_THE_FIRST]),
    by_row("find_in_set", [TEXT, TEXT], INT, _find_in_set),
    by_row("levenshtein", [TEXT, TEXT], INT, _levenshtein),
    by_row("replace", [TEXT, TEXT, TEXT], TEXT, _replace, defaults=[Literal("", TEXT)]),
    by_row("translate", [TEXT, TEXT, TEXT], TEXT, _translate),
    by_row("reverse", [TEXT], TEXT, lambda text: text[::-1]),
    by_row("repeat", [TEXT, INT], TEXT, _repeat),
    by_row("space", [INT], TEXT, lambda count: _repeat(" ", count)),
    by_row("initcap", [TEXT], TEXT, _initcap),
    by_row("ascii", [TEXT], INT, lambda text: ord(text[0]) if text else 0),
    by_row("chr", [LONG], TEXT, _character),
    _sized("octet_length", 1),
    _sized("bit_length", 8),
    by_row("bin", [LONG], TEXT, lambda number: f"{number % (1 << 64):b}"),
    SparkFunction("hex", _build_hex, _hex),
    SparkFunction("concat", _build_concat, _concat),
    SparkFunction("concat_ws", _build_concat_ws, _concat_ws),
    SparkFunction("elt", _build_elt, _elt, frozenset({"ansi"})),
)
