"""Faults of every kind, and what came of them: ``python -m tests.hostile --seconds 600``. Exits with 1 after harm."""

from __future__ import annotations

import argparse
import sys

from tests.hostile.run import report, run_suites
from tests.hostile.worker import SUITES


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, help="for all suites together (600)")
    parser.add_argument("--seed", type=int, default=0, help="another one tries others (0)")
    parser.add_argument(
        "--only", nargs="+", choices=SUITES, default=list(SUITES), metavar="SUITE", help=", ".join(SUITES)
    )
    chosen = parser.parse_args()
    outcomes = run_suites(chosen.only, chosen.seconds / len(chosen.only), chosen.seed)
    print(report(outcomes))
    return int(any(outcome.harm for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
