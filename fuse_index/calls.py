"""Calls of functions that plugins bring: which arguments they take, as every way of asking checks it.

Sits between the readers of conditions (``where.py``, ``spark/functions.py``) and ``plugin.Function``. Knows no SQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fuse_index.coercion import Refused, converted
from fuse_index.predicate import Call, Context, Literal, Term
from fuse_index.spark_types import name_of

if TYPE_CHECKING:
    from fuse_index.plugin import Function


def call(function: Function, arguments: Sequence[Term], context: Context) -> Call:
    """The call, its arguments as the function's own types. Raises Refused, saying what is wrong with which; Unsure."""
    most, least = len(function.argument_types), len(function.argument_types) - function.optional
    if not least <= len(arguments) <= most:
        takes = f"{most} argument{'s' * (most != 1)}" if least == most else f"{least} to {most} arguments"
        raise Refused(f"{function.name}() takes {takes}, not {len(arguments)}")
    made = [_argument(function, number, term, context) for number, term in enumerate(arguments)]
    if function.check is not None:
        try:
            function.check(*(term.value if isinstance(term, Literal) else None for term in made))
        except ValueError as wrong:
            raise Refused(f"{function.name}(): {wrong}") from None
    return Call(function.name, tuple(made))


def _argument(function: Function, number: int, term: Term, context: Context) -> Term:
    kind = function.argument_types[number]
    try:
        made = converted(term, kind, context)
    except Refused as refusal:
        raise Refused(f"{function.name}(): argument {number + 1} must be {name_of(kind)}: {refusal}") from None
    if number in function.constants and (not isinstance(made, Literal) or made.value is None):
        raise Refused(f"{function.name}(): argument {number + 1} must be a constant, and not NULL")
    return made
