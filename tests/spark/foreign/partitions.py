"""Tables that are partitioned by a column of some type, and conditions on it, and on others."""

import random
from collections.abc import Sequence

from pyspark.sql import SparkSession

from tests.spark.foreign.sources import a_of
from tests.spark.foreign.typed import combined
from tests.spark.foreign.ways import Ways, conf, same_on_conditions

ROWS = 60
"""Rows of a partition."""

ZONES = ("UTC", "America/New_York")

VALUES = {
    "STRING": ["'x'", "''", "'a b/c=d%20'", "'É'", "'NULL'", "'01'"],
    "INT": ["1", "-7", "10", "0"],
    "BIGINT": ["1", "9007199254740993", "-9223372036854775808"],
    "DATE": ["DATE'2020-02-29'", "DATE'1582-10-04'", "DATE'0001-01-01'", "DATE'9999-12-31'"],
    "TIMESTAMP": [
        "TIMESTAMP'2021-03-28 01:30:00Z'",
        "TIMESTAMP'1883-11-18 17:00:00Z'",
        "TIMESTAMP'2021-01-01 00:00:00.123456Z'",
    ],
    "TIMESTAMP_NTZ": ["TIMESTAMP_NTZ'2021-03-28 02:30:00'", "TIMESTAMP_NTZ'1890-01-01 00:00:00.5'"],
    "DECIMAL(10,2)": ["1.50BD", "-0.01BD", "99999999.99BD"],
    "DECIMAL(38,18)": ["1.000000000000000001BD", "-12345678901234567890.5BD"],
    "DOUBLE": ["1.5D", "0.0D", "-0.0D", "CAST('NaN' AS DOUBLE)", "CAST('Infinity' AS DOUBLE)"],
    "FLOAT": ["CAST(0.1 AS FLOAT)", "CAST(-0.0 AS FLOAT)", "CAST('NaN' AS FLOAT)"],
    "BOOLEAN": ["true", "false"],
    "BINARY": ["X'4142'", "X'41'"],
}
"""Values of a partition column by its type; NULL is one of each."""


def fill(spark: SparkSession, name: str, kind: str) -> None:
    """Write a file into each partition of a table, by a task of its own."""
    values, a = VALUES[kind], "concat('a', lpad(CAST(id * 7919 % 100000 AS STRING), 5, '0'))"
    cases = " ".join(f"WHEN {number} THEN CAST({value} AS {kind})" for number, value in enumerate(values))
    files = len(values) + 1  # the last is that of NULL
    with conf(spark, spark_sql_session_timeZone="Europe/Berlin"):
        spark.sql(
            f"INSERT INTO {name} SELECT id, {a} a, CASE id DIV {ROWS} {cases} END p "
            f"FROM range(0, {files * ROWS}, 1, {files})"
        )


def condition(chosen: random.Random, kind: str) -> str:
    """A condition on the columns, of a partition's value and others'."""

    def leaf() -> str:
        one, other = chosen.choice(VALUES[kind]), chosen.choice(VALUES[kind])
        a = a_of(chosen.randrange(ROWS * (len(VALUES[kind]) + 1)))
        value = f"CAST({one} AS {kind})"
        forms = f"p = {value} | p <=> {value} | p IS NULL | p IN ({value}, CAST({other} AS {kind})) | p <> {value}"
        forms += f" | NOT (p <=> {value}) | p > {value} | p <= {value} | a = '{a}' | a = '{a}' | a IN ('{a}', NULL)"
        forms += f" | a = '{a}' AND p = {value} | CAST(p AS STRING) = CAST({value} AS STRING)"
        forms += f" | coalesce(p, {value}) = {value}"
        return chosen.choice(forms.split(" | "))

    return combined(chosen, leaf)


def same_on_partitions(ways: Ways, name: str, kind: str, count: int, zones: Sequence[str] = ZONES) -> None:
    """Compare what conditions find with votes and without, by several clocks."""
    chosen = random.Random(kind)
    for zone in zones:
        with conf(ways.spark, spark_sql_session_timeZone=zone):
            for start in range(0, count, 20):
                some = [condition(chosen, kind) for _ in range(min(20, count - start))]
                told = same_on_conditions(ways, name, some, 0.1)
                assert not any(use.problem or use.unknown for use in told)
            (use,) = ways.same(f"SELECT * FROM {name} WHERE a = '{a_of(ROWS + 7)}'")
            assert use.files - use.left_out == 1
