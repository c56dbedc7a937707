"""Faults of every kind for seconds; ``make hostile`` tries them for minutes or hours."""

import os
from collections.abc import Generator

import pytest

from tests.hostile import worker
from tests.hostile.run import Outcome, report, run_suite, run_worker
from tests.hostile.trial import Trial, Verdict
from tests.hostile.worker import SUITES

TESTED_ELSEWHERE = ("spark_damage", "strangers")
SECONDS = float(os.environ.get("FUSE_INDEX_HOSTILE_SECONDS", "2"))


@pytest.mark.timeout(600 + 2 * SECONDS)
@pytest.mark.parametrize("name", [name for name in SUITES if name not in TESTED_ELSEWHERE])
def test_faults_do_no_harm(name: str) -> None:
    outcome = run_suite(name, SECONDS)

    print(report([outcome]))
    assert outcome.faults
    assert outcome.harm == 0, outcome.problems


def test_a_suite_is_closed_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []

    def suite(seed: int) -> Generator[Trial, None, None]:
        try:
            while True:
                yield Trial("fine", lambda: None)
        finally:
            said.append("closed")

    made = suite(0)  # as one that a caught error holds on to
    monkeypatch.setattr(worker, "load_suite", lambda name: lambda seed: made)
    worker.work("suite", 0, 0.0)
    assert said == ["closed"]


def test_harm_of_every_kind_is_noticed() -> None:
    died, hung = Outcome("harmful"), Outcome("harmful")
    run_worker(died, seed=0, seconds=600)
    run_worker(hung, seed=1, seconds=600, patience=20)

    harm = {Verdict.LOST: 1, Verdict.WRONG: 1, Verdict.RAISED: 1}
    assert died.counts == {**harm, Verdict.HELD: 1, Verdict.DIED: 1}
    assert hung.counts == {**harm, Verdict.HELD: 1, Verdict.HUNG: 1}
    assert (died.harm, died.faults) == (4, 5)
    assert "harmful: lost: loses: two rows" in report([died])
