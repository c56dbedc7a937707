"""Trees of JSON to text, as Jackson writes it in ``get_json_object``.

What Java's versions write in different ways raises ``NotReproducible``, unless the caller can do with either.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any

from fuse_index.expressions.errors import NotReproducible
from fuse_index.expressions.json.reader import Float, Members

_BEYOND_BMP = re.compile("[\U00010000-\U0010ffff]")
_CONTROL = re.compile(r'[\x00-\x1f"\\]')
_SHORT_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def write_json(value: Any, sure: bool = True) -> str:
    """A value as Jackson writes it.

    Raises NotReproducible for what has two spellings (some floats, and emojis), unless it need not be ``sure``.
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
    """Every Java writes the number with the fewest digits: before Java 19, some very large and small ones had more."""
    return not number or 1e-3 <= abs(number) < 1e15


def quoted(text: str) -> str:
    """A text in quotes, every letter beyond the first 65,536 as it is."""
    return f'"{_escaped(text, sure=False)}"'


def _escaped(text: str, sure: bool) -> str:
    if sure and _BEYOND_BMP.search(text):
        raise NotReproducible("a letter beyond the first 65,536, which Jackson writes in two ways")
    return _CONTROL.sub(lambda found: _SHORT_ESCAPES.get(found[0]) or f"\\u{ord(found[0]):04X}", text)
