"""Functions that plugins bring to conditions: what they mean, and what Spark and indexes may know of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from fuse_index.expressions.coercion import coerce_term
from fuse_index.expressions.errors import AnalysisError
from fuse_index.expressions.types import spark_type_name
from fuse_index.predicate import Call, Context, Leaf, Literal, Term


@dataclass(frozen=True)
class Function:
    """A function for conditions, values and Spark SQL: boolean, or of the type that it ``returns``.

    ``evaluate`` is its oracle: from Arrow arrays (constants as scalars, but never all of them) to an array. An argument
    type of None takes any. The last ``optional`` arguments may be left out, and are then not given to it. ``constants``
    are the numbers of arguments that must be constants other than NULL. ``check``, from the values of all arguments
    (None for what is no constant), raises ValueError for what makes no sense: so that a mistake is said before a row is
    read.

    ``native``: from the arguments, each a ``Literal`` or the SQL text that stands for it, to Spark SQL text of the same
    meaning, or None where Spark cannot say it; then ``narrows`` may give, likewise, a plainer condition that is true
    wherever the function is and NULL where it is NULL, so that fewer rows go to Python. ``implies``: leaves that are
    true on every row on which the call is true, so that other indexes can vote on them.
    """

    name: str
    argument_types: tuple[pa.DataType | None, ...]
    evaluate: Callable[..., pa.Array]
    native: Callable[..., str | None] | None = None
    implies: Callable[[Call], Sequence[Leaf]] | None = None
    null_on_null: bool = True
    """NULL exactly where an argument is NULL; otherwise the engine takes "may be NULL" as possible."""
    optional: int = 0
    constants: frozenset[int] = frozenset()
    check: Callable[..., None] | None = None
    narrows: Callable[..., str | None] | None = None
    returns: pa.DataType = pa.bool_()
    recall: int | None = None
    """The number of the argument that says which share of the first rows is enough for an order by the function."""
    version: int = 1
    """To be raised when the function means something else: indexes on it are then built anew."""


def build_call(function: Function, arguments: Sequence[Term], context: Context) -> Call:
    """The call, its arguments as the function's own types.

    Raises AnalysisError, saying what is wrong with which argument, and NotReproducible.
    """
    most, least = len(function.argument_types), len(function.argument_types) - function.optional
    if not least <= len(arguments) <= most:
        takes = f"{most} argument{'s' * (most != 1)}" if least == most else f"{least} to {most} arguments"
        raise AnalysisError(f"{function.name}() takes {takes}, not {len(arguments)}")
    made = [_argument(function, number, term, context) for number, term in enumerate(arguments)]
    if function.check is not None:
        try:
            function.check(*(term.value if isinstance(term, Literal) else None for term in made))
        except ValueError as wrong:
            raise AnalysisError(f"{function.name}(): {wrong}") from None
    return Call(function.name, tuple(made), function.returns)


def _argument(function: Function, number: int, term: Term, context: Context) -> Term:
    data_type = function.argument_types[number]
    made = term
    if data_type is not None:
        try:
            made = coerce_term(term, data_type, context)
        except AnalysisError as refusal:
            raise AnalysisError(
                f"{function.name}(): argument {number + 1} must be {spark_type_name(data_type)}: {refusal}"
            ) from None
    if number in function.constants and (not isinstance(made, Literal) or made.value is None):
        raise AnalysisError(f"{function.name}(): argument {number + 1} must be a constant, and not NULL")
    return made
