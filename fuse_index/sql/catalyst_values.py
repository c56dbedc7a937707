"""What is computed of terms in the trees of Spark's planner: arithmetic, CASE, and what Spark has in their place.

Only in arguments of aggregates. A tree is understood where its type, and what it does on overflow, are those that the
session's own SQL has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow.types as is_

from fuse_index.expressions import types
from fuse_index.expressions.arithmetic import arithmetic_type, depends_on_ansi, negation
from fuse_index.expressions.errors import AnalysisError, UnsupportedExpression
from fuse_index.expressions.traversal import predicate_leaves
from fuse_index.predicate import Call, Case, IsNull, Literal, Not, Opaque, Predicate, Term
from fuse_index.reasons import Reason
from fuse_index.sql.catalyst_terms import CatalystTermReader, CatalystTree

_OPERATORS: Mapping[str, str] = {"Add": "+", "Subtract": "-", "Multiply": "*", "Divide": "/"}


class CatalystValueReader(CatalystTermReader):
    """Reads terms, and with ``arithmetic`` what is computed of them."""

    def predicate(self, tree: CatalystTree) -> Predicate:
        """The condition that a tree is."""
        raise NotImplementedError

    def term(self, tree: CatalystTree) -> Term:
        if self.arithmetic and tree["node"] in _VALUES:
            return _VALUES[tree["node"]](self, tree)
        return super().term(tree)

    def binary(self, tree: CatalystTree) -> Term:
        operator, operands = _OPERATORS[tree["node"]], tuple(self.term(child) for child in tree["children"])
        data_type = arithmetic_type(operator, *(operand.type for operand in operands))
        if data_type is None or data_type != types.type_from_spark_json(tree["type"]):
            raise UnsupportedExpression(reason=Reason.TYPE_MISMATCH)
        made = Call(operator, operands, data_type)
        if depends_on_ansi(made) and tree.get("evalMode") != ("ANSI" if self.context.ansi else "LEGACY"):
            raise UnsupportedExpression(reason=Reason.SESSION_SEMANTICS)
        return made

    def minus(self, tree: CatalystTree) -> Term:
        try:
            made = negation(self.term(tree["children"][0]))
        except AnalysisError:
            raise UnsupportedExpression from None
        if depends_on_ansi(made) and tree.get("failOnError") != self.context.ansi:
            raise UnsupportedExpression(reason=Reason.SESSION_SEMANTICS)
        return made

    def case(self, tree: CatalystTree) -> Term:
        parts: Sequence[CatalystTree] = tree["children"]
        branches, default = parts[: len(parts) // 2 * 2], parts[len(parts) // 2 * 2 :]
        values = [self.term(each) for each in (*branches[1::2], *default)]
        otherwise = [] if default else [Literal(None, values[0].type)]
        return _of_one_type([self._condition(each) for each in branches[::2]], [*values, *otherwise])

    def coalesce(self, tree: CatalystTree) -> Term:
        terms = [self.term(child) for child in tree["children"]]
        return _of_one_type([Not(IsNull(term)) for term in terms[:-1]], terms)

    def _condition(self, tree: CatalystTree) -> Predicate:
        condition = self.predicate(tree)
        if any(isinstance(leaf, Opaque) for leaf in predicate_leaves(condition)):
            raise UnsupportedExpression
        return condition


_VALUES: Mapping[str, Callable[[CatalystValueReader, CatalystTree], Term]] = {
    **dict.fromkeys(_OPERATORS, CatalystValueReader.binary),
    **dict.fromkeys(("CaseWhen", "If"), CatalystValueReader.case),
    "UnaryMinus": CatalystValueReader.minus,
    "Coalesce": CatalystValueReader.coalesce,
}


def _of_one_type(conditions: Sequence[Predicate], values: Sequence[Term]) -> Term:
    """The last value is that of ELSE."""
    *decided, otherwise = values
    if is_.is_nested(otherwise.type) or any(value.type != otherwise.type for value in decided):
        raise UnsupportedExpression(reason=Reason.TYPE_MISMATCH)
    return Case(tuple(zip(conditions, decided, strict=True)), otherwise)
