"""A query of a source in two ways, with votes of its index and without: what comes of it must be the same."""

import json
import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from fuse_index.spark.native.java_compiler import jvm_bridge
from tests.spark.foreign import typed
from tests.spark.foreign.sources import condition

SWITCH = "spark.fuse.index.transparent"


@dataclass(frozen=True)
class Use:
    """What a scan was about to read, and what votes left out of it."""

    files: int = 0
    left_out: int = 0
    unknown: int = 0
    in_part: int = 0
    problem: str = ""


@contextmanager
def conf(spark: SparkSession, **values: str) -> Iterator[None]:
    """Settings of the session for a while; ``_`` in a name stands for a dot."""
    names = {name.replace("_", "."): value for name, value in values.items()}
    former = {name: spark.conf.get(name, None) for name in names}
    for name, value in names.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in former.items():
            if value is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, value)


def uses(df: DataFrame) -> list[Use]:
    """What votes left out of each scan of the plan that ran last, in the order of the plan."""
    lines = json.loads(jvm_bridge(df.sparkSession).scans(df._jdf.queryExecution()))
    told = [dict(line["source"]) for line in lines if "source" in line]
    for each in told:
        del each["connector"]
        each.pop("release", None)
    return [Use(**each) for each in told]


class Ways:
    """A session that asks the indexes of sources, and can be told not to."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def without(self, query: str | Callable[[], DataFrame]) -> Any:
        """The rows, or the error, of a query whose scans ask nobody."""
        with conf(self.spark, **{SWITCH: "false"}):
            df, came = self._run(query)
            assert df is None or uses(df) == []
            return came

    def with_votes(self, query: str | Callable[[], DataFrame]) -> tuple[Any, list[Use]]:
        """The rows, or the error, of a query, and what votes left out."""
        df, came = self._run(query)
        return came, [] if df is None or isinstance(came, str) else uses(df)

    def same(self, query: str | Callable[[], DataFrame], plain: dict[str, Any] | None = None) -> list[Use]:
        """Run a query in both ways; what votes left out of its scans.

        ``plain``: answers without votes, by query, where the settings in which a query runs again do not change them.
        """
        if plain is None:
            expected = self.without(query)
        elif query in plain:
            expected = plain[query]
        else:
            expected = plain[query] = self.without(query)
        came, told = self.with_votes(query)
        assert came == expected, (query, told)
        return told

    def found(self, query: str) -> tuple[Any, list[Use]]:
        """The rows of a query, which are the same in both ways, and what votes left out of its scans."""
        plain = dict[str, Any]()
        told = self.same(query, plain)
        return plain[query], told

    def same_but_for_errors(self, query: str) -> None:
        """Run a query in both ways, of which the one may raise on rows in files that the other leaves out."""
        expected = self.without(query)
        came, told = self.with_votes(query)
        if came != expected:
            assert isinstance(expected, str), query
            assert came == [], query
            assert all(use.left_out == use.files for use in told), query

    def left_out(self, query: str | Callable[[], DataFrame]) -> list[int]:
        """Run a query in both ways; how many files votes left out of each scan."""
        return [use.left_out for use in self.same(query)]

    def _run(self, query: str | Callable[[], DataFrame]) -> tuple[DataFrame | None, Any]:
        df = None
        try:
            df = self.spark.sql(query) if isinstance(query, str) else query()
            return df, sorted(map(str, df.collect()))
        except (PySparkException, Py4JJavaError) as raised:
            return df, error_class(raised)


def same_on_random_conditions(ways: Ways, source: str, seed: int, count: int) -> list[Use]:
    """As ``same_on_conditions``, on conditions that are drawn."""
    chosen = random.Random(seed)
    return same_on_conditions(ways, source, [condition(chosen) for _ in range(count)])


def same_on_typed_conditions(
    ways: Ways,
    source: str,
    seed: int,
    count: int,
    drawn: Callable[[random.Random], str] = typed.condition,
    at_once: int = 20,
) -> list[Use]:
    """As ``same_on_conditions``, on conditions on columns of many types, so many by each of several clocks in turn."""
    some, told = typed_conditions(ways.spark, source, seed, count, drawn), []
    for number, zone in enumerate(("UTC", "Europe/Berlin", "America/New_York")):
        with conf(ways.spark, spark_sql_session_timeZone=zone, spark_sql_ansi_enabled=str(number < 2).lower()):
            for start in range(number * at_once, len(some), 3 * at_once):
                told += same_on_conditions(ways, source, some[start : start + at_once])
    return told


def typed_conditions(
    spark: SparkSession, source: str, seed: int, count: int, drawn: Callable[[random.Random], str] = typed.condition
) -> list[str]:
    """Conditions on these columns, as many, that Spark plans without votes: it does not all, by their types.

    Of some the optimizer of Spark 4.0 fails as it writes them into its log (an assertion of ``LiteralValue.toString``).
    """
    chosen, found = random.Random(seed), list[str]()
    while len(found) < count:
        text = drawn(chosen)
        try:
            with conf(spark, **{SWITCH: "false"}):
                spark.sql(f"SELECT 1 one FROM {source} WHERE {text}")._jdf.queryExecution().optimizedPlan()
            found.append(text)
        except (PySparkException, Py4JJavaError):
            continue
    return found


def same_on_conditions(ways: Ways, source: str, conditions: list[str], share: float = 0.5) -> list[Use]:
    """Ask for the ids that conditions are true on: without votes in one scan, and with votes each in its own.

    ``share``: of the conditions, which more are asked: Spark leaves out scans that it finds empty, and reads equal ones
    once.
    """
    pairs = _in_one_scan(source, conditions)
    queries = [f"SELECT {k} k, id FROM {source} WHERE {each}" for k, each in enumerate(conditions)]
    alone = " UNION ALL ".join(queries)
    came, told = ways.with_votes(alone)
    # Of what a connector itself leaves out Spark's answer is no judge: Iceberg's skips NaN where x > infinity is asked.
    assert came == ways.without(pairs) or came == ways.without(alone), conditions
    assert not isinstance(came, str), (came, conditions)
    assert len(told) > int(len(conditions) * share)
    return told


def same_of_each(ways: Ways, source: str, conditions: Iterable[str]) -> dict[str, list[Use]]:
    """Compare as ``same_on_conditions``, with a query for each condition; give what votes left out of its scans."""
    conditions = list(conditions)
    pairs, told = ways.without(_in_one_scan(source, conditions)), {}
    assert not isinstance(pairs, str), pairs
    for k, where in enumerate(conditions):
        query = f"SELECT {k} k, id FROM {source} WHERE {where}"
        came, told[where] = ways.with_votes(query)
        assert came == [row for row in pairs if row.startswith(f"Row(k={k},")] or came == ways.without(query), where
    return told


def _in_one_scan(source: str, conditions: Sequence[str]) -> str:
    """A query of the numbers of conditions, each with the ids that it is true on."""
    wanted = ", ".join(f"IF({each}, {k}, NULL)" for k, each in enumerate(conditions))
    return f"SELECT k, id FROM (SELECT id, explode(array({wanted})) k FROM {source}) WHERE k IS NOT NULL"


def error_class(raised: Exception) -> str:
    """What Spark calls an error: its class in brackets, within whatever it was wrapped in."""
    found = re.search(r"\[([A-Z0-9_.]{4,})\]", str(raised))
    assert found, raised
    return found.group(1)
