"""Errors on their way from Python to the JVM: as values, of which the JVM makes errors of Spark's classes.

In: what a request raised. Out: JSON with its ``code``, the ``condition`` and ``sqlState`` by which handlers in SQL know
it, the ``message`` in the words of a statement, and the ``advice`` in it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException, PythonException

from fuse_index.errors import InputError
from fuse_storage import EXTERNAL_ERROR, CodedError, Words

_logger = logging.getLogger("fuse_index.spark")
_PREFIX = "FUSE_"
"""What our codes are preceded by in Spark, whose list of conditions is one for all."""
NO_TABLE = "TABLE_OR_VIEW_NOT_FOUND"
"""Spark's condition for a table that is not there."""
SQL_STATES: Mapping[str, str] = {
    # Those of the standard and of PostgreSQL, where there are some.
    "STORAGE_ERROR": "58030",
    "NOT_FOUND": "42704",
    "ALREADY_EXISTS": "42710",
    "NOT_EMPTY": "2BP01",
    "CONFLICT": "40001",
    "COMMIT_UNKNOWN": "08007",
    "EXPIRED": "25P04",
    "TAIL_FULL": "53400",
    "SCHEMA_MISMATCH": "42804",
    "INVALID_ARGUMENT": "22023",
    "REPEATED_KEY": "23505",
    "READ_ONLY": "25006",
    "FORMAT_ERROR": "22P04",
    "CORRUPT": "58P02",
    "UNSUPPORTED": "0A000",
    "INVALID_CONDITION": "42601",
    "INVALID_INDEX": "42P17",
    "INVALID_INPUT": "22000",
    "INVALID_OPTION": "42616",
    "INVALID_FILE": "58P01",
    "STREAM_BROKEN": "55000",
    "INDEX_FAULT": "38000",
    "MALFORMED_JSON": "22032",
    "SPARK_NOT_INSTALLED": "0A001",
    # Our own, in classes of the standard.
    "ENGINE_ERROR": "58KF0",
    "OPAQUE_CONDITION": "0AKF1",
    "INVALID_TERM": "42KF1",
    "BUILD_STOPPED": "58KF1",
    "NOT_REPRODUCIBLE": "0AKF2",
    "UNSUPPORTED_EXPRESSION": "0AKF3",
    "UNSUPPORTED_AGGREGATE": "0AKF4",
    "SPARK_WOULD_RAISE": "22KF1",
    "ANALYSIS_ERROR": "42KF2",
    "NOT_NATIVE": "0AKF5",
    "LEFT_TO_EXECUTORS": "0AKF6",
    "VOTES_ONLY": "0AKF7",
    EXTERNAL_ERROR: "58000",
}
"""The SQLSTATE of each code: each has one of its own, by which a handler in a script catches it and nothing else."""


def add_conditions(bridge: Any) -> None:
    """Have the JVM of a ``Bridge`` know our conditions, so that handlers of scripts can name them."""
    conditions = {
        _PREFIX + code: {"message": ["<errorMessage>"], "sqlState": state} for code, state in SQL_STATES.items()
    }
    try:
        bridge.addConditions(json.dumps(conditions))
    except Py4JError as refusal:  # a Spark that keeps them elsewhere: handlers name states then
        _logger.info("handlers of scripts know errors by SQLSTATE alone: %s", refusal)


class SparkCondition(Exception):
    """An error of ours for which Spark has a condition, by which statements and handlers know it."""

    def __init__(self, condition: str, error: CodedError) -> None:
        super().__init__(str(error))
        self.condition, self.error = condition, error


def refusal(failure: PySparkException, told: str) -> Exception:
    """What Spark refused, in these words and under Spark's condition. What a function in Python raised has ours."""
    refused = InputError(told)
    if isinstance(failure, PythonException) or failure.getSqlState() is None:  # of a function that may be ours
        return refused
    return SparkCondition(failure.getCondition() or "", refused)


def encode_failure(raised: BaseException, words: Words | None = None, condition: str | None = None) -> str:
    """An error as JSON for the JVM. ``condition``: one of Spark's, where its statements know the error by that."""
    if isinstance(raised, Py4JJavaError):
        return json.dumps(_from_jvm(raised))
    if isinstance(raised, SparkCondition):
        return encode_failure(raised.error, words, raised.condition)
    code = raised.code if isinstance(raised, CodedError) else EXTERNAL_ERROR
    told = raised.spell(words or Words()) if isinstance(raised, CodedError) else f"{type(raised).__name__}: {raised}"
    advice = [each.to_dict() for each in raised.advice] if isinstance(raised, CodedError) else []
    failure = {"code": code, "condition": condition or _PREFIX + code, "message": told, "advice": advice}
    return json.dumps(failure if condition else failure | {"sqlState": SQL_STATES[code]})


def _from_jvm(failure: Py4JJavaError) -> dict[str, Any]:
    """What went wrong in the JVM, in one line: what Spark has a condition for, or what happened first."""
    cause = failure.java_exception
    while cause.getCause() is not None and not str(cause.getMessage()).startswith("["):
        cause = cause.getCause()
    told = {"code": EXTERNAL_ERROR, "message": str(cause.getMessage() or cause.toString()).strip().split("\n")[0]}
    try:
        condition, state = cause.getCondition(), cause.getSqlState()
    except Py4JError:  # of another class than Spark's
        condition, state = None, None
    if condition is None or state is None:
        condition, state = _PREFIX + EXTERNAL_ERROR, SQL_STATES[EXTERNAL_ERROR]
    return told | {"condition": condition, "sqlState": state, "advice": []}
