"""Files that were changed behind the table's back: bits, ends and sectors lost, files gone, swapped or copied."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator
from functools import partial
from itertools import count
from random import Random
from unittest import mock

from fuse_storage import Store, open_store
from fuse_storage.hot import chain
from tests.hostile.trial import OURS, Trial, Verdict
from tests.hostile.world import OPERATIONS, Rows, attempt, check, copy_store, create, erase, open_table

CHANGES = OPERATIONS[:8]
SECTOR = 512

Damage = Callable[[bytes, Random], bytes | None]
"""New bytes of a file, or None where it is gone."""


def _flip_bit(data: bytes, draw: Random) -> bytes:
    position = draw.randrange(len(data))
    return data[:position] + bytes([data[position] ^ 1 << draw.randrange(8)]) + data[position + 1 :]


def _zero_sector(data: bytes, draw: Random) -> bytes:
    start = draw.randrange(len(data))
    length = min(SECTOR, len(data) - start)
    return data[:start] + bytes(length) + data[start + length :]


DAMAGES: dict[str, Damage] = {
    "a flipped bit": _flip_bit,
    "a zeroed sector": _zero_sector,
    "a lost end": lambda data, draw: data[: draw.randrange(len(data))],
    "more at the end": lambda data, draw: data + draw.randbytes(draw.randint(1, 64)),
    "nothing in it": lambda *_: b"",
    "random bytes": lambda data, draw: draw.randbytes(len(data)),
    "gone": lambda *_: None,
}


def kind_of(key: str) -> str:
    """What a file is: its folder, and how its name ends; a branch's hint is no entry."""
    folder = "/".join(key.split("/")[:2]) if key.startswith("_refs") else key.split("/")[0]
    return f"{folder} {'hint' if key.endswith('_hint') else '.'.join(key.split('/')[-1].split('.')[1:])}".strip()


def damage(seed: int) -> Generator[Trial, None, None]:
    """A file of each kind in turn, damaged in a way that is drawn."""
    for number in count(seed):
        base, draw = open_store(f"memory://base-{number}"), Random(number)
        table, rows = create(base)
        table.tag("named")
        table.branch("side")
        with mock.patch.object(chain, "HINT_SECONDS", 0.0):  # or the end of a chain may be lost without a trace
            for step in draw.sample(CHANGES, number % 4):
                attempt(step, table, number)
                rows = step.after(rows, number)
        by_kind: dict[str, list[str]] = defaultdict(list)
        for listed in base.list():
            by_kind[kind_of(listed.key)].append(listed.key)
        for _ in range(30):
            for kind, keys in sorted(by_kind.items()):
                key, name = draw.choice(keys), draw.choice(list(DAMAGES))
                yield Trial(f"{kind}: {name}", partial(read_damaged, base, rows, key, name, draw.random()))
            kind = draw.choice([kind for kind, keys in sorted(by_kind.items()) if len(keys) > 1])
            yield Trial(f"{kind}: two swapped", partial(read_swapped, base, rows, draw.sample(by_kind[kind], 2)))
        erase(base)


def _replace(store: Store, key: str, data: bytes | None) -> None:
    store.delete([key])
    if data is not None:
        store.create(key, data)


def read_damaged(base: Store, rows: Rows, key: str, name: str, chance: float) -> Verdict:
    """Damage one file of a copy and read it."""
    store = copy_store(base)
    _replace(store, key, DAMAGES[name](base.read(key), Random(chance)))
    return read_or_refused(store, rows)


def read_swapped(base: Store, rows: Rows, keys: list[str]) -> Verdict:
    """Swap two files of one kind in a copy and read it."""
    store = copy_store(base)
    for key, other in zip(keys, reversed(keys), strict=True):
        _replace(store, key, base.read(other))
    return read_or_refused(store, rows)


def read_or_refused(store: Store, rows: Rows) -> Verdict:
    """Every answer is right or an error of ours; and what can be appended is not lost."""
    try:
        check(store, rows)
        verdict = Verdict.HELD
    except OURS:
        verdict = Verdict.REFUSED
    if verdict is Verdict.HELD:
        append = OPERATIONS[0]
        if not attempt(append, open_table(store), 77):
            check(store, append.after(rows, 77))
    erase(store)
    return verdict
