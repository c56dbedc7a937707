"""Handles that were cut, sent elsewhere or recovered lose no row of a hot commit."""

import os
import pickle
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

import fuse_index as fuse
from fuse_storage.commit import transaction


def rows(*ids: int) -> list[dict[str, Any]]:
    return [{"id": each} for each in ids]


def ids(path: Path) -> list[int]:
    return sorted(row["id"] for row in fuse.open_table(path).to_arrow().to_pylist())


@pytest.fixture
def table(tmp_path: Path) -> fuse.Table:
    return fuse.create_table(tmp_path / "t", "id BIGINT", properties={"hot_rows": 1000})


@pytest.mark.parametrize("is_carried", [False, True])
@pytest.mark.parametrize("operation", ["tag", "branch", "clone", "append"])
def test_nothing_is_written_after_a_state_without_its_tail(
    table: fuse.Table, tmp_path: Path, operation: str, is_carried: bool
) -> None:
    for number in (1, 2, 3):
        table.append(rows(number))
    if is_carried:
        table.add_column("name", "STRING")
    before = fuse.open_table(tmp_path / "t").version
    cut = pickle.loads(pickle.dumps(fuse.open_table(tmp_path / "t", tail=False)))
    argument: Any = {"tag": "x", "branch": "x", "clone": str(tmp_path / "c"), "append": rows(4)}[operation]

    with pytest.raises(fuse.ReadOnly, match="tail="):
        getattr(cut, operation)(argument)

    assert cut.count() == 0
    assert ids(tmp_path / "t") == [1, 2, 3]
    assert fuse.open_table(tmp_path / "t").version == before


def test_a_handle_that_was_long_on_its_way_looks_for_the_head_before_it_commits(
    table: fuse.Table, tmp_path: Path
) -> None:
    table.append(rows(1))
    table.append(rows(2))
    sent = pickle.dumps(table)
    table.maintenance.tier()
    table.append(rows(3), hot=False)
    old = time.time() - 9 * 86400
    for file in filter(Path.is_file, (tmp_path / "t").rglob("*")):
        os.utime(file, (old, old))
    table.maintenance.vacuum(dry_run=False)

    pickle.loads(sent).append(rows(77))

    assert ids(tmp_path / "t") == [1, 2, 3, 77]


def test_a_recovery_believes_chains(table: fuse.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table.append(rows(1))
    table.append(rows(2))
    with monkeypatch.context() as patch:
        patch.setattr(transaction, "create_ref", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            fuse.open_table(tmp_path / "t").append(rows(100), hot=False)  # a writer that died before it committed
    table.append(rows(3))
    table.append(rows(4))
    shutil.rmtree(tmp_path / "t" / "_refs" / "branch")

    recovery = fuse.recover_table(tmp_path / "t")

    assert len(recovery.later["main"]) == 1
    assert ids(tmp_path / "t") == [1, 2, 3, 4]


def test_a_recovery_believes_what_ended_a_chain(
    table: fuse.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.append(rows(1))
    table.append(rows(2))
    with monkeypatch.context() as patch:
        patch.setattr(transaction, "create_ref", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            fuse.open_table(tmp_path / "t").append(rows(100), hot=False)
    table.append(rows(3), hot=False)
    shutil.rmtree(tmp_path / "t" / "_refs" / "branch")

    fuse.recover_table(tmp_path / "t")

    assert ids(tmp_path / "t") == [1, 2, 3]


def test_a_recovery_says_how_many_hot_blocks_nothing_leads_to(table: fuse.Table, tmp_path: Path) -> None:
    for number in range(1, 6):
        table.append(rows(number))
    assert fuse.recover_table(tmp_path / "t").stray_hot_blocks == 0
    chain = sorted((tmp_path / "t" / "_refs" / "hot").rglob("*.json"))
    for lost in (*chain[-2:], chain[0].with_name("_hint")):
        lost.unlink()

    assert fuse.recover_table(tmp_path / "t", dry_run=True).to_dict()["stray_hot_blocks"] == 2
    assert ids(tmp_path / "t") == [1, 2, 3]
