"""Calls of functions in the Spark SQL that people type: of plugins, of Spark's own, of those that are other terms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce

import pyarrow as pa
from sqlglot import exp

from fuse_index.expressions import coercion, types
from fuse_index.expressions.errors import AnalysisError, UnsupportedExpression
from fuse_index.expressions.function import build_call
from fuse_index.expressions.functions.intervals import TimeInterval
from fuse_index.expressions.functions.library import LIBRARY, OTHER_NAMES, UNNAMED, near_names
from fuse_index.expressions.scalar_functions import DATE_TRUNC, DATE_TRUNC_UNITS, FUNCTION_SYNONYMS, SCALAR_FUNCTIONS
from fuse_index.expressions.traversal import predicate_leaves
from fuse_index.expressions.types import is_compound, spark_type_name
from fuse_index.predicate import Call, Case, IsNull, JsonPath, Literal, Not, Opaque, Predicate, Term
from fuse_index.sql.text.parser_terms import SqlNode, SqlTermReader
from fuse_index.sql.text.variant_terms import type_named, variant_value
from fuse_storage import SPARK_TYPES_BY_NAME, VARIANT

_DATE, _TIMESTAMP, _NTZ = pa.date32(), pa.timestamp("us", "UTC"), pa.timestamp("us")
_CAST_FUNCTIONS = frozenset(SPARK_TYPES_BY_NAME.keys() | {"decimal"}) - {"variant"}
"""Functions that are casts, named after their type."""
_CLOCK_FUNCTIONS: Mapping[str, pa.DataType] = {
    "now": _TIMESTAMP,
    "current_timestamp": _TIMESTAMP,
    "current_date": _DATE,
    "curdate": _DATE,
    "localtimestamp": _NTZ,
}
_PARTS: Mapping[str, str] = {
    **dict.fromkeys(("year", "y", "years", "yr", "yrs"), "year"),
    **dict.fromkeys(("quarter", "qtr"), "quarter"),
    **dict.fromkeys(("month", "mon", "mons", "months"), "month"),
    **dict.fromkeys(("week", "w", "weeks"), "weekofyear"),
    **dict.fromkeys(("day", "d", "days"), "day"),
    **dict.fromkeys(("dayofweek", "dow"), "dayofweek"),
    "doy": "dayofyear",
    "yearofweek": "yearofweek",
    **dict.fromkeys(("hour", "h", "hours", "hr", "hrs"), "hour"),
    **dict.fromkeys(("minute", "m", "min", "mins", "minutes"), "minute"),
    **dict.fromkeys(("second", "s", "sec", "seconds", "secs"), "seconds_with_fraction"),
}
"""What ``extract`` takes of a day or an instant, and the function that does."""
_PREDICATES = frozenset(
    {"startswith", "endswith", "contains", "like", "ilike", "isnull", "isnotnull", "isnan", "equal_null"}
)
"""Functions that are conditions."""


class SqlCallReader(SqlTermReader):
    """Reads terms, and calls."""

    def predicate(self, node: SqlNode) -> Predicate:
        """The condition that a node is, as ``SqlReader`` reads it."""
        raise NotImplementedError

    def term(self, node: SqlNode) -> Term:
        match node:
            case exp.Anonymous():
                return self._function(*self.call(node))
            case exp.CurrentDate() if not node.args.get("this"):
                return self._clock("current_date")
            case exp.CurrentTimestamp() if not node.args.get("this"):
                return self._clock("now")
            case exp.Extract():
                return self._part(node.this.name, self.term(node.expression))
            case _:
                return super().term(node)

    def _function(self, name: str, arguments: Sequence[SqlNode]) -> Term:
        if (function := self.functions.get(name)) is not None:
            return build_call(function, [self.folded(argument) for argument in arguments], self.context)
        if name in _CAST_FUNCTIONS and len(arguments) == 1:
            data_type = types.type_from_spark_name(name)
            return coercion.coerce_term(self.term(arguments[0]), data_type, self.context)
        if (special := self._special(name, arguments)) is not None:
            return special
        found = FUNCTION_SYNONYMS.get(name, name)
        if found in SCALAR_FUNCTIONS:
            return self._scalar(found, self.term(*self._counted(name, arguments, 1)))
        if (listed := LIBRARY.get(OTHER_NAMES.get(name, name))) is not None and name not in UNNAMED:
            return listed.build([self.folded(argument) for argument in arguments], self.context)
        near = near_names(name, (*self.functions, *_CONDITIONALS, *FUNCTION_SYNONYMS, *SCALAR_FUNCTIONS, *_PREDICATES))
        raise UnsupportedExpression(f"function {name!r} is not known here{f'; did you mean {near}?' if near else ''}")

    def _special(self, name: str, arguments: Sequence[SqlNode]) -> Term | None:
        """A function that is another term, or whose arguments are no terms; None for any other."""
        match name, arguments:
            case ("get_json_object", [document, path]):
                return JsonPath(self.text(document), self.constant(path, "a path"))
            case (("variant_get" | "try_variant_get"), [variant, path, *as_type]) if len(as_type) <= 1:
                data_type = type_named(self.constant(as_type[0], "a type")) if as_type else VARIANT
                tries = name == "try_variant_get"
                return variant_value(self.term(variant), self.constant(path, "a path"), data_type, tries)
            case ("date_trunc", [unit, moment]):
                return self._date_trunc(self.constant(unit, "the unit of date_trunc"), self.term(moment))
            case (("date_part" | "datepart"), [part, moment]):
                return self._part(self.constant(part, "the part of date_part"), self.term(moment))
            case ("position", [exp.In(this=part, args={"field": text})]):
                return self._function("locate", [part, text])
            case (("timestampadd" | "dateadd" | "date_add"), [unit, count, moment]):
                return self._add(unit, count, moment)
            case (("timestampdiff" | "datediff" | "date_diff"), [unit, start, end]):
                parts = (self.term(start), self.term(end))
                return LIBRARY["timestampdiff"].build([Literal(self._unit(unit), pa.string()), *parts], self.context)
            case ("typeof", [value]):
                return Literal(spark_type_name(self.term(value).type), pa.string())
            case _ if name in _CLOCK_FUNCTIONS and not arguments:
                return self._clock(name)
            case _ if name in _PREDICATES:
                return self.truth_of(exp.Anonymous(this=name, expressions=list(arguments)))
            case _ if name in _CONDITIONALS:
                return _CONDITIONALS[name](self, arguments)
        return None

    # --- functions of the clock and the calendar ------------------------------------------------------------------

    def _clock(self, name: str) -> Literal:
        if self.moment is None:
            raise UnsupportedExpression(f"{name}() where values are kept, since it is another one tomorrow")
        found = coercion.coerce_term(Literal(self.moment, _TIMESTAMP), _CLOCK_FUNCTIONS[name], self.context)
        assert isinstance(found, Literal)  # of a literal, a literal is made
        return found

    def _part(self, part: str, moment: Term) -> Term:
        if part.lower() not in _PARTS:
            raise UnsupportedExpression(f"extract() of {part!r}: its parts are {', '.join(_PARTS)}")
        name = _PARTS[part.lower()]
        return self._scalar(name, moment) if name in SCALAR_FUNCTIONS else LIBRARY[name].build([moment], self.context)

    def _unit(self, node: SqlNode) -> str:
        if not isinstance(node, exp.Column | exp.Var):
            raise UnsupportedExpression(f"the unit {self.original_text(node)}: say a word such as DAY")
        return str(node.name)

    def _add(self, unit: SqlNode, count: SqlNode, moment: SqlNode) -> Term:
        number = self.folded(count)
        if not isinstance(number, Literal) or not isinstance(number.value, int):
            raise UnsupportedExpression("timestampadd() of a number that is no constant")
        start = self.term(moment)
        if start.type in (_DATE, pa.string()):
            start = coercion.coerce_term(start, _TIMESTAMP, self.context)
        return TimeInterval.of(number.value, self._unit(unit)).after(start, self.context)

    def _date_trunc(self, unit: str, argument: Term) -> Call:
        found = DATE_TRUNC_UNITS.get(unit.upper())
        if found is None:
            raise UnsupportedExpression(
                f"date_trunc knows no unit {unit!r}: use one of {', '.join(sorted(set(DATE_TRUNC_UNITS.values())))}"
            )
        return Call(
            DATE_TRUNC,
            (Literal(found, pa.string()), coercion.coerce_term(argument, _TIMESTAMP, self.context)),
            _TIMESTAMP,
        )

    def _scalar(self, name: str, argument: Term) -> Term:
        if name == "length" and argument.type == pa.binary():
            return LIBRARY["octet_length"].build([argument], self.context)
        if is_compound(argument.type) or argument.type == pa.binary():
            raise UnsupportedExpression(f"{name} of {spark_type_name(argument.type)}")
        return Call(
            name,
            (coercion.coerce_term(argument, SCALAR_FUNCTIONS[name].argument_type, self.context),),
            SCALAR_FUNCTIONS[name].result_type,
        )

    # --- functions that are a CASE --------------------------------------------------------------------------------

    def truth_of(self, node: SqlNode) -> Term:
        """A condition as a value."""
        condition = self.condition(node)
        boolean = pa.bool_()
        return Case(
            ((condition, Literal(True, boolean)), (Not(condition), Literal(False, boolean))), Literal(None, boolean)
        )

    def condition(self, node: SqlNode) -> Predicate:
        """The condition that a node is. Raises UnsupportedExpression for one that only Spark understands."""
        condition = self.predicate(node)
        if unknown := [leaf for leaf in predicate_leaves(condition) if isinstance(leaf, Opaque)]:
            raise UnsupportedExpression(unknown[0].hint or unknown[0].sql)
        return condition

    def of_one_type(self, conditions: Sequence[Predicate], values: Sequence[Term]) -> Case:
        """The CASE of these conditions; the last value is that of ELSE. Raises AnalysisError, NotReproducible."""
        found = {value.type for value in values} - {pa.null()}
        if not found or (pa.string() in found and len(found) > 1) or any(map(is_compound, found)):
            raise UnsupportedExpression(
                "CASE of text beside values of other types, of values that have parts, or of nothing but NULL"
            )
        data_type = reduce(lambda a, b: coercion.common_type(a, b, self.context), (value.type for value in values))
        *decided, otherwise = [coercion.coerce_term(value, data_type, self.context) for value in values]
        return Case(tuple(zip(conditions, decided, strict=True)), otherwise)

    def build_if(self, arguments: Sequence[SqlNode]) -> Term:
        condition, value, other = self._counted("if", arguments, 3)
        return self.of_one_type([self.condition(condition)], [self.term(value), self.term(other)])

    def build_coalesce(self, arguments: Sequence[SqlNode]) -> Term:
        terms = [self.term(argument) for argument in arguments]
        if not terms:
            raise UnsupportedExpression("coalesce() of nothing")
        return self.of_one_type([Not(IsNull(term)) for term in terms[:-1]], terms)

    def build_nvl2(self, arguments: Sequence[SqlNode]) -> Term:
        tested, value, other = self._counted("nvl2", arguments, 3)
        return self.of_one_type([Not(IsNull(self.term(tested)))], [self.term(value), self.term(other)])

    def build_nullif(self, arguments: Sequence[SqlNode]) -> Term:
        value, other = self._counted("nullif", arguments, 2)
        equal = self.condition(exp.EQ(this=value, expression=other))
        return self.of_one_type([equal], [Literal(None, pa.null()), self.term(value)])

    def build_zero_if_null(self, arguments: Sequence[SqlNode]) -> Term:
        (value,) = self._counted("zeroifnull", arguments, 1)
        return self.build_coalesce([value, exp.Literal.number(0)])

    def build_null_if_zero(self, arguments: Sequence[SqlNode]) -> Term:
        (value,) = self._counted("nullifzero", arguments, 1)
        return self.build_nullif([value, exp.Literal.number(0)])

    def build_decode(self, arguments: Sequence[SqlNode]) -> Term:
        """``decode(value, search, result, …, default)``, to which NULL equals NULL."""
        if len(arguments) < 3:
            raise UnsupportedExpression("decode() of bytes in a character set")
        value, *rest = arguments
        pairs, default = rest[: len(rest) // 2 * 2], rest[len(rest) // 2 * 2 :]
        tests = [self.condition(exp.NullSafeEQ(this=value, expression=search)) for search in pairs[::2]]
        otherwise = self.term(default[0]) if default else Literal(None, pa.null())
        return self.of_one_type(tests, [*(self.term(each) for each in pairs[1::2]), otherwise])

    def _counted(self, name: str, arguments: Sequence[SqlNode], count: int) -> Sequence[SqlNode]:
        if len(arguments) != count:
            raise AnalysisError(f"{name}() takes {count} argument{'s' * (count != 1)}, not {len(arguments)}")
        return arguments


_CONDITIONALS: Mapping[str, Callable[[SqlCallReader, Sequence[SqlNode]], Term]] = {
    "if": SqlCallReader.build_if,
    **dict.fromkeys(("coalesce", "nvl", "ifnull"), SqlCallReader.build_coalesce),
    "nvl2": SqlCallReader.build_nvl2,
    "nullif": SqlCallReader.build_nullif,
    "zeroifnull": SqlCallReader.build_zero_if_null,
    "nullifzero": SqlCallReader.build_null_if_zero,
    "decode": SqlCallReader.build_decode,
}
