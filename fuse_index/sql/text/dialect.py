"""Spark's dialect as the SQL parser is to read it: conditions only, and no function that the parser believes to know.

The parser's own dialect of Spark rewrites some calls (``match``, ``year``, ``contains``) to nodes with a meaning of its
own, and has keywords that Spark lets columns be called. Here every call stays a call, but a cast, and a word that is
not of the grammar of conditions is a name.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

from sqlglot import TokenType, exp
from sqlglot.dialects.spark import Spark

_GRAMMAR_WORDS = """
    all and any array as asymmetric at between by case cast char collate dec decimal distinct div else end escape except
    exists extract false from group having ilike in interval intersect is like map not null numeric on or over regexp
    rlike select some struct symmetric table then time true try_cast union unknown using values varchar when where with
    zone
"""
_TYPE_AND_UNIT_WORDS = """
    bigint binary boolean byte date day days double float hour hours int integer interval long microsecond microseconds
    millisecond milliseconds minute minutes month months quarter real second seconds short smallint string timestamp
    timestamp_ltz timestamp_ntz tinyint variant week weeks year years current_catalog current_database current_date
    current_time current_timestamp current_user localtimestamp
"""
_KEYWORDS = frozenset(f"{_GRAMMAR_WORDS} {_TYPE_AND_UNIT_WORDS}".split())


def _call(name: str, arguments: list[Any]) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=arguments)


def _parse_arguments(parser: Any, name: str, words: Sequence[str]) -> exp.Anonymous:
    """Arguments between commas, or between words: ``substring(name FROM 2 FOR 3)``."""
    arguments = parser._parse_csv(parser._parse_disjunction)  # noqa: SLF001  # a parser is extended so
    for word in words:
        if parser._match_text_seq(word):  # noqa: SLF001
            arguments.append(parser._parse_disjunction())  # noqa: SLF001
    return _call(name, arguments)


def _parse_trim(parser: Any) -> exp.Anonymous:
    """``trim(name)``, and ``trim(BOTH 'x' FROM name)``."""
    side = parser._prev.text.upper() if parser._match_texts(_TRIMS) else "BOTH"  # noqa: SLF001
    if parser._match_text_seq("FROM"):  # noqa: SLF001
        return _call(_TRIMS[side], [parser._parse_disjunction()])  # noqa: SLF001
    arguments = parser._parse_csv(parser._parse_disjunction)  # noqa: SLF001
    if parser._match_text_seq("FROM"):  # noqa: SLF001
        arguments.insert(0, parser._parse_disjunction())  # noqa: SLF001
        return _call(_TRIMS[side], arguments)
    return _call("trim", arguments)


_TRIMS = {"BOTH": "btrim", "LEADING": "ltrim", "TRAILING": "rtrim"}
_WORDS_BETWEEN_ARGUMENTS = {
    "SUBSTRING": ("FROM", "FOR"),
    "SUBSTR": ("FROM", "FOR"),
    "OVERLAY": ("PLACING", "FROM", "FOR"),
}


def _is_known(keyword: str) -> bool:
    """The keyword is a sign, or of known words."""
    return all(word.lower() in _KEYWORDS for word in keyword.split()) or not any(map(str.isalpha, keyword))


class SparkConditions(Spark):
    """Spark's dialect, for conditions."""

    class Tokenizer(Spark.Tokenizer):
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            **{keyword: token for keyword, token in Spark.Tokenizer.KEYWORDS.items() if _is_known(keyword)},
            "!<": TokenType.GTE,
            "!>": TokenType.LTE,
        }
        NUMERIC_LITERALS: ClassVar[dict[str, str]] = {}  # numbers with a suffix are marks of ours

    class Parser(Spark.Parser):  # type: ignore[valid-type, misc]
        COLON_IS_VARIANT_EXTRACT = True
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            **{name: Spark.Parser.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST", "EXTRACT")},
            **{
                name: partial(_parse_arguments, name=name.lower(), words=words)
                for name, words in _WORDS_BETWEEN_ARGUMENTS.items()
            },
            "TRIM": _parse_trim,
        }
        TERM: ClassVar[dict[TokenType, Any]] = {
            TokenType.PLUS: exp.Add,
            TokenType.DASH: exp.Sub,
            TokenType.DPIPE: exp.DPipe,
            TokenType.COLLATE: exp.Collate,
        }
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: Spark.Parser.NO_PAREN_FUNCTION_PARSERS[name] for name in ("ANY", "CASE")
        }

    class Generator(Spark.Generator):  # type: ignore[valid-type, misc]
        TYPE_MAPPING: ClassVar[dict[Any, str]] = {
            **Spark.Generator.TYPE_MAPPING,
            exp.DataType.Type.TIME: "TIME",  # a time of day, which Spark's dialect here takes for a TIMESTAMP
        }


SPARK_CONDITIONS = SparkConditions()
