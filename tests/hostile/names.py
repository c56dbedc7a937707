"""Warehouses whose sessions are killed at any moment, and whose files were changed behind their back."""

from __future__ import annotations

import multiprocessing
import shutil
import tempfile
import time
import uuid
import warnings
from collections.abc import Generator
from contextlib import suppress
from datetime import timedelta
from functools import partial
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random

import fuse_storage as storage
from fuse_storage import AlreadyExists, CreateNamespace, Store, StoredTable, Warehouse, process_cache
from tests.hostile.damage import DAMAGES, _replace
from tests.hostile.trial import Lost, Trial, Verdict, Wrong
from tests.storage.catalog.world import (
    copy_of,
    drop,
    make_table,
    rename,
    small_warehouse,
    undrop,
    unnamed_folders,
    view,
)

PATIENCE, PERIOD = 120.0, 0.8
"""Seconds that a process may take to begin, and within which it is killed once it has."""
SESSIONS = 3
CYCLE = ("create", "rename", "drop", "undrop", "again")


def names(seed: int) -> Generator[Trial, None, None]:
    """Kills and damage in turn."""
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["tests.hostile.names"])
    for life in count(seed):
        folder, draw = Path(tempfile.mkdtemp(prefix="fuse-hostile-")), Random(life)
        base = small_warehouse(storage.open_store(f"memory://names-{life}-{uuid.uuid4().hex}")).store
        seen = view(base)
        keys = [found.key for found in base.list("_catalog")]
        try:
            for number in range(6):
                place = str(folder / str(number))
                yield Trial("kill", partial(kill, processes, place, draw.random() * PERIOD))
                for _ in range(10):
                    key, how = draw.choice(keys), draw.choice(list(DAMAGES))
                    yield Trial(f"{key.split('/')[1]}: {how}", partial(read_damaged, base, seen, key, how, life))
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def read_damaged(base: Store, seen: dict[str, object], key: str, how: str, life: int) -> Verdict | None:
    """What is read of a damaged warehouse is what was there, or an error of ours is raised."""
    store, draw = copy_of(base, f"memory://names-{uuid.uuid4().hex}"), Random(life)
    _replace(store, key, DAMAGES[how](store.read(key), draw))
    process_cache.clear()
    if view(store) != seen:
        raise Wrong(f"{key} is damaged, and other names are there")
    storage.purge_dropped(Warehouse.open(store), timedelta(days=1))
    return None


def kill(processes: multiprocessing.context.ForkServerContext, url: str, delay: float) -> None:
    """Let sessions change their own names and one that is everybody's, and kill them all at once."""
    Warehouse.open(storage.open_store(url), create=True)
    sessions = []
    for number in range(SESSIONS):
        reports, report = processes.Pipe(duplex=False)
        process = processes.Process(target=change_until_killed, args=(url, number, report), daemon=True)
        process.start()
        report.close()
        sessions.append((process, reports))
    began = all(reports.poll(PATIENCE) for _, reports in sessions)
    time.sleep(delay)
    for process, _ in sessions:
        process.kill()
        process.join()
    if not began:
        raise Wrong("a process did not begin")
    found = sorted(".".join(name) for name in view(storage.open_store(url))["tables"])
    for number, (_, reports) in enumerate(sessions):
        done = steps_done(reports)
        own = [name for name in found if name.endswith(f"s{number}")]
        if own not in (named_after(number, done), named_after(number, done + 1)):
            raise Lost(f"session {number} did {done} steps, and {own} is there")
    check(url)


def check(url: str) -> None:
    """All that has a name, or had one, is whole; and what has none is found by a purge long after."""
    warehouse = Warehouse.open(storage.open_store(url))
    state = warehouse.state()
    tables = [*state.tables.values(), *(each.table for each in state.dropped.values())]
    for table in tables:
        StoredTable.open(storage.open_table_store(warehouse.store, table.location))
    announced = {found.key.split("/")[-1].removesuffix(".json") for found in warehouse.store.list("_catalog/staged")}
    if unknown := unnamed_folders(warehouse.store) - announced - {"_tmp"}:
        raise Wrong(f"nobody will ever remove {sorted(unknown)}")


def steps_done(reports: Connection) -> int:
    done = 0
    try:
        while True:
            done = max(done, reports.recv())
    except EOFError:
        return done


def named_after(number: int, steps: int) -> list[str]:
    """The names of a session's table after so many steps."""
    name = {"create": "t", "rename": "moved.t", "drop": "", "undrop": "moved.t", "again": "t"}
    if steps == 0:
        return []
    last = name[CYCLE[(steps - 1) % len(CYCLE)]]
    return [f"{last}s{number}"] if last else []


def change_until_killed(url: str, number: int, report: Connection) -> None:
    """One step after the other, of which each is told when it is done."""
    warnings.simplefilter("ignore")
    warehouse = Warehouse.open(storage.open_store(url))
    with suppress(AlreadyExists):
        warehouse.commit(lambda _: [CreateNamespace(("moved",))])
    report.send(0)
    for step in count():
        match CYCLE[step % len(CYCLE)]:
            case "create" if step:  # what the cycle before left makes room
                make_table(warehouse, f"ts{number}", replace=True)
            case "create":
                make_table(warehouse, f"ts{number}")
            case "rename":
                rename(warehouse, f"ts{number}", f"moved.ts{number}")
            case "drop":
                drop(warehouse, f"moved.ts{number}")
            case "undrop":
                undrop(warehouse, f"moved.ts{number}")
            case _:
                rename(warehouse, f"moved.ts{number}", f"ts{number}")
        report.send(step + 1)
