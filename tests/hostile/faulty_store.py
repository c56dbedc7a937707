"""Each operation on an object store of which every second request, or every twentieth, goes wrong."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from itertools import count
from random import Random

from fuse_storage import open_store
from tests.hostile.s3 import FaultyProxy, faulty_server
from tests.hostile.trial import Trial, Verdict
from tests.hostile.world import (
    OPERATIONS,
    Operation,
    Rows,
    attempt,
    check,
    check_state,
    create,
    erase,
    open_table,
    read_rows,
)

SHARES = (0.05, 0.2, 0.5)
"""The client tries six times, so that few operations of the first fail, and many of the last."""
LIFE = 12


def faulty_store(seed: int) -> Generator[Trial, None, None]:
    """Tables in a bucket, each changed a few times."""
    with faulty_server(seed) as (proxy, options):
        for life in count(seed):
            url, draw = f"s3://tables/{life}", Random(life)
            _, rows = create(url, options=options)
            state = [rows]
            for number in range(LIFE):
                operation, share = draw.choice(OPERATIONS), draw.choice(SHARES)
                name = f"{operation.name}, {share:.0%} of requests"
                yield Trial(name, partial(fail, proxy, url, options, state, operation, number, share))
            erase(open_store(url, options))


def fail(
    proxy: FaultyProxy,
    url: str,
    options: dict[str, str],
    state: list[Rows],
    operation: Operation,
    number: int,
    share: float,
) -> Verdict:
    """Do one thing, and read, while requests fail; then, when they do not any more, all is there."""
    store = open_store(url, options)
    table = open_table(store)
    operation.prepare(table, number)
    after = operation.after(state[0], number)
    proxy.share = share
    try:
        done = not attempt(operation, table, number)
    finally:
        proxy.share = 0.0
    state[0] = check(store, after) if done else check(store, state[0], after)
    proxy.share = share
    try:
        check_state(read_rows(open_table(store)), state[0])
    finally:
        proxy.share = 0.0
    return Verdict.HELD if done else Verdict.REFUSED
