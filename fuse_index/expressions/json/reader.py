"""JSON text to a tree and back, as Spark reads and writes it in ``get_json_object``: the way of Jackson.

An object keeps all its members, in order and with every duplicate; a number with a point or an exponent keeps its text.
Beyond the standard Jackson takes single quotes, ``\\'`` and raw control characters, and whatever follows the first
value; it has limits on depth, on digits and on the length of names. What is not exactly known raises
``NotReproducible``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

from fuse_index.expressions.errors import MalformedJson, NotReproducible

_MAX_DEPTH = 1000
"""Objects and arrays within each other."""
_MAX_NUMBER_DIGITS = 1000
"""Digits of one number, its exponent included."""
_MAX_NAME_CHARACTERS = 50_000
_MAX_DOCUMENT_CHARACTERS = 5_000_000
"""Characters of a document beyond which other limits may apply, which differ from version to version."""

_BLANK = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPED = r"(?:u[0-9a-fA-F]{4}|[\"\\/bfnrt'])"
_STRINGS = {quote: re.compile(rf"{quote}([^{quote}\\]*(?:\\{_ESCAPED}[^{quote}\\]*)*){quote}") for quote in "\"'"}
_ESCAPE_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_KEYWORDS = {"true": True, "false": False, "null": None}
_LONG_NUMBER = re.compile(rf"[0-9.eE+-]{{{_MAX_NUMBER_DIGITS}}}")


class Members(list[tuple[str, Any]]):
    """An object."""


class Float(str):
    """A number with a point or an exponent, as it is written."""

    __slots__ = ()


def read_json(text: str) -> Any:
    """The first value of the text: Members, list, str, Float, int, bool or None. Raises MalformedJson,
    NotReproducible.
    """
    if len(text) > _MAX_DOCUMENT_CHARACTERS:
        raise NotReproducible(f"a document of {len(text)} characters")
    try:
        value, _ = _PYTHON_DECODER.raw_decode(text, _BLANK.match(text).end())  # type: ignore[union-attr]
    except (ValueError, RecursionError):
        return _Reader(text).document()
    if (
        isinstance(value, str | list)
        and not isinstance(value, Float)
        and (len(text) < _MAX_NUMBER_DIGITS or not _may_be_limited(text))
    ):
        return value
    return _Reader(text).document()


def write_json(value: Any, sure: bool = True) -> str:
    """A value as Jackson writes it. Raises NotReproducible for what has two spellings, unless it need not be ``sure``:
    some floats, and emojis.
    """
    match value:
        case Float():
            return double_text(float(value), sure)
        case bool() | None:
            return "null" if value is None else "true" if value else "false"
        case int():
            return str(value)
        case str():
            return f'"{_escaped(value, sure)}"'
        case Members():
            return (
                "{" + ",".join(f'"{_escaped(name, sure)}":{write_json(member, sure)}' for name, member in value) + "}"
            )
        case _:
            return "[" + ",".join(write_json(element, sure) for element in value) + "]"


def plain(value: Any) -> Any:
    """The same as dictionaries, lists, numbers and texts; of a name that comes twice, the last one counts."""
    match value:
        case Float():
            return float(value)
        case Members():
            return {name: plain(member) for name, member in value}
        case list():
            return [plain(element) for element in value]
        case _:
            return value


def double_text(number: float, sure: bool = True) -> str:
    """``Double.toString``: the shortest digits that say the number, since Java 19."""
    if not math.isfinite(number):
        return '"NaN"' if math.isnan(number) else '"Infinity"' if number > 0 else '"-Infinity"'
    sign, digits, exponent = Decimal(repr(number)).as_tuple()
    assert isinstance(exponent, int)
    written = "".join(map(str, digits)).rstrip("0") or "0"
    power = exponent + len(digits) - 1 if number else 0
    if sure and not is_plain(number):
        raise NotReproducible(f"the digits of {number!r}, which depend on Java's version: cast to DOUBLE")
    minus = "-" if sign else ""
    if not number or -3 <= power < 7:
        whole = written[: power + 1].ljust(power + 1, "0") if power >= 0 else "0"
        fraction = written[power + 1 :] if power >= 0 else "0" * (-power - 1) + written
        return f"{minus}{whole}.{fraction if number and fraction else '0'}"
    return f"{minus}{written[0]}.{written[1:] or '0'}E{power}"


def is_plain(number: float) -> bool:
    """Whether every Java writes it with the fewest digits: until Java 19, some very large and very small numbers have
    more.
    """
    return not number or 1e-3 <= abs(number) < 1e15


def _escaped(text: str, sure: bool) -> str:
    if sure and _BEYOND_BMP.search(text):
        raise NotReproducible("a letter beyond the first 65,536, which Jackson writes in two ways")
    return _CONTROL.sub(lambda found: _SHORT_ESCAPES.get(found[0]) or f"\\u{ord(found[0]):04X}", text)


_BEYOND_BMP = re.compile("[\U00010000-\U0010ffff]")
_CONTROL = re.compile(r'[\x00-\x1f"\\]')
_SHORT_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def _refuse(word: str) -> Any:
    raise ValueError(word)  # NaN and Infinity are no JSON to Jackson


_PYTHON_DECODER = json.JSONDecoder(object_pairs_hook=Members, parse_float=Float, parse_constant=_refuse, strict=False)
"""Python's own reader takes nothing that Jackson does not, limits apart; and it is ten times as fast as ours."""


def _may_be_limited(text: str) -> bool:
    return (
        text.count("[") + text.count("{") > _MAX_DEPTH
        or len(text) > _MAX_NAME_CHARACTERS
        or _LONG_NUMBER.search(text) is not None
    )


class _Reader:
    """Reads what Python's own reader refuses, and documents near a limit. Without recursion: Jackson goes a thousand
    levels deep.
    """

    def __init__(self, text: str) -> None:
        self.text, self.place = text, 0

    def document(self) -> Any:
        value = self._value()
        if isinstance(value, _Open):
            return self._nested(value)
        if not isinstance(value, str) or isinstance(value, Float):
            self._end_of_word(isinstance(value, bool) or value is None)
        return value

    def _nested(self, root: _Open) -> Any:
        stack = [root]
        while True:
            top = stack[-1]
            if (found := top.next(self)) is _CLOSED:
                stack.pop()
                if not stack:
                    return root.container
            elif isinstance(found, _Open):
                stack.append(found)
                if len(stack) > _MAX_DEPTH:
                    raise MalformedJson(f"more than {_MAX_DEPTH} levels")

    def _value(self) -> Any:
        """A scalar, or an object or array of which the first sign was read."""
        match letter := self._peek():
            case "{" | "[":
                self.place += 1
                return _Object() if letter == "{" else _Array()
            case '"' | "'":
                return self.string(letter)
            case "t" | "f" | "n":
                for word, value in _KEYWORDS.items():
                    if self.text.startswith(word, self.place):
                        self.place += len(word)
                        return value
                raise MalformedJson(self.place)
            case _:
                return self._number()

    def _number(self) -> Any:
        found = _NUMBER.match(self.text, self.place)
        if found is None:
            raise MalformedJson(self.place)
        self.place = found.end()
        if sum(letter.isdigit() for letter in found[0]) > _MAX_NUMBER_DIGITS:
            if found.start() == 0:
                raise NotReproducible("a document that is one number beyond the limit")  # which is kept, or not
            raise MalformedJson(f"a number of {len(found[0])} characters")
        return Float(found[0]) if found[1] or found[2] else int(found[0])

    def string(self, quote: str) -> str:
        found = _STRINGS[quote].match(self.text, self.place) if quote in _STRINGS else None
        if found is None:
            raise MalformedJson(self.place)
        self.place = found.end()
        return _unescaped(found[1])

    def name(self) -> str:
        name = self.string(self._peek())
        if len(name) > _MAX_NAME_CHARACTERS:
            raise MalformedJson(f"a name of {len(name)} characters")
        if self._peek() != ":":
            raise MalformedJson(self.place)
        self.place += 1
        return name

    def sign(self, allowed: str) -> str:
        found = self._peek()
        if found not in allowed:
            raise MalformedJson(self.place)
        self.place += 1
        return found

    def value(self) -> Any:
        return self._value()

    def closes(self, sign: str) -> bool:
        if self._peek() != sign:
            return False
        self.place += 1
        return True

    def _peek(self) -> str:
        self.place = _BLANK.match(self.text, self.place).end()  # type: ignore[union-attr]
        if self.place == len(self.text):
            raise MalformedJson("the text ends")
        return self.text[self.place]

    def _end_of_word(self, is_word: bool) -> None:
        """A number at the root is followed by a blank or nothing, a word by anything that is no part of one."""
        following = self.text[self.place : self.place + 1]
        if is_word and following > "\x7f":
            raise NotReproducible(f"{following!r} after a word")
        if following.isalnum() or following == "_" or (not is_word and following not in ("", " ", "\t", "\n", "\r")):
            raise MalformedJson(self.place)


_CLOSED = object()


class _Open:
    """An object or array that is being read."""

    container: list[Any]

    def next(self, reader: _Reader) -> Any:
        """Read one more element, and give it if it has elements of its own; CLOSED at the end."""
        raise NotImplementedError


class _Array(_Open):
    def __init__(self) -> None:
        self.container = []

    def next(self, reader: _Reader) -> Any:
        if self.container:
            if reader.sign(",]") == "]":
                return _CLOSED
        elif reader.closes("]"):
            return _CLOSED
        return _append_value(reader.value(), self.container.append)


class _Object(_Open):
    def __init__(self) -> None:
        self.container = Members()

    def next(self, reader: _Reader) -> Any:
        if self.container:
            if reader.sign(",}") == "}":
                return _CLOSED
        elif reader.closes("}"):
            return _CLOSED
        name = reader.name()
        return _append_value(reader.value(), partial(_append_member, self.container, name))


def _append_member(held: list[Any], name: str, value: Any) -> None:
    held.append((name, value))


def _append_value(value: Any, keep: Callable[[Any], None]) -> Any:
    keep(value.container if isinstance(value, _Open) else value)
    return value


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(
        lambda found: chr(int(found[1], 16)) if found[1] else _ESCAPE_LETTERS.get(found[2], found[2]), text
    )
    return plain.encode("utf-16-le", "surrogatepass").decode(
        "utf-16-le", "surrogatepass"
    )  # two surrogates are one letter
