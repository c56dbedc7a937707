"""Runs suites in processes of their own, so that a trial that never ends or ends the process is counted as well."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tests.hostile.trial import FINE, Verdict

ROOT = Path(__file__).parents[2]
PATIENCE = 1800.0
"""Seconds without a word after which a trial is said to hang: several times what 10,000 commits take."""
SHOWN = 20


@dataclass
class Outcome:
    """What came of the trials of one suite."""

    suite: str
    counts: Counter[Verdict] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def faults(self) -> int:
        return self.counts.total()

    @property
    def harm(self) -> int:
        return self.faults - sum(self.counts[verdict] for verdict in FINE)

    def add(self, verdict: Verdict, trial: str, message: str) -> None:
        self.counts[verdict] += 1
        if verdict not in FINE:
            self.problems.append(f"{self.suite}: {verdict}: {trial}: {message}")


def run_suites(names: Sequence[str], seconds: float, seed: int = 0) -> list[Outcome]:
    """Run these suites one after the other, each for so many seconds; say of each when it is through."""
    outcomes = []
    for name in names:
        outcome = run_suite(name, seconds, seed)
        print(f"{name}: {outcome.faults} faults in {outcome.seconds:.0f} s, {outcome.harm} did harm", flush=True)
        outcomes.append(outcome)
    return outcomes


def run_suite(name: str, seconds: float, seed: int = 0) -> Outcome:
    """Run one suite. One whose process hangs or dies goes on with another seed, while there is time."""
    outcome, began = Outcome(name), time.monotonic()
    while (left := seconds - (time.monotonic() - began)) > 0 or not outcome.faults:
        run_worker(outcome, seed, max(left, 0.0))
        seed += 1_000
    outcome.seconds = time.monotonic() - began
    return outcome


def run_worker(outcome: Outcome, seed: int, seconds: float, patience: float = PATIENCE) -> None:
    """Run trials in one process until the time is over, or it hangs or dies.

    ``patience``: seconds without a word after which a trial is said to hang.
    """
    command = [sys.executable, "-m", "tests.hostile.worker", outcome.suite, str(seed), str(seconds)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT, start_new_session=True
    )
    assert process.stdout is not None
    lines: queue.Queue[str | None] = queue.Queue()
    reader = threading.Thread(target=_hand_over, args=(process.stdout, lines), daemon=True)
    reader.start()
    trial = "before the first trial"
    try:
        while (line := lines.get(timeout=patience)) is not None:
            said = json.loads(line)
            if "begins" in said:
                trial = said["begins"]
            else:
                outcome.add(Verdict(said["verdict"]), said["trial"], said["message"])
    except queue.Empty:
        os.killpg(process.pid, signal.SIGKILL)
        outcome.add(Verdict.HUNG, trial, f"nothing was said for {patience:.0f} s (seed {seed})")
    finally:
        _end_group(process)
        reader.join()
        process.stdout.close()
    if process.returncode not in (0, -signal.SIGKILL):
        outcome.add(Verdict.DIED, trial, f"exit code {process.returncode} (seed {seed})")


def _hand_over(output: IO[str], lines: queue.Queue[str | None]) -> None:
    for line in output:
        lines.put(line)
    lines.put(None)


def _end_group(process: subprocess.Popen[str]) -> None:
    try:
        process.wait(timeout=30)  # it has said all it has to say
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def report(outcomes: Iterable[Outcome]) -> str:
    """What each suite tried and what came of it, as a table, and the first problems below it."""
    verdicts = list(Verdict)
    lines = [f"{'suite':<14}{'faults':>8}" + "".join(f"{verdict:>9}" for verdict in verdicts) + f"{'seconds':>9}"]
    problems: list[str] = []
    for outcome in outcomes:
        counts = "".join(f"{outcome.counts[verdict]:>9,}" for verdict in verdicts)
        lines.append(f"{outcome.suite:<14}{outcome.faults:>8,}{counts}{outcome.seconds:>9.0f}")
        problems += outcome.problems
    return "\n".join(
        [*lines, *problems[:SHOWN], *([f"… and {len(problems) - SHOWN} more"] if problems[SHOWN:] else [])]
    )
