"""Other processes: many that write at once, and some that are killed while they do."""

import signal
import subprocess
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fuse_storage import StoredTable, open_store
from fuse_storage.testing import check_invariants
from tests.effort import effort
from tests.storage.small import COLUMNS, append, ids_of, known_by, truth

WRITERS, COMMITS = 8, effort(10)

APPENDS = """
import sys
from fuse_storage import StoredTable
from tests.storage.small import Totals, append
url, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
table = StoredTable.open(url)
for number in range(first, first + count):
    table = append(table, number, builders=[Totals()] if number % 2 else [])
    print(number, flush=True)
"""


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    root = Path(__file__).parents[2]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root)


def created(folder: Path) -> StoredTable:
    return StoredTable.create(folder / "table", COLUMNS).transaction().add_index("totals", {"key": "70a1"}).commit()


def test_eight_processes_that_append_at_once_lose_nothing(tmp_path: Path) -> None:
    table = created(tmp_path)

    writers = [start(APPENDS, table.store.url, COMMITS * writer, COMMITS) for writer in range(WRITERS)]

    for writer in writers:
        output, _ = writer.communicate()
        assert (writer.returncode, len(output.split())) == (0, COMMITS)
    after = table.refresh()
    assert sorted(ids_of(after)) == list(range(WRITERS * COMMITS))
    assert after.snapshot.sequence == 2 + WRITERS * COMMITS
    assert after.snapshot.segment_count < 60
    for found, true in zip(known_by(after, "70a1"), truth(after), strict=True):
        assert found == (true if (true[0] or 0) % 2 else (None, None))
    check_invariants(after)


def test_threads_that_append_to_an_object_store_lose_nothing(s3: dict[str, str]) -> None:
    url = f"s3://tables/{uuid.uuid4().hex}"
    StoredTable.create(open_store(url, s3), COLUMNS)

    def write(first: int) -> None:
        for row_id in range(first, first + 4):
            append(StoredTable.open(url, options=s3), row_id)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(0, 16, 4)))

    after = StoredTable.open(url, options=s3)
    assert sorted(ids_of(after)) == list(range(16))
    assert after.block_files()[0] == [f"{url}/{key}" for key in after.blocks().locations]
    check_invariants(after)


@pytest.mark.parametrize("wait", [0.0, 0.003, 0.006, 0.009, 0.012, 0.02, 0.03, 0.05])
def test_a_writer_that_is_killed_leaves_a_sound_table(tmp_path: Path, wait: float) -> None:
    table = append(created(tmp_path), -1)
    with start(APPENDS, table.store.url, 0, 10_000) as writer:
        assert writer.stdout is not None
        seen = [writer.stdout.readline() for _ in range(3)]
        time.sleep(wait)
        writer.send_signal(signal.SIGKILL)
        seen += writer.stdout.readlines()

    after = table.refresh()

    told = len([line for line in seen if line.endswith("\n")])
    assert ids_of(after) in ([-1, *range(told)], [-1, *range(told + 1)])
    check_invariants(after)
    assert ids_of(append(after, 77))[-1] == 77
