"""Functions of Java's mathematical library. Their last digits differ between libraries, but for square roots.

So a comparison with a constant is answered where no such difference decides it, and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from fuse_index.expressions.errors import NotReproducible
from fuse_index.expressions.functions.signature import DOUBLE, SparkFunction, argument, by_row, check_count
from fuse_index.predicate import Call, Context, Term

_DOUBTFUL_STEPS = 4
"""Doubles by which Java's values and ours may differ: each library errs by less than one, a quotient of two by more."""
_WHOLE_ARE_EXACT = frozenset({"log10", "pow"})
"""Functions whose whole results Java promises to be exact."""


def _guarded(function: Callable[..., float], defined: Callable[..., bool]) -> Callable[..., float | None]:
    """NULL where Spark gives NULL, NaN where Java does, an infinity where the value is too large for a double."""

    def value(*numbers: float) -> float | None:
        if not defined(*numbers):
            return None
        if any(map(math.isnan, numbers)):
            return math.nan
        try:
            return function(*numbers)
        except OverflowError:
            raise NotReproducible(f"the value of {numbers} is too large") from None
        except ValueError:
            return math.nan

    return value


def _everywhere(*_: float) -> bool:
    return True


_APPROXIMATE: Mapping[str, tuple[Callable[..., float], Callable[..., bool]]] = {
    "exp": (math.exp, _everywhere),
    "expm1": (math.expm1, _everywhere),
    "ln": (math.log, lambda x: not x <= 0),
    "log10": (math.log10, lambda x: not x <= 0),
    "log2": (math.log2, lambda x: not x <= 0),
    "log1p": (math.log1p, lambda x: not x <= -1),
    "cbrt": (math.cbrt, _everywhere),
    "sin": (math.sin, _everywhere),
    "cos": (math.cos, _everywhere),
    "tan": (math.tan, _everywhere),
    "asin": (math.asin, _everywhere),
    "acos": (math.acos, _everywhere),
    "atan": (math.atan, _everywhere),
    "sinh": (math.sinh, _everywhere),
    "cosh": (math.cosh, _everywhere),
    "tanh": (math.tanh, _everywhere),
    "degrees": (math.degrees, _everywhere),
    "radians": (math.radians, _everywhere),
}


def _approximate(name: str, value: Callable[..., float | None], count: int = 1) -> SparkFunction:
    return replace(by_row(name, [DOUBLE] * count, DOUBLE, value), approximate=True)


def _power(base: float, exponent: float) -> float:
    if math.isinf(base) or math.isinf(exponent) or base == 0 or exponent == 0:
        raise NotReproducible(f"pow({base!r}, {exponent!r})")
    return math.pow(base, exponent)


def _build_log(terms: Sequence[Term], context: Context) -> Term:
    """``log(x)`` is ``ln(x)``, and ``log(base, x)`` of two numbers."""
    check_count("log", terms, 1, 2)
    name = "ln" if len(terms) == 1 else "log"
    made = tuple(argument("log", number, term, DOUBLE, context) for number, term in enumerate(terms))
    return Call(name, made, DOUBLE)


def _square_root(value: float) -> float:
    return math.sqrt(value) if value >= 0 or math.isnan(value) else math.nan


_log = _guarded(lambda base, x: math.log(x) / math.log(base), lambda base, x: not (base <= 0 or x <= 0 or base == 1))


MATHEMATICAL_FUNCTIONS: Sequence[SparkFunction] = (
    by_row("sqrt", [DOUBLE], DOUBLE, _square_root),
    *(_approximate(name, _guarded(*found)) for name, found in _APPROXIMATE.items()),
    _approximate("pow", _guarded(_power, _everywhere), 2),
    _approximate("hypot", _guarded(math.hypot, _everywhere), 2),
    _approximate("atan2", _guarded(math.atan2, _everywhere), 2),
    SparkFunction(
        "log", _build_log, lambda call, columns, evaluation: evaluation.by_row(_log, columns, DOUBLE), approximate=True
    ),
)


def nearby(name: str, values: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The least and the greatest double that Java may have where that function is one of these here, one a value."""
    least, greatest = [], []
    for value in values.to_pylist():
        low = high = value
        is_exact = value is None or not math.isfinite(value) or (value == 0 and name not in ("exp", "pow"))
        for _ in range(0 if is_exact or (name in _WHOLE_ARE_EXACT and value == round(value)) else _DOUBTFUL_STEPS):
            low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
        least.append(low)
        greatest.append(high)
    return pa.array(least, DOUBLE), pa.array(greatest, DOUBLE)
