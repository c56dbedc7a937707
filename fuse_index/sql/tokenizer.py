"""Literals of Spark SQL text, read here, before a general SQL parser has the rest.

String, binary, date and suffixed number literals leave the text as numbered marks (``'fuse__0'`` …), because their
escapes, their adjacency and their types are Spark's own; so do comments, and the length of VARCHAR. Knows no grammar.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TypeVar

import numpy as np
import pyarrow as pa

from fuse_index.errors import WhereError
from fuse_index.expressions.casts import to_float32
from fuse_index.expressions.types import spark_type_name
from fuse_index.predicate import Literal

_MARK = re.compile(r"fuse__(\d+)")
_Value = TypeVar("_Value")

_TOKEN = re.compile(
    r"""
      (?P<space>\s+|--[^\n]*|/\*.*?\*/)
    | (?P<listed>(?<![\w.`])IN\s*\((?:
          (?P<numbers>(?:\s*-?[0-9]{1,18}\s*,){64,}+\s*-?[0-9]{1,18}\s*)
        | (?P<texts>(?:\s*'[^'\\]*'\s*,){64,}+\s*'[^'\\]*'\s*)
      )\))
    | (?P<binary>[xX](?:'[0-9a-fA-F]*'|"[0-9a-fA-F]*"))
    | (?P<raw>[rR](?:'[^']*'|"[^"]*"))
    | (?:(?P<typed>date|timestamp|timestamp_ntz|timestamp_ltz)\s*)?(?P<string>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
    | (?P<suffixed>(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?(?:bd|[lsydf]))(?!\w)
    | (?P<sized>(?:var)?char(?:acter)?\s*\(\s*\d+\s*\))
    | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?)(?!\w)
    | (?P<name>\d\w*|(?<=\d\.)\w+)
    | (?P<verbatim>`(?:[^`]|``)*`|\w+|<=>|==|!=|!<|!>|::)
    | (?P<refused>['"`;?])
    | (?P<sign>.)
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|.)", re.DOTALL)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
"""What Spark makes of a letter after a backslash; any other letter is itself."""

_TYPE_FOLLOWS = re.compile(r"(?:\bAS|[:<,])\s*$", re.IGNORECASE)
"""What stands before a type; after anything else, ``char(65)`` is a call."""
_REFUSED = {";": "a predicate is one expression: no ';'", "?": "parameters are not supported: write the value"}
_MAX_DIGITS = 1000
"""Python reads no longer number."""
_SUFFIX_TYPES = {"l": pa.int64(), "s": pa.int16(), "y": pa.int8()}


@dataclass(frozen=True, slots=True)
class LiteralMark:
    """A literal of the text; ``typed_by`` is "", or the word before a string that is a date or a timestamp.

    ``listed``: the literals of a long list after IN, for which the mark stands; ``literal`` is the first of them.
    """

    literal: Literal
    typed_by: str
    start: int
    end: int
    listed: tuple[Literal, ...] = ()


@dataclass(frozen=True)
class TokenizedSql:
    """Text that a general parser reads as Spark would."""

    original: str
    safe: str
    marks: tuple[LiteralMark, ...]
    token_starts: tuple[tuple[int, int], ...]
    """Where tokens begin, in the safe text and in the original."""

    @classmethod
    def tokenize(cls, text: str) -> TokenizedSql:
        """Raises WhereError for a literal that is not finished, or a character that no predicate has."""
        tokenizer = _Tokenizer(text)
        for match in _TOKEN.finditer(text):
            tokenizer.take(match)
        return cls(text, "".join(tokenizer.safe), tuple(tokenizer.marks), tuple(tokenizer.token_starts))

    @property
    def full_span(self) -> tuple[int, int]:
        """Start and end of the original text."""
        return 0, len(self.original)

    def original_span(self, safe_position: int) -> tuple[int, int]:
        """Start and end in the original text of the token at a position in the safe text."""
        following = bisect_right(self.token_starts, (safe_position, len(self.original)))
        start = self.token_starts[following - 1][1] if following else 0
        return start, self.token_starts[following][1] if following < len(self.token_starts) else len(self.original)

    def restore(self, safe: str) -> str:
        """Safe text as people wrote it, but for needless backticks."""
        text = re.sub(rf"'{_MARK.pattern}'", lambda match: self._written(self.marks[int(match[1])]), safe)
        return re.sub(r"`([^\W\d]\w*)`", r"\1", text)

    def find_mark(self, text: str) -> LiteralMark | None:
        """The literal that a string of the safe text stands for; None for one that a parser made."""
        match = _MARK.fullmatch(text)
        return self.marks[int(match[1])] if match else None

    def _written(self, mark: LiteralMark) -> str:
        return self.original[mark.start : mark.end]

    def error(self, message: str, start: int, end: int) -> WhereError:
        """The message, with the line of the text and the place in it."""
        return error_at(self.original, message, start, end)


def error_at(text: str, message: str, start: int, end: int) -> WhereError:
    """The message, with the line of the text and the place in it."""
    line_start = text.rfind("\n", 0, start) + 1
    line = text[line_start:].split("\n")[0]
    length = max(min(end, line_start + len(line)) - start, 1)
    return WhereError(f"{message}\n  {line}\n  {' ' * (start - line_start)}{'^' * length}")


class _Tokenizer:
    """Collects the safe text, token by token."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.safe: list[str] = []
        self.marks: list[LiteralMark] = []
        self.token_starts: list[tuple[int, int]] = []
        self.length = 0
        self.after_string = False

    def take(self, match: re.Match[str]) -> None:
        token_class, text, start = match.lastgroup, match[0], match.start()
        if token_class == "space":
            self._write(re.sub(r"[^\n]", " ", text), start)
            return
        adjacent, self.after_string = self.after_string, False
        match token_class:
            case "listed":
                self._list(match)
            case "string" | "raw":
                self._string(match, adjacent)
            case "binary":
                digits = text[2:-1]
                value = bytes.fromhex(digits.rjust(len(digits) + len(digits) % 2, "0"))
                self._mark(Literal(value, pa.binary()), "", match)
            case "suffixed":
                self._mark(self._checked(suffixed_number, text.lower(), match), "", match)
            case "sized" if _TYPE_FOLLOWS.search(self.text, 0, start):
                self._write("ARRAY", start)  # parsers take it for STRING, which it is not
            case "refused":
                raise error_at(self.text, _REFUSED.get(text, f"the text after {text} never ends"), start, start + 1)
            case "number":
                self._checked(number_literal, text, match)  # here it is known where it stands
                self._write(text, start)
            case "name":
                self._write(f"`{text}`", start)  # or parsers make it one with a number before it
            case "sign" if not " " < text <= "~":
                self._write(f" {text} ", start)  # or it would be a letter of the name beside it
            case _:
                self._write(text, start)

    def _write(self, safe: str, start: int) -> None:
        self.token_starts.append((self.length, start))
        self.safe.append(safe)
        self.length += len(safe)

    def _mark(self, literal: Literal, typed_by: str, match: re.Match[str]) -> None:
        self._write(f" 'fuse__{len(self.marks)}'", match.start())  # parsers know N'…' and more
        self.marks.append(LiteralMark(literal, typed_by, match.start(), match.end()))

    def _list(self, match: re.Match[str]) -> None:
        """Read a long list of plain literals at once: a general parser takes 100 µs and a kilobyte for each."""
        self._write("IN (", match.start())
        group = "numbers" if match["numbers"] else "texts"
        if group == "numbers":
            numbers = [int(number) for number in match[group].split(",")]
            data_type = number_literal(str(max(numbers, key=_magnitude))).type
            listed = tuple([Literal(number, data_type) for number in numbers])
        else:
            texts = re.findall(r"'([^']*)'", match[group])
            self._checked(unescape_string, "'" + "".join(texts) + "'", match)  # which refuses half a character
            text_type = pa.string()
            listed = tuple([Literal(text, text_type) for text in texts])
        self._write(f" 'fuse__{len(self.marks)}'", match.start(group))
        self.marks.append(LiteralMark(listed[0], "", match.start(group), match.end(group), listed))
        self._write(")", match.end() - 1)

    def _string(self, match: re.Match[str], adjacent: bool) -> None:
        value = match[0][2:-1] if match["raw"] else self._checked(unescape_string, match["string"], match)
        if adjacent and not match["typed"]:
            before = self.marks[-1]
            joined = Literal(before.literal.value + value, pa.string())
            self.marks[-1] = LiteralMark(joined, before.typed_by, before.start, match.end())
        else:
            self._mark(Literal(value, pa.string()), (match["typed"] or "").lower(), match)
        self.after_string = True

    def _checked(self, read: Callable[[str], _Value], text: str, match: re.Match[str]) -> _Value:
        try:
            return read(text)
        except ValueError as refusal:
            raise error_at(self.text, str(refusal), match.start(), match.end()) from None


def _magnitude(number: int) -> int:
    return number if number >= 0 else -number - 1


def unescape_string(quoted: str) -> str:
    """The value of a quoted string literal, as Spark reads it: backslashes, and a doubled quote for one.

    Raises ValueError.
    """
    quote = quoted[0]
    text = re.sub(
        rf"{quote}{quote}|{_ESCAPE.pattern}",
        lambda match: quote if match[1] is None else _escaped(match[1]),
        quoted[1:-1],
        flags=re.DOTALL,
    )
    try:
        return text.encode("utf-16-le", "surrogatepass").decode(
            "utf-16-le"
        )  # one character may be written as its two halves
    except UnicodeDecodeError:
        raise ValueError(f"{quoted} holds half a character") from None


def _escaped(letters: str) -> str:
    if letters[0] in "uU" and len(letters) > 1:
        if int(letters[1:], 16) > 0x10FFFF:
            raise ValueError(f"\\{letters} is no character")
        return chr(int(letters[1:], 16))
    return chr(int(letters, 8)) if len(letters) == 3 else _ESCAPED.get(letters, letters)


def number_literal(text: str) -> Literal:
    """A number without a suffix: the narrowest of INT, BIGINT and DECIMAL, DOUBLE with an exponent.

    Raises ValueError.
    """
    if "e" in text.lower():
        return float_literal(text, pa.float64())
    if "." not in text and len(text) < _MAX_DIGITS:
        for data_type in (pa.int32(), pa.int64()):
            if -(1 << data_type.bit_width - 1) <= int(text) < 1 << data_type.bit_width - 1:
                return Literal(int(text), data_type)
    return decimal_literal(text)


def suffixed_number(text: str) -> Literal:
    """``5l``, ``5s``, ``5y``, ``1.5d``, ``1.5f``, ``1.5bd``. Raises ValueError."""
    if text.endswith("bd"):
        return decimal_literal(text[:-2])
    digits, suffix = text[:-1], text[-1]
    if suffix in "df":
        return float_literal(digits, pa.float64() if suffix == "d" else pa.float32())
    if not digits.isdigit():
        raise ValueError(f"{text!r} is no number: the suffix {suffix!r} is for whole numbers")
    data_type = _SUFFIX_TYPES[suffix]
    if (
        int(digits) > 1 << data_type.bit_width - 1
    ):  # the very least number is written as the minus of what is too large by one
        raise ValueError(f"{text!r} is too large for its suffix")
    return Literal(int(digits), data_type)


def float_literal(text: str, data_type: pa.DataType) -> Literal:
    """A float or a double. Raises ValueError for more than the largest, which Spark refuses too."""
    exact, largest = _decimal(text), float(np.finfo(data_type.to_pandas_dtype()).max)
    if abs(exact) > Decimal(largest):
        raise ValueError(f"{text} is too large for {spark_type_name(data_type)}, whose largest value is {largest!r}")
    return Literal(float(text) if data_type == pa.float64() else to_float32(exact), data_type)


def decimal_literal(text: str) -> Literal:
    """A decimal with as many digits as are written. Raises ValueError for more than 38."""
    value = _decimal(text)
    _, digits, exponent = value.as_tuple()
    scale = max(-int(exponent), 0)
    precision = max(len(digits) + max(int(exponent), 0), scale)
    if precision > 38:
        raise ValueError(f"{text} has {precision} digits; a decimal has at most 38")
    return Literal(Decimal(f"{value:.{scale}f}"), pa.decimal128(precision, scale))


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ValueError(f"{text!r} is no number, or has an exponent beyond all others") from None
