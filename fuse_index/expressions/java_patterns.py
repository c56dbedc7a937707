"""Java's regular expressions as RE2 reads them: those that both answer alike, in time that grows with the text alone.

What Java and RE2 read in different ways is written out (``.`` stops at five line ends in Java and at one in RE2), or
refused by name: look-around, back references, possessive repeats, classes by Unicode's name, word boundaries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from fuse_index.expressions.errors import UnsupportedExpression

LINE_ENDS = "\n\r\x85\u2028\u2029"
_LINE_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
_MAX_CODE_POINT = 0x10FFFF
_MAX_REPEATS = 1000
"""More of them RE2 refuses."""
_MAX_PATTERN_LETTERS = 2000

_Ranges = list[tuple[int, int]]
_DIGITS: _Ranges = [(48, 57)]
_WORDS: _Ranges = [(48, 57), (65, 90), (95, 95), (97, 122)]
_BLANKS: _Ranges = [(9, 13), (32, 32)]
_CLASSES = {"d": _DIGITS, "w": _WORDS, "s": _BLANKS}
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}


@dataclass(frozen=True)
class JavaPattern:
    """A pattern as RE2 takes it. ``groups``: how many it captures. ``ends``: whether it says where the text ends."""

    regex: str
    groups: int
    can_be_empty: bool
    ends: bool

    @classmethod
    def parse(cls, text: str, capture: int | None = None) -> JavaPattern:
        """Read a pattern of Java; of its groups only ``capture`` is one, named ``found``, 0 being all of it.

        Raises UnsupportedExpression for what is not known to mean the same.
        """
        reader = _Reader(text, capture)
        regex, can_be_empty = reader.alternatives()
        if reader.place < len(text):
            raise reader.refused("an unmatched ')'")
        found = f"(?P<found>{regex})" if capture == 0 else regex
        return cls(f"(?s-i:{found})", reader.groups, can_be_empty, reader.ends > 0)


@dataclass
class _Reader:
    text: str
    capture: int | None
    place: int = 0
    groups: int = 0
    ends: int = 0
    ignore_case: bool = field(default=False)

    def __post_init__(self) -> None:
        if len(self.text) > _MAX_PATTERN_LETTERS:
            raise UnsupportedExpression(f"a pattern of {len(self.text):,} letters")
        if self.text.startswith("(?i)"):
            self.place, self.ignore_case = 4, True

    def refused(self, what: str) -> UnsupportedExpression:
        return UnsupportedExpression(f"the pattern {self.text!r}: {what} may mean something else to Java")

    def peek(self, length: int = 1) -> str:
        return self.text[self.place : self.place + length]

    def take(self) -> str:
        letter = self.peek()
        if not letter:
            raise self.refused("its end")
        self.place += 1
        return letter

    def alternatives(self) -> tuple[str, bool]:
        """Up to the end or a closing parenthesis; and whether the empty text is one of what it means."""
        found = [self.sequence()]
        while self.peek() == "|":
            self.place += 1
            found.append(self.sequence())
        return "|".join(regex for regex, _ in found), any(empty for _, empty in found)

    def sequence(self) -> tuple[str, bool]:
        parts, can_be_empty = [], True
        while self.peek() and self.peek() not in "|)":
            ends = self.ends
            regex, empty = self.repeated()
            if self.ends > ends and self.peek() and self.peek() not in "|)":
                raise self.refused("'$' before more")
            parts.append(regex)
            can_be_empty = can_be_empty and empty
        return "".join(parts), can_be_empty

    def repeated(self) -> tuple[str, bool]:
        start, groups, ends = self.place, self.groups, self.ends
        regex, empty = self.atom()
        repeat = self.repeat()
        if not repeat:
            return regex, empty
        if self.ends > ends or (self.capture is not None and groups < self.capture <= self.groups):
            raise self.refused(f"a repeat of {self.text[start : self.place]!r}")
        if empty:
            raise self.refused(f"{self.text[start : self.place]!r}, which repeats what may be empty,")
        return regex + repeat, repeat[0] in "*?" or repeat.startswith("{0")

    def repeat(self) -> str:
        letter = self.peek()
        if letter == "{":
            end = self.text.find("}", self.place)
            bounds = self.text[self.place + 1 : end].split(",")
            if (
                end < 0
                or len(bounds) > 2
                or not bounds[0].isdecimal()
                or not all(b.isdecimal() or not b for b in bounds)
            ):
                raise self.refused("a brace")
            if any(int(bound) > _MAX_REPEATS for bound in bounds if bound):
                raise self.refused(f"a repeat of more than {_MAX_REPEATS} times")
            repeat = self.text[self.place : end + 1]
            self.place = end + 1
        elif letter and letter in "*+?":
            repeat = self.take()
        else:
            return ""
        if self.peek() == "?":
            repeat += self.take()
        if self.peek() and self.peek() in "*+?{":
            raise self.refused("a repeat of a repeat")
        return repeat

    def atom(self) -> tuple[str, bool]:
        letter = self.take()
        match letter:
            case "(":
                return self.group()
            case "[":
                return _class(self.class_ranges()), False
            case ".":
                return f"[^{_LINE_ENDS}]", False
            case "^":
                return r"\A", True
            case "$":
                return self.end()
            case "\\":
                return self.escape()
            case "*" | "+" | "?" | "{":
                raise self.refused(f"{letter!r} after nothing")
            case _:
                return self.letter(letter), False

    def end(self) -> tuple[str, bool]:
        self.ends += 1
        return r"\z", True

    def group(self) -> tuple[str, bool]:
        if self.peek(2) == "?:":
            self.place += 2
            opening = "(?:"
        elif self.peek() == "?":
            raise self.refused(f"{self.peek(3)!r} in a group")
        else:
            self.groups += 1
            opening = "(?P<found>" if self.groups == self.capture else "(?:"
        regex, empty = self.alternatives()
        if self.take() != ")":
            raise self.refused("an unmatched '('")
        return f"{opening}{regex})", empty

    def escape(self) -> tuple[str, bool]:
        letter = self.take()
        if letter == "A":
            return r"\A", True
        if letter.lower() in _CLASSES:
            return _class(_named_class(letter)), False
        return self.letter(self.escaped(letter)), False

    def escaped(self, letter: str) -> str:
        if letter in _ESCAPED:
            return _ESCAPED[letter]
        if letter in "xu":
            digits = self.text[self.place : self.place + (2 if letter == "x" else 4)]
            try:
                code = int(digits, 16) if digits.isalnum() else -1
            except ValueError:
                code = -1
            if code < 0 or 0xD800 <= code < 0xE000:
                raise self.refused(f"'\\{letter}{digits}'")
            self.place += len(digits)
            return chr(code)
        if letter.isalnum() or letter > "~":
            raise self.refused(f"'\\{letter}'")
        return letter

    def letter(self, letter: str) -> str:
        return _class(self.both_cases([(ord(letter), ord(letter))]))

    def class_ranges(self) -> _Ranges:
        """A class up to its bracket."""
        negated = self.peek() == "^"
        self.place += negated
        ranges: _Ranges = []
        while self.peek() != "]" or not ranges:
            ranges += self.class_item()
        self.place += 1
        ranges = self.both_cases(ranges)
        return _complement(ranges) if negated else ranges

    def class_item(self) -> _Ranges:
        first = self.class_letter()
        if isinstance(first, list):
            return first
        if self.peek() != "-" or self.peek(2) in ("-]", "-"):
            return [(ord(first), ord(first))]
        self.place += 1
        last = self.class_letter()
        if isinstance(last, list) or last < first:
            raise self.refused("a range in a class")
        return [(ord(first), ord(last))]

    def class_letter(self) -> str | _Ranges:
        letter = self.take()
        if letter in "[]^" or (letter == "&" and self.peek() == "&"):
            raise self.refused(f"{letter!r} in a class")
        if letter != "\\":
            return letter
        escaped = self.take()
        return _named_class(escaped) if escaped.lower() in _CLASSES else self.escaped(escaped)

    def both_cases(self, ranges: _Ranges) -> _Ranges:
        """With the letters of ASCII in their other case, as Java's ``(?i)`` has it."""
        return [*ranges, *_other_cases(ranges)] if self.ignore_case else ranges


def _named_class(letter: str) -> _Ranges:
    found = _CLASSES[letter.lower()]
    return found if letter.islower() else _complement(found)


def _other_cases(ranges: _Ranges) -> Iterator[tuple[int, int]]:
    for low, high in ranges:
        for start, end, shift in ((65, 90, 32), (97, 122, -32)):
            if max(low, start) <= min(high, end):
                yield max(low, start) + shift, min(high, end) + shift


def _complement(ranges: _Ranges) -> _Ranges:
    found, start = [], 0
    for low, high in sorted(ranges):
        if low > start:
            found.append((start, low - 1))
        start = max(start, high + 1)
    return [*found, (start, _MAX_CODE_POINT)] if start <= _MAX_CODE_POINT else found


def _class(ranges: Sequence[tuple[int, int]]) -> str:
    if not ranges:
        return r"[^\x{0}-\x{10FFFF}]"
    return "[" + "".join(f"\\x{{{low:X}}}-\\x{{{high:X}}}" for low, high in ranges) + "]"
