"""Damaged blocks, read by Spark's own reader."""

import os
from itertools import islice

import pytest
from pyspark.sql import SparkSession

from tests.effort import effort
from tests.hostile.run import report, run_suite
from tests.hostile.spark_damage import CARELESS, damaged_blocks
from tests.hostile.trial import FINE, judge

SECONDS = float(os.environ.get("FUSE_INDEX_HOSTILE_SECONDS", "4"))


def test_damaged_blocks_do_no_harm(spark: SparkSession) -> None:
    session = spark.newSession()
    for name, value in CARELESS.items():
        session.conf.set(name, value)
    tried = [(trial.name, *judge(trial)) for trial in islice(damaged_blocks(session, 0), effort(16))]

    assert [each for each in tried if each[1] not in FINE] == []


@pytest.mark.thorough
@pytest.mark.timeout(600 + 2 * SECONDS)
def test_damaged_blocks_do_no_harm_for_seconds_in_a_process_of_their_own() -> None:
    outcome = run_suite("spark_damage", SECONDS)

    print(report([outcome]))
    assert outcome.faults
    assert outcome.harm == 0, outcome.problems
