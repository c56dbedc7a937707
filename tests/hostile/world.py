"""A small table with an index of each kind, the rows that it must hold, and all that can be done to it."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from typing import Any

import pyarrow as pa

import fuse_index as fuse
from fuse_index.indexes.registry import Host
from fuse_storage import ObjectMeta, Store, open_store, process_cache
from tests.hostile.trial import OURS, Lost, Wrong

Rows = Mapping[int, tuple[int, str]]
"""``grp`` and ``text`` by ``id``."""
COLUMNS = pa.schema([("id", pa.int64()), ("grp", pa.int64()), ("text", pa.string())])
GROUPS = 5
WORDS = ("alpha", "beta", "gamma", "delta", "omega")
NOTHING_STAYS = timedelta(0)


def row(row_id: int, version: int = 0) -> dict[str, Any]:
    return {
        "id": row_id,
        "grp": (row_id + version) % GROUPS,
        "text": f"{WORDS[row_id % len(WORDS)]} row{row_id} v{version}",
    }


def as_rows(*rows: Mapping[str, Any]) -> Rows:
    return {one["id"]: (one["grp"], one["text"]) for one in rows}


@cache
def host() -> Host:
    """The plugins that are installed, looked up once: that takes longer than most of what is tried."""
    return Host.discover()


def open_table(store: Any, **options: Any) -> fuse.Table:
    """Open a table as a new process would, which remembers nothing."""
    process_cache.clear()
    return fuse.open_table(store, host=host(), **options)


def create(url: Any, count: int = 24, **options: Any) -> tuple[fuse.Table, Rows]:
    """A table of several blocks and segments, each kind of index on it, and its rows."""
    table = fuse.create_table(
        url, COLUMNS, key=["id"], properties={"block_rows": 8, "zone_rows": 4}, host=host(), **options
    )
    table.create_index("by_id", "bloom", ["id"])
    table.create_index("by_word", "full_text", ["text"])
    table.create_index("by_grp", "aggregate", ["grp"], aggregates=["count(*)", "sum(id)"])
    rows = [row(row_id) for row_id in range(count)]
    for first in range(0, count, 6):
        table.append(rows[first : first + 6])
    return table, as_rows(*rows)


# --- what is there --------------------------------------------------------------------------------------------


def read_rows(table: fuse.Table) -> Rows:
    """All rows, without the help of an index. Raises Wrong for an id that is there twice."""
    found = table.scan(columns=COLUMNS.names, indexes=False).to_arrow().to_pylist()
    rows = as_rows(*found)
    if len(rows) != len(found):
        raise Wrong(f"{len(found) - len(rows)} ids are there twice")
    return rows


QUESTIONS: dict[str, Callable[[int, int, str], bool]] = {
    "grp = 3": lambda _, grp, __: grp == 3,
    "id = 7": lambda row_id, *_: row_id == 7,
    "id IN (2, 11, 23, 1000)": lambda row_id, *_: row_id in (2, 11, 23, 1000),
    "id = 999999": lambda *_: False,
    "match(text, 'gamma')": lambda _, __, text: text.startswith("gamma "),
    "text LIKE 'beta%' OR grp = 1": lambda _, grp, text: text.startswith("beta") or grp == 1,
    "NOT (grp < 2) AND id > 10": lambda row_id, grp, _: grp >= 2 and row_id > 10,
}


def check_answers(table: fuse.Table, rows: Rows, questions: Sequence[str] = tuple(QUESTIONS)) -> None:
    """Ask what indexes help with. Raises Wrong where an answer is not that of the rows."""
    for where in questions:
        matches = QUESTIONS[where]
        expected = sorted(row_id for row_id, (grp, text) in rows.items() if matches(row_id, grp, text))
        answer = sorted(table.scan(where, ["id"]).to_arrow().column("id").to_pylist())
        if answer != expected:
            raise Wrong(f"{where}: {answer} instead of {expected}")
    counts = table.aggregate(["grp"], ["count(*)", "sum(id)"]).to_pylist()
    answered = {one["grp"]: (one["count(*)"], one["sum(id)"]) for one in counts}
    sums: Counter[int] = Counter()
    for row_id, (grp, _) in rows.items():
        sums[grp] += row_id
    totals = {grp: (count, sums[grp]) for grp, count in Counter(grp for grp, _ in rows.values()).items()}
    if answered != totals:
        raise Wrong(f"count(*), sum(id) GROUP BY grp: {answered} instead of {totals}")


def check(store: Any, *allowed: Rows) -> Rows:
    """Read a table as a new process would; return its rows, which must be one of these states. Raises Lost, Wrong."""
    table = open_table(store)
    rows = read_rows(table)
    check_state(rows, *allowed)
    check_answers(table, rows)
    return rows


def check_state(rows: Rows, *allowed: Rows) -> None:
    """Raises Lost or Wrong unless the rows are one of these states."""
    if rows in allowed:
        return
    expected = allowed[-1]
    missing, strange = sorted(expected.keys() - rows.keys()), sorted(rows.keys() - expected.keys())
    message = f"{len(rows)} rows instead of {len(expected)}: missing {missing[:9]}, too many {strange[:9]}"
    raise Wrong(message) if any(rows.keys() >= state.keys() for state in allowed) else Lost(message)


# --- what is done ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Operation:
    """One thing that is done to a table: ``prepare`` makes it possible, and ``after`` says what must be there then."""

    name: str
    run: Callable[[fuse.Table, int], object]
    after: Callable[[Rows, int], Rows] = lambda rows, _: rows
    prepare: Callable[[fuse.Table, int], object] = lambda *_: None


def _appended(rows: Rows, number: int) -> Rows:
    return {**rows, **as_rows(*_new_rows(number))}


def _append(table: fuse.Table, number: int, hot: bool | None = None) -> None:
    table.append([one | dict.fromkeys(table.schema.names[3:], "x") for one in _new_rows(number)], hot=hot)


def _append_and_tier(table: fuse.Table, number: int) -> None:
    _append(table, number, hot=True)
    table.maintenance.tier()


def _new_rows(number: int) -> list[dict[str, Any]]:
    return [row(1_000 * (number + 1) + index) for index in range(9)]


def _merged(rows: Rows, number: int) -> Rows:
    return {**rows, **as_rows(row(3, number + 1), row(1_000 * (number + 1) + 500, number + 1))}


def _overwritten(rows: Rows, number: int) -> Rows:
    kept = {row_id: value for row_id, value in rows.items() if value[0] != number % GROUPS}
    return {**kept, **as_rows(_replacement(number))}


def _replacement(number: int) -> dict[str, Any]:
    return {**row(1_000 * (number + 1) + 700), "grp": number % GROUPS}


def _drop_index_if_there(table: fuse.Table, name: str) -> None:
    if name in table.snapshot.definitions:
        table.drop_index(name)


def _clone(table: fuse.Table, number: int) -> None:
    store = table.stored.store
    target, options = f"{store.url}-clone-{uuid.uuid4().hex}", getattr(store, "options", None)
    try:
        before = read_rows(table)
        if read_rows(table.clone(target, options)) != before:
            raise Wrong("a clone holds other rows than its source")
    finally:
        erase(open_store(target, options))


def _restored(table: fuse.Table, number: int) -> None:
    table.restore(f"t{number}")


OPERATIONS = [
    Operation("append", _append, _appended),
    Operation("append_hot", lambda table, n: _append(table, n, hot=True), _appended),
    Operation("tier", _append_and_tier, _appended),
    Operation(
        "delete",
        lambda table, n: table.delete(f"grp = {n % GROUPS}"),
        lambda rows, n: {row_id: value for row_id, value in rows.items() if value[0] != n % GROUPS},
    ),
    Operation(
        "update",
        lambda table, n: table.update(f"grp = {n % GROUPS}", {"text": f"'gamma again {n}'"}),
        lambda rows, n: {
            row_id: (grp, f"gamma again {n}" if grp == n % GROUPS else text) for row_id, (grp, text) in rows.items()
        },
    ),
    Operation(
        "merge", lambda table, n: table.merge([row(3, n + 1), row(1_000 * (n + 1) + 500, n + 1)], on=["id"]), _merged
    ),
    Operation("overwrite", lambda table, n: table.overwrite([_replacement(n)], f"grp = {n % GROUPS}"), _overwritten),
    Operation("compact", lambda table, _: table.maintenance.compact()),
    Operation(
        "recluster",
        lambda table, _: table.maintenance.recluster(),
        prepare=lambda table, _: table.cluster_by(["grp", "id"]),
    ),
    Operation("cluster_by", lambda table, n: table.cluster_by(["id", "grp"] if n % 2 else None)),
    Operation("key_by", lambda table, n: table.key_by(["id"] if n % 2 else None)),
    Operation(
        "create_index",
        lambda table, _: table.create_index("late", "bloom", ["grp"]),
        prepare=lambda table, _: _drop_index_if_there(table, "late"),
    ),
    Operation("drop_index", lambda table, _: _drop_index_if_there(table, "by_id")),
    Operation("rebuild_index", lambda table, _: table.maintenance.rebuild_index("by_word")),
    Operation("refresh_index", lambda table, _: table.maintenance.refresh_index("by_word")),
    Operation("add_column", lambda table, n: table.add_column(f"c{n}", "string", default="x", nullable=False)),
    Operation(
        "drop_column",
        lambda table, n: table.drop_column(f"d{n}"),
        prepare=lambda table, n: table.add_column(f"d{n}", "string"),
    ),
    Operation("tag", lambda table, n: table.tag(f"t{n}", expires="30d")),
    Operation("untag", lambda table, n: table.untag(f"u{n}"), prepare=lambda table, n: table.tag(f"u{n}")),
    Operation("branch", lambda table, n: table.branch(f"b{n}")),
    Operation(
        "drop_branch", lambda table, n: table.drop_branch(f"x{n}"), prepare=lambda table, n: table.branch(f"x{n}")
    ),
    Operation(
        "fast_forward",
        lambda table, n: table.fast_forward(f"f{n}"),
        _appended,
        lambda table, n: _append(table.branch(f"f{n}"), n),
    ),
    Operation("restore", _restored, prepare=lambda table, n: table.tag(f"t{n}")),
    Operation("clone", _clone),
    Operation("vacuum", lambda table, _: table.maintenance.vacuum(NOTHING_STAYS, force=True, dry_run=False)),
]


def attempt(operation: Operation, table: fuse.Table, number: int) -> str:
    """Do it; return nothing where it was acknowledged, and the error of ours with which it was refused."""
    try:
        operation.run(table, number)
    except OURS as refusal:
        return str(refusal) or type(refusal).__name__
    return ""


# --- where it lives -------------------------------------------------------------------------------------------


class AgedStore:
    """A store whose files of before are three days old, so that a vacuum finds something to delete."""

    def __init__(self, store: Store) -> None:
        self.store, self.old = store, {listed.key for listed in store.list()}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def list(self, prefix: str = "") -> Iterator[ObjectMeta]:
        for listed in self.store.list(prefix):
            aged = listed.key in self.old
            yield replace(listed, modified=listed.modified - timedelta(days=3)) if aged else listed


def copy_store(source: Store) -> Store:
    """The same files in a new place in memory."""
    target = open_store(f"memory://{uuid.uuid4().hex}")
    for listed in source.list():
        target.create(listed.key, source.read(listed.key))
    return target


def erase(store: Store) -> None:
    store.delete([listed.key for listed in store.list()])


def shuffled(seed: int, *choices: Any) -> Iterator[tuple[Any, random.Random]]:
    """All choices in an order drawn by the seed, again and again, each with its own chance."""
    draw = random.Random(seed)
    while True:
        for choice in draw.sample(choices, len(choices)):
            yield choice, random.Random(draw.random())
