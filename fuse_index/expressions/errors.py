"""Errors of those who read and evaluate expressions; ``fuse_index/errors.py`` draws them among all others."""

from __future__ import annotations

from fuse_index.errors import FuseIndexError
from fuse_index.reasons import Reason


class NotReproducible(FuseIndexError, ValueError):
    """Spark may have a value where we are not sure which; the message says of what."""

    code = "NOT_REPRODUCIBLE"


class UnsupportedExpression(FuseIndexError):
    """An expression is well-formed, as far as we can tell, but only Spark knows what it means."""

    code = "UNSUPPORTED_EXPRESSION"

    def __init__(self, message: str = "", reason: Reason = Reason.LEAF_UNSUPPORTED) -> None:
        super().__init__(message)
        self.reason = reason


class UnsupportedAggregate(FuseIndexError, ValueError):
    """An aggregate is not known here, or Spark has none such; the message says why."""

    code = "UNSUPPORTED_AGGREGATE"


class SparkWouldRaise(FuseIndexError, ArithmeticError):
    """Spark raises, too, in an ANSI session; the message says on what."""

    code = "SPARK_WOULD_RAISE"


class AnalysisError(FuseIndexError, ValueError):
    """Spark refuses the expression before it reads a row; the message says why."""

    code = "ANALYSIS_ERROR"


class MalformedJson(FuseIndexError, ValueError):
    """A text is no JSON to Spark, which takes such a document for NULL."""

    code = "MALFORMED_JSON"
