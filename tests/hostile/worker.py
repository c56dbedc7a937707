"""One suite of hostile trials in a process of its own: ``python -m tests.hostile.worker SUITE SEED SECONDS``.

Prints a JSON line before and after each trial, so that whoever reads them knows of one that never ends.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from contextlib import closing
from importlib import import_module

from tests.hostile.trial import Suite, judge

SUITES = {
    "crashes": "tests.hostile.crashes",
    "kills": "tests.hostile.kills",
    "faulty_store": "tests.hostile.faulty_store",
    "damage": "tests.hostile.damage",
    "spark_damage": "tests.hostile.spark_damage",
    "strangers": "tests.hostile.strangers",
    "strays": "tests.hostile.strays",
    "clocks": "tests.hostile.clocks",
    "load": "tests.hostile.load",
    "names": "tests.hostile.names",
    "lives": "tests.hostile.lives",
}
"""The module of each suite, in which it is a function of its name. Importing one may load Spark."""


def load_suite(name: str) -> Suite:
    suite: Suite = getattr(import_module(SUITES.get(name, f"tests.hostile.{name}")), name)
    return suite


def work(name: str, seed: int, seconds: float) -> None:
    """Run trials until the time is over."""
    warnings.simplefilter("ignore")  # what an index could not do is said by a warning; here rows are judged
    # A suite that a caught error holds on to would else be closed with the interpreter, when the threads of its servers
    # are gone, and wait for one of them for good.
    with closing(load_suite(name)(seed)) as trials:
        ends = time.monotonic() + seconds
        for trial in trials:
            print(json.dumps({"begins": trial.name}), flush=True)
            verdict, message = judge(trial)
            print(json.dumps({"trial": trial.name, "verdict": verdict, "message": message}), flush=True)
            if time.monotonic() > ends:
                break


if __name__ == "__main__":
    work(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
