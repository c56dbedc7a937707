"""Processes that are killed with SIGKILL at any moment while they change a table."""

from __future__ import annotations

import multiprocessing
import shutil
import tempfile
import time
import warnings
from collections.abc import Generator
from functools import partial
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random

from tests.hostile.trial import Trial, Wrong
from tests.hostile.world import OPERATIONS, Operation, Rows, attempt, check, create, open_table

PERIOD = 0.6
"""Seconds within which a process is killed, once it has begun: it does a few operations in that time."""
PATIENCE = 120.0
"""Seconds that a process may take to begin, on a busy machine."""
LIFE = 25
"""Kills of one table, before another is begun: histories grow, and so does what there is to read."""
CHANGES = [operation for operation in OPERATIONS if operation.name not in ("clone", "drop_index", "create_index")]


def kills(seed: int) -> Generator[Trial, None, None]:
    """One table after the other, each changed by processes of which none ends by itself."""
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["tests.hostile.kills", "fuse_plugins.full_text", "fuse_index.cli.program"])
    for life in count(seed):
        folder = Path(tempfile.mkdtemp(prefix="fuse-hostile-"))
        url, draw = str(folder / "table"), Random(life)
        _, rows = create(url)
        state = [rows]
        try:
            for number in range(0, LIFE * 100, 100):
                delay = draw.random() * PERIOD
                yield Trial(f"after {delay:.3f} s", partial(kill, processes, url, state, number, delay))
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def operation_at(number: int) -> Operation:
    return Random(number).choice(CHANGES)


def kill(
    processes: multiprocessing.context.ForkServerContext, url: str, state: list[Rows], number: int, delay: float
) -> None:
    """Start a process, kill it, and look: what it acknowledged is there, and what it did not finish is there or not.

    ``state``: the rows before, alone in a list; replaced by those after.
    """
    reports, report = processes.Pipe(duplex=False)
    process = processes.Process(target=change_until_killed, args=(url, number, report), daemon=True)
    process.start()
    report.close()
    if not reports.poll(PATIENCE):
        process.kill()
        raise Wrong("a process did not begin")
    time.sleep(delay)
    process.kill()
    process.join()

    before = state[0]
    allowed = [before]
    try:
        while True:
            step, refusal = reports.recv()
            after = operation_at(step).after(before, step)
            if refusal is None:
                allowed = [before, after]
            elif refusal:
                raise Wrong(f"{operation_at(step).name}: {refusal}")
            else:
                before, allowed = after, [after]
    except EOFError:
        state[0] = check(url, *allowed)


def change_until_killed(url: str, number: int, report: Connection) -> None:
    """Do one thing after the other. Reports (number, None) before each, and (number, the refusal or "") after it."""
    warnings.simplefilter("ignore")
    for step in count(number):
        operation, table = operation_at(step), open_table(url)
        operation.prepare(table, step)
        report.send((step, None))
        report.send((step, attempt(operation, table, step)))
