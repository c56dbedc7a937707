"""A commit by a process that may only read: it fails at once, as nothing was done."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fuse_storage.commit.head import create_once
from fuse_storage.errors import CommitUnknown, StorageError

SECONDS = 0.2

CREATES = """
import sys
import fuse_index as fuse
try:
    fuse.catalog(sys.argv[1]).create_namespace("sales")
except fuse.StorageError as error:
    print(error.code, error)
"""


@pytest.fixture
def closed_folder(tmp_path: Path) -> Iterator[Path]:
    """A warehouse that nobody may write to."""
    import fuse_index as fuse

    fuse.catalog(tmp_path / "warehouse", create=True)
    places = [tmp_path / "warehouse", *(tmp_path / "warehouse").rglob("*")]
    for place in places:
        place.chmod(0o555 if place.is_dir() else 0o444)
    yield tmp_path / "warehouse"
    for place in places:
        place.chmod(0o755)


def test_a_warehouse_that_may_not_be_written_says_so_at_once(closed_folder):
    as_others = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    if as_others and shutil.which("setpriv") is None:
        pytest.skip("root may write everywhere")
    command = [*as_others, sys.executable, "-c", CREATES, str(closed_folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"STORAGE_ERROR {closed_folder}/_catalog/log/")
    assert done.stdout.endswith(": Permission denied\n")


def refuse() -> None:
    error = StorageError("no right")
    error.not_permitted = True
    raise error


def silent() -> None:
    raise StorageError("no answer")


def test_a_refusal_is_raised_at_once_where_nothing_is_there():
    began = time.monotonic()
    with pytest.raises(StorageError, match="no right"):
        create_once(refuse, lambda: None, "c", began + 60, "table")
    assert time.monotonic() - began < 10


def test_what_is_there_was_created_whatever_the_answer():
    assert create_once(refuse, lambda: True, "c", time.monotonic() + 60, "table")


def test_a_refusal_after_silence_leaves_it_unknown():
    tries = iter([silent])

    with pytest.raises(CommitUnknown):
        create_once(lambda: next(tries, refuse)(), lambda: None, "c", time.monotonic() + SECONDS, "table")


def test_a_refusal_of_which_the_reading_gets_no_answer_leaves_it_unknown():
    with pytest.raises(CommitUnknown):
        create_once(refuse, silent, "c", time.monotonic() + SECONDS, "table")
