"""Damaged blocks, read by Spark's own reader, for seconds."""

import os

import pytest

from tests.hostile.run import report, run_suite

SECONDS = float(os.environ.get("FUSE_INDEX_HOSTILE_SECONDS", "4"))


@pytest.mark.timeout(600 + 2 * SECONDS)
def test_damaged_blocks_do_no_harm() -> None:
    outcome = run_suite("spark_damage", SECONDS)

    print(report([outcome]))
    assert outcome.faults
    assert outcome.harm == 0, outcome.problems
