"""Functions of Spark in trees of its planner, as the calls that people's SQL makes of them: for index kinds to know.

Nothing is evaluated by these, so that a class needs only to be the function of that name, of arguments in that order,
and deterministic. What a session makes of overflow and of zones it says beside (``Context``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fuse_index.expressions import types
from fuse_index.expressions.errors import UnsupportedExpression
from fuse_index.predicate import Call, Term
from fuse_index.sql.catalyst_terms import CatalystTree
from fuse_index.sql.catalyst_values import CatalystValueReader

_CLASS_BY_FUNCTION: Mapping[str, str] = {
    "rlike": "RLike",
    "regexp_extract": "RegExpExtract",
    "regexp_replace": "RegExpReplace",
    "array_contains": "ArrayContains",
    "arrays_overlap": "ArraysOverlap",
    "array_position": "ArrayPosition",
    "array_max": "ArrayMax",
    "array_min": "ArrayMin",
    "array_join": "ArrayJoin",
    "sort_array": "SortArray",
    "size": "Size",
    "element_at": "ElementAt",
    "map_keys": "MapKeys",
    "map_values": "MapValues",
    "map_value": "GetMapValue",
    "[]": "GetArrayItem",
    "substring": "Substring",
    "substring_index": "SubstringIndex",
    "concat": "Concat",
    "concat_ws": "ConcatWs",
    "instr": "StringInstr",
    "locate": "StringLocate",
    "btrim": "StringTrim",
    "ltrim": "StringTrimLeft",
    "rtrim": "StringTrimRight",
    "lpad": "StringLPad",
    "rpad": "StringRPad",
    "repeat": "StringRepeat",
    "replace": "StringReplace",
    "translate": "StringTranslate",
    "reverse": "Reverse",
    "initcap": "InitCap",
    "levenshtein": "Levenshtein",
    "ascii": "Ascii",
    "octet_length": "OctetLength",
    "bit_length": "BitLength",
    "hex": "Hex",
    "md5": "Md5",
    "sha1": "Sha1",
    "sha2": "Sha2",
    "crc32": "Crc32",
    "hash": "Murmur3Hash",
    "xxhash64": "XxHash64",
    "abs": "Abs",
    "sign": "Signum",
    "sqrt": "Sqrt",
    "exp": "Exp",
    "ln": "Log",
    "pow": "Pow",
    "pmod": "Pmod",
    "greatest": "Greatest",
    "least": "Least",
    "quarter": "Quarter",
    "dayofweek": "DayOfWeek",
    "dayofyear": "DayOfYear",
    "weekofyear": "WeekOfYear",
    "weekday": "WeekDay",
    "hour": "Hour",
    "minute": "Minute",
    "second": "Second",
    "last_day": "LastDay",
    "date_add": "DateAdd",
    "date_sub": "DateSub",
    "datediff": "DateDiff",
    "add_months": "AddMonths",
    "%": "Remainder",
    "div": "IntegralDivide",
    "&": "BitwiseAnd",
    "|": "BitwiseOr",
    "^": "BitwiseXor",
    "~": "BitwiseNot",
}
_FUNCTION_BY_CLASS: Mapping[str, str] = {node: name for name, node in _CLASS_BY_FUNCTION.items()}
_DEPEND_ON_ZONE = frozenset({"Hour", "Minute", "Second"})


class CatalystCallReader(CatalystValueReader):
    """Reads terms, arithmetic, and calls of functions that nobody evaluates here."""

    def term(self, tree: CatalystTree) -> Term:
        name = _FUNCTION_BY_CLASS.get(tree["node"])
        if name is None:
            return super().term(tree)
        data_type = types.type_from_spark_json(tree["type"])
        if data_type is None or (tree["node"] in _DEPEND_ON_ZONE and tree["zone"] != self.context.time_zone):
            raise UnsupportedExpression
        children: Sequence[CatalystTree] = tree["children"]
        return Call(name, tuple(self.term(child) for child in children), data_type)
