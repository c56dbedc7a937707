"""Tables from a stranger, who makes good checksums: each trial is a process that is handed a few of one kind."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from functools import partial
from itertools import count
from pathlib import Path

from tests.hostile.trial import Trial, Verdict, Wrong

ROOT = Path(__file__).parents[2]
INDEXES = ("bloom", "json_path", "aggregate", "full_text")
FILES = ("entry", "hint", "tag", "notice", "snapshot", "list", "segment", "zones", "sidecars", "block")
CASES = 20


def strangers(seed: int) -> Generator[Trial, None, None]:
    """What indexes keep, and each kind of file of a table, in turn."""
    for number in count(seed):
        for kind in INDEXES:
            yield Trial(f"{kind}, seed {number}", partial(ask_indexes, kind, number))
        for kind in FILES:
            yield Trial(f"{kind}, seed {number}", partial(read_files, kind, number))


def ask_indexes(kind: str, number: int) -> Verdict:
    """Ask an index ``CASES`` times, each time changed in another way: it answers, or is not believed."""
    if complaints := _run("tests.plugins.hostile_payloads", kind, number, CASES):
        raise Wrong(complaints)
    return Verdict.REFUSED


def read_files(kind: str, number: int) -> Verdict:
    """Use a table ``CASES`` times, one file of it changed each time: it is read, or an error of ours refuses it."""
    if not (said := _run("tests.storage.hostile", kind, CASES, number)).endswith(" tried, 0 wrong"):
        raise Wrong(said)
    return Verdict.REFUSED


def _run(module: str, *arguments: object) -> str:
    command = [sys.executable, "-m", module, *map(str, arguments)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if ended.returncode:
        raise RuntimeError(f"{module}: the process ended with {ended.returncode}: {ended.stderr[-2000:]}")
    return ended.stdout.strip()
