"""JSON text to a tree, as Spark reads it in ``get_json_object``: the way of Jackson.

An object keeps all its members, in order and with every duplicate; a number with a point or an exponent keeps its text.
Beyond the standard Jackson takes single quotes, ``\\'`` and raw control characters, and whatever follows the first
value; it has limits on depth, on digits and on the length of names. What is not exactly known raises
``NotReproducible``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
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
    """An object of JSON: its members in order, with every duplicate."""


class Float(str):
    """A number with a point or an exponent, as it is written."""

    __slots__ = ()


def read_json(text: str) -> Any:
    """The first value of the text: Members, list, str, Float, int, bool or None.

    Raises MalformedJson, NotReproducible.

    >>> read_json('{"a": 1.50, "a": null} and more')
    [('a', '1.50'), ('a', None)]
    """
    if len(text) > _MAX_DOCUMENT_CHARACTERS:
        raise NotReproducible(f"a document of {len(text)} characters")
    try:
        value, _ = _PYTHON_DECODER.raw_decode(text, _BLANK.match(text).end())  # type: ignore[union-attr]
    except (ValueError, RecursionError):
        return JacksonReader(text).document()
    if (
        isinstance(value, str | list)
        and not isinstance(value, Float)
        and (len(text) < _MAX_NUMBER_DIGITS or not _may_be_limited(text))
    ):
        return value
    return JacksonReader(text).document()


def plain(value: Any) -> Any:
    """Make dictionaries, lists, numbers and texts of a tree; of a name that comes twice, the last one counts."""
    match value:
        case Float():
            return float(value)
        case Members():
            return {name: plain(member) for name, member in value}
        case list():
            return [plain(element) for element in value]
        case _:
            return value


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


class JacksonReader:
    """Reads what Python's own reader refuses, and documents near a limit.

    Without recursion: Jackson goes a thousand levels deep.
    """

    def __init__(self, text: str) -> None:
        self.text, self.position = text, 0

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
            if (element := top.next(self)) is _CLOSED:
                stack.pop()
                if not stack:
                    return root.container
            elif isinstance(element, _Open):
                stack.append(element)
                if len(stack) > _MAX_DEPTH:
                    raise MalformedJson(f"more than {_MAX_DEPTH} levels")

    def _value(self) -> Any:
        """A scalar, or an object or array of which the first sign was read."""
        match letter := self._peek():
            case "{" | "[":
                self.position += 1
                return _Object() if letter == "{" else _Array()
            case '"' | "'":
                return self.string(letter)
            case "t" | "f" | "n":
                for word, value in _KEYWORDS.items():
                    if self.text.startswith(word, self.position):
                        self.position += len(word)
                        return value
                raise MalformedJson(self.position)
            case _:
                return self._number()

    def _number(self) -> Any:
        match = _NUMBER.match(self.text, self.position)
        if match is None:
            raise MalformedJson(self.position)
        self.position = match.end()
        if sum(letter.isdigit() for letter in match[0]) > _MAX_NUMBER_DIGITS:
            if match.start() == 0:
                raise NotReproducible("a document that is one number beyond the limit")  # which is kept, or not
            raise MalformedJson(f"a number of {len(match[0])} characters")
        return Float(match[0]) if match[1] or match[2] else int(match[0])

    def string(self, quote: str) -> str:
        match = _STRINGS[quote].match(self.text, self.position) if quote in _STRINGS else None
        if match is None:
            raise MalformedJson(self.position)
        self.position = match.end()
        return _unescaped(match[1])

    def name(self) -> str:
        name = self.string(self._peek())
        if len(name) > _MAX_NAME_CHARACTERS:
            raise MalformedJson(f"a name of {len(name)} characters")
        if self._peek() != ":":
            raise MalformedJson(self.position)
        self.position += 1
        return name

    def sign(self, allowed: str) -> str:
        letter = self._peek()
        if letter not in allowed:
            raise MalformedJson(self.position)
        self.position += 1
        return letter

    def value(self) -> Any:
        return self._value()

    def closes(self, sign: str) -> bool:
        if self._peek() != sign:
            return False
        self.position += 1
        return True

    def _peek(self) -> str:
        self.position = _BLANK.match(self.text, self.position).end()  # type: ignore[union-attr]
        if self.position == len(self.text):
            raise MalformedJson("the text ends")
        return self.text[self.position]

    def _end_of_word(self, is_word: bool) -> None:
        """A number at the root is followed by a blank or nothing, a word by anything that is no part of one."""
        following = self.text[self.position : self.position + 1]
        if is_word and following > "\x7f":
            raise NotReproducible(f"{following!r} after a word")
        if following.isalnum() or following == "_" or (not is_word and following not in ("", " ", "\t", "\n", "\r")):
            raise MalformedJson(self.position)


_CLOSED = object()


class _Open:
    """An object or array that is being read."""

    container: list[Any]

    def next(self, reader: JacksonReader) -> Any:
        """Read one more element, and give it if it has elements of its own; CLOSED at the end."""
        raise NotImplementedError


class _Array(_Open):
    def __init__(self) -> None:
        self.container = []

    def next(self, reader: JacksonReader) -> Any:
        if self.container:
            if reader.sign(",]") == "]":
                return _CLOSED
        elif reader.closes("]"):
            return _CLOSED
        return _append_value(reader.value(), self.container.append)


class _Object(_Open):
    def __init__(self) -> None:
        self.container = Members()

    def next(self, reader: JacksonReader) -> Any:
        if self.container:
            if reader.sign(",}") == "}":
                return _CLOSED
        elif reader.closes("}"):
            return _CLOSED
        name = reader.name()
        return _append_value(reader.value(), partial(_append_member, self.container, name))


def _append_member(members: list[Any], name: str, value: Any) -> None:
    members.append((name, value))


def _append_value(value: Any, append: Callable[[Any], None]) -> Any:
    append(value.container if isinstance(value, _Open) else value)
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
