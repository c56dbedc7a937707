"""How large the values of a term can be, by those of its columns: whether a sum of it can overflow.

Arrays of float64 hold one number for each block, NaN where nothing is known; bounds are rounded, so that whoever
compares them leaves a margin.

>>> price, discount = Column(("price",), pa.decimal128(15, 2)), Column(("discount",), pa.decimal128(15, 2))
>>> net = Call("-", (Literal(1, pa.decimal128(1, 0)), discount), pa.decimal128(16, 2))
>>> largest = {price: np.array([500.0, np.nan]), discount: np.array([0.1, 0.1])}
>>> net_price = Call("*", (price, net), pa.decimal128(32, 4))
>>> [f"{each:.4g}" for each in largest_values(net_price, largest.__getitem__)]
['550', '1.1e+13']
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as is_

from fuse_index.expressions.coercion import INTEGER_TYPES
from fuse_index.predicate import Call, Case, Cast, Column, Literal, Term

_Numbers = npt.NDArray[np.float64]


def largest_value(data_type: pa.DataType) -> int:
    """The largest absolute value of an integer or decimal type, in units of its last digit."""
    return int(10**data_type.precision - 1 if is_.is_decimal(data_type) else 1 << data_type.bit_width - 1)


def units_per_one(data_type: pa.DataType) -> float:
    """How many units of its last digit make one."""
    return float(10.0**data_type.scale) if is_.is_decimal(data_type) else 1.0


def largest_values(term: Term, of_column: Callable[[Column], _Numbers]) -> _Numbers:
    """The largest absolute value of an integer or decimal term in each of n blocks.

    As float64, shape (n,), or () if it is alike in all. ``of_column`` gives those of a column. What overflows on the
    way is NULL, raises or wraps: no value is larger than the largest of its type.
    """
    limit = _largest_of_type(term.type)
    found = np.asarray(_unbounded(term, of_column), np.float64)
    return np.asarray(np.where(found <= limit, found, limit), np.float64)  # also in the place of NaN


def _unbounded(term: Term, of_column: Callable[[Column], _Numbers]) -> _Numbers | float:
    match term:
        case Column():
            return of_column(term)
        case Literal(value):
            return 0.0 if value is None else abs(float(value))
        case Cast(inner) if _is_bounded(inner.type):
            return largest_values(inner, of_column) + 1.0  # it may be rounded
        case Call("+" | "-" | "*" as operator, operands) if all(_is_bounded(each.type) for each in operands):
            first, *others = (largest_values(operand, of_column) for operand in operands)
            return reduce(np.multiply if operator == "*" else np.add, others, first)
        case Case(branches, otherwise):
            values = [value for _, value in branches]
            return reduce(np.maximum, (largest_values(each, of_column) for each in (*values, otherwise)))
        case _:
            return float("nan")


def _is_bounded(data_type: pa.DataType) -> bool:
    return data_type in INTEGER_TYPES or is_.is_decimal(data_type)


def _largest_of_type(data_type: pa.DataType) -> float:
    return largest_value(data_type) / units_per_one(data_type)
