"""Threads of one process that ask which rows count in tables with a tail do not wait for each other."""

import threading
from pathlib import Path

import pytest

import fuse_index as fuse

ROUNDS = 40
TIMEOUT_SECONDS = 60


@pytest.mark.parametrize("other", ["has_deleted_rows", "has_all_rows"])
def test_threads_that_ask_at_once_both_get_an_answer(tmp_path: Path, other: str) -> None:
    table = fuse.create_table(str(tmp_path / "t"), "id BIGINT, v BIGINT", primary_key=["id"])
    table.upsert([{"id": number, "v": number} for number in range(10)])
    table.maintenance.tier()
    table.upsert([{"id": 1, "v": 9}])

    def ask(what: str) -> None:
        for _ in range(ROUNDS):
            getattr(fuse.open_table(str(tmp_path / "t")).stored.blocks(), what)

    threads = [threading.Thread(target=ask, args=(what,), daemon=True) for what in ("live_row_counts", other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_SECONDS)
    assert not any(thread.is_alive() for thread in threads)
