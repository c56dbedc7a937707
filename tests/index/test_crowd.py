"""Processes that append, hot or not, tier, merge, delete, update, compact, recluster, build, evolve, vacuum and read
one table at the same time.

For seconds here, and until each has done something; for minutes with ``make soak``.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import fuse_index as fuse
from fuse_storage import NotFound, process_cache
from fuse_storage.testing import check_invariants
from tests.index.crowd import ROLES, created, replayed

SECONDS = float(os.environ.get("FUSE_INDEX_SOAK_SECONDS", "5"))
ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(300 + 2 * SECONDS)
def test_a_crowd_loses_and_doubles_nothing(tmp_path):
    url = str(tmp_path / "table")
    created(url).append([{"id": 0, "grp": 0, "value": 0}])
    commits = [{"version": 4, "put": [[0, 0, 0]]}]

    roles = ["hot", *ROLES]
    started = [
        (sys.executable, "-m", "tests.index.crowd", role, url, str(SECONDS), str(seed + 1))
        for seed, role in enumerate(roles)
    ]
    crowd = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
        for command in started
    ]
    counts = {}
    for role, process in zip(roles, crowd, strict=True):
        printed, problems = process.communicate()
        assert process.returncode == 0, f"{role}: {problems[-3000:]}"
        lines = [json.loads(line) for line in printed.splitlines()]
        counts[role] = lines[-1]["counts"]
        commits += lines[:-1]

    process_cache.clear()
    table = fuse.open_table(url)
    found = {
        row["id"]: (row["grp"], row["value"])
        for row in table.scan(columns=["id", "grp", "value"]).to_arrow().to_pylist()
    }
    assert found == replayed(commits)
    assert table.scan().count() == len(found)
    assert len({commit["version"] for commit in commits}) == len(commits)
    check_invariants(table.stored)
    for name in table.snapshot.definitions:
        table.maintenance.refresh_index(name)
        assert table.maintenance.verify_index(name).sound
    readable = sum(is_readable(url, entry) for entry in table.stored.history())
    print(
        f"{len(commits)} commits that changed rows, {table.snapshot.version} in all, {readable} "
        f"snapshots readable; {counts}"
    )
    assert all(counts[role].get("done") for role in roles), counts


def is_readable(url, entry):
    """Whether a snapshot is still there; if it is, all of it is."""
    try:
        table = fuse.open_table(url, at=entry.snapshot_id)
    except NotFound:
        return False
    assert table.scan().to_arrow().num_rows == table.snapshot.row_count
    return True
