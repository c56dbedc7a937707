"""Spark SQL text, made safe for a general SQL parser: what only Spark reads its way is read here, before it.

String, binary, date and suffixed number literals leave the text as numbered marks (``'fuse__0'`` …), because their
escapes, their adjacency and their types are Spark's own; function names get a prefix, so that a parser does not take
them for functions it believes to know. Knows no grammar.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TypeVar

import pyarrow as pa

from fuse_index.errors import WhereError
from fuse_index.predicate import Literal

_MARK = re.compile(r"fuse__(\d+)")
_Value = TypeVar("_Value")

FUNCTION_PREFIX = "fuse__"
"""Stands before the name of every function in the made-safe text."""

_GRAMMAR_WORDS = """
all and any array as asymmetric at between by case cast char collate dec decimal distinct div else end escape except
exists extract false
from group having ilike in interval intersect is like map not null numeric on or over regexp rlike select some struct
symmetric table then
time true try_cast union unknown using values varchar when where with zone
"""
_TYPE_AND_UNIT_WORDS = """
bigint binary boolean byte date day days double float hour hours int integer interval long microsecond microseconds
millisecond
milliseconds minute minutes month months quarter real second seconds short smallint string timestamp timestamp_ltz
timestamp_ntz tinyint
variant week weeks year years current_catalog current_database current_date current_time current_timestamp
current_user localtimestamp
"""
_NON_FUNCTION_WORDS = frozenset(_GRAMMAR_WORDS.split())
_UNQUOTED_WORDS = _NON_FUNCTION_WORDS | frozenset(_TYPE_AND_UNIT_WORDS.split())
"""All other words are names of columns, and are quoted: a parser has keywords that Spark lets columns be called."""

_TOKEN = re.compile(
    r"""
      (?P<space>\s+|--[^\n]*|/\*.*?\*/)
    | (?P<binary>[xX](?:'[0-9a-fA-F]*'|"[0-9a-fA-F]*"))
    | (?P<raw>[rR](?:'[^']*'|"[^"]*"))
    | (?:(?P<typed>date|timestamp|timestamp_ntz|timestamp_ltz)\s*)?(?P<string>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
    | (?P<quoted>`(?:[^`]|``)*`)
    | (?P<suffixed>(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?(?:bd|[lsydf]))(?!\w)
    | (?P<number>(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)(?!\w)
    | (?P<sized>(?:var)?char(?:acter)?\s*\(\s*\d+\s*\))
    | (?P<function>[^\W\d]\w*)(?=\s*\()
    | (?P<word>\w+)
    | (?P<operator><=>|==|!=|!<|!>|::|.)
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)

_OPERATOR_SPELLINGS = {"!<": ">=", "!>": "<=", "!": " NOT "}

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|.)", re.DOTALL)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
"""What Spark makes of a letter after a backslash; any other letter is itself."""

_SUFFIX_TYPES = {"l": pa.int64(), "s": pa.int16(), "y": pa.int8()}


@dataclass(frozen=True, slots=True)
class LiteralMark:
    """A literal of the text: ``kind`` is "" or the word before a string that is a date or a timestamp."""

    literal: Literal
    kind: str
    start: int
    end: int


@dataclass(frozen=True)
class TokenizedSql:
    """Text that a general parser reads as Spark would."""

    original: str
    safe: str
    marks: tuple[LiteralMark, ...]
    pieces: tuple[tuple[int, int], ...]
    """Where pieces of the safe text begin, there and in the original."""

    @classmethod
    def tokenize(cls, text: str) -> TokenizedSql:
        """Raises WhereError for a literal that is not finished, or a character that no predicate has."""
        reader = _Reader(text)
        for found in _TOKEN.finditer(text):
            reader.take(found)
        return cls(text, "".join(reader.safe), tuple(reader.marks), tuple(reader.pieces))

    @property
    def full_span(self) -> tuple[int, int]:
        return 0, len(self.original)

    def original_span(self, safe: int) -> tuple[int, int]:
        """Start and end in the original text of the token at a place in the safe text."""
        after = bisect_right(self.pieces, (safe, len(self.original)))
        start = self.pieces[after - 1][1] if after else 0
        return start, self.pieces[after][1] if after < len(self.pieces) else len(self.original)

    def restore(self, safe: str) -> str:
        """Safe text as people wrote it."""
        text = re.sub(rf"'{_MARK.pattern}'", lambda found: self._written(self.marks[int(found[1])]), safe)
        return re.sub(r"`([^\W\d]\w*)`", r"\1", text.replace(FUNCTION_PREFIX, ""))

    def find_mark(self, text: str) -> LiteralMark | None:
        """What a string of the safe text stands for; None for one that a parser made."""
        found = _MARK.fullmatch(text)
        return self.marks[int(found[1])] if found else None

    def _written(self, mark: LiteralMark) -> str:
        return self.original[mark.start : mark.end]

    def error(self, message: str, start: int, end: int) -> WhereError:
        """The message, with the line of the text and the place in it."""
        line_start = self.original.rfind("\n", 0, start) + 1
        line = self.original[line_start:].split("\n")[0]
        length = max(min(end, line_start + len(line)) - start, 1)
        return WhereError(f"{message}\n  {line}\n  {' ' * (start - line_start)}{'^' * length}")


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.safe: list[str] = []
        self.marks: list[LiteralMark] = []
        self.pieces: list[tuple[int, int]] = []
        self.length = 0
        self.after_string = False

    def take(self, found: re.Match[str]) -> None:
        kind, text, start = found.lastgroup, found[0], found.start()
        if kind == "space":
            self._write(" " * len(text) if "\n" not in text else re.sub(r"[^\n]", " ", text), start)
            return
        adjacent, self.after_string = self.after_string, False
        match kind:
            case "string" | "raw":
                self._string(found, adjacent)
            case "binary":
                digits = text[2:-1]
                self._mark(
                    Literal(bytes.fromhex(digits.rjust(len(digits) + len(digits) % 2, "0")), pa.binary()), "", found
                )
            case "suffixed":
                self._mark(self._checked(suffixed_number, text.lower(), found), "", found)
            case "sized":
                self._write("VARIANT", start)  # parsers take it for STRING, which it is not
            case "function" if text.lower() not in _NON_FUNCTION_WORDS:
                self._write(FUNCTION_PREFIX + text, start)
            case "word" if text.lower() not in _UNQUOTED_WORDS:
                self._write(f"`{text}`", start)
            case "operator" if text in "'\"`;?":
                raise self._refusal(text, start)
            case _:
                self._write(_OPERATOR_SPELLINGS.get(text, text), start)

    def _write(self, safe: str, start: int) -> None:
        self.pieces.append((self.length, start))
        self.safe.append(safe)
        self.length += len(safe)

    def _mark(self, literal: Literal, kind: str, found: re.Match[str]) -> None:
        self._write(f"'{FUNCTION_PREFIX}{len(self.marks)}'", found.start())
        self.marks.append(LiteralMark(literal, kind, found.start(), found.end()))

    def _string(self, found: re.Match[str], adjacent: bool) -> None:
        value = found[0][2:-1] if found["raw"] else self._checked(unescape_string, found["string"], found)
        if adjacent and not found["typed"]:
            before = self.marks[-1]
            joined = Literal(before.literal.value + value, pa.string())
            self.marks[-1] = LiteralMark(joined, before.kind, before.start, found.end())
        else:
            self._mark(Literal(value, pa.string()), (found["typed"] or "").lower(), found)
        self.after_string = True

    def _checked(self, read: Callable[[str], _Value], text: str, found: re.Match[str]) -> _Value:
        try:
            return read(text)
        except ValueError as refusal:
            raise TokenizedSql(self.text, "", (), ()).error(str(refusal), found.start(), found.end()) from None

    def _refusal(self, text: str, start: int) -> WhereError:
        what = {";": "a predicate is one expression: no ';'", "?": "parameters are not supported: write the value"}
        return TokenizedSql(self.text, "", (), ()).error(
            what.get(text, f"the text after {text} never ends"), start, start + 1
        )


def unescape_string(quoted: str) -> str:
    """The value of a quoted string literal, as Spark reads it: backslashes, and a doubled quote for one. Raises
    ValueError.
    """
    quote = quoted[0]
    text = re.sub(
        rf"{quote}{quote}|{_ESCAPE.pattern}",
        lambda found: quote if found[1] is None else _escaped(found[1]),
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
    """A number without a suffix: the narrowest of INT, BIGINT and DECIMAL, DOUBLE with an exponent. Raises
    ValueError.
    """
    if "e" in text.lower():
        return Literal(float(text), pa.float64())
    if "." not in text:
        for kind in (pa.int32(), pa.int64()):
            if -(1 << kind.bit_width - 1) <= int(text) < 1 << kind.bit_width - 1:
                return Literal(int(text), kind)
    return decimal_literal(text)


def suffixed_number(text: str) -> Literal:
    """``5l``, ``5s``, ``5y``, ``1.5d``, ``1.5f``, ``1.5bd``. Raises ValueError."""
    if text.endswith("bd"):
        return decimal_literal(text[:-2])
    digits, suffix = text[:-1], text[-1]
    if suffix in "df":
        kind = pa.float64() if suffix == "d" else pa.float32()
        return Literal(pa.scalar(float(digits), kind).as_py(), kind)
    if not digits.isdigit():
        raise ValueError(f"{text!r} is no number: the suffix {suffix!r} is for whole numbers")
    kind = _SUFFIX_TYPES[suffix]
    if (
        int(digits) > 1 << kind.bit_width - 1
    ):  # the very least number is written as the minus of what is too large by one
        raise ValueError(f"{text!r} is too large for its suffix")
    return Literal(int(digits), kind)


def decimal_literal(text: str) -> Literal:
    """A decimal with as many digits as are written. Raises ValueError for more than 38."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"{text!r} is no number") from None
    _, digits, exponent = value.as_tuple()
    scale = max(-int(exponent), 0)
    precision = max(len(digits) + max(int(exponent), 0), scale)
    if precision > 38:
        raise ValueError(f"{text} has {precision} digits; a decimal has at most 38")
    return Literal(Decimal(f"{value:.{scale}f}"), pa.decimal128(precision, scale))
