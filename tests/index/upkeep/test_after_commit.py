"""A small step of upkeep after a commit: for who asks for it, once a commit, and never in the way of the commit."""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

import fuse_index as fuse
from fuse_index.indexes.registry import Host
from fuse_index.upkeep import after
from fuse_index.upkeep.after import MaintenanceWarning
from fuse_storage import upkeep_lease
from fuse_storage.store.memory import MemoryStore
from tests.index.kinds import Values
from tests.index.tables import numbers


def created(properties: Mapping[str, Any], host: Host | None = None) -> fuse.Table:
    return fuse.create_table(
        f"memory://after-{uuid4().hex}", "n BIGINT, text STRING", properties={"block_rows": 10, **properties}, host=host
    )


def grown(table: fuse.Table, commits: int = 4, **more: Any) -> fuse.Table:
    for number in range(commits):
        table.append(numbers(number, 1), **more)
    return table


def operations(table: fuse.Table) -> list[str]:
    return [entry.operation for entry in table.stored.refresh().history()]


def test_the_worst_that_is_due_is_done_after_the_commit_that_made_it_due() -> None:
    table = grown(created({"maintain_after_commit": "compact"}))

    assert operations(table) == ["compact", "append", "append", "append", "append", "create"]
    assert table.snapshot.operation == "compact"  # so that what it changes next is what it reads
    table.delete("n = 1")
    assert table.count() == 3
    (row,) = table.inspect.maintenance().to_pylist()
    assert row["why"] == "4 of 4 blocks are small"


def test_what_a_commit_returns_is_its_own_snapshot() -> None:
    table = grown(created({"maintain_after_commit": "compact"}), 3)
    assert table.append(numbers(3, 1)).operation == "append"


def test_it_is_not_done_where_nobody_asks_for_it_or_it_is_suspended() -> None:
    for properties in ({"maintain": "on"}, {"maintain": "off", "maintain_after_commit": "compact"}):
        assert "compact" not in operations(grown(created(properties)))


def test_what_was_tiered_is_kept_too() -> None:
    table = created({"maintain_after_commit": "compact", "tail_rows": 1})
    grown(table, 10, hot=True)

    assert "compact" in operations(table)
    assert sorted(table.to_arrow().column("n").to_pylist()) == list(range(10))


def test_what_is_large_is_left_to_a_maintainer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(after, "MAX_AFTER_COMMIT_BYTES", 100)
    assert "compact" not in operations(grown(created({"maintain_after_commit": "compact"})))


def test_where_somebody_else_is_at_it_nothing_is_done() -> None:
    table = created({"maintain_after_commit": "compact"})
    with upkeep_lease(table.stored.store, after._LEASE):
        assert "compact" not in operations(grown(table))


def test_an_error_only_warns() -> None:
    host = Host([Values])
    table = created({"maintain_after_commit": "refresh"}, host)
    table.create_index("x", "values", ["n"], build=False)
    table.host = Host([])
    grown(table, 1)  # an index that cannot be used is nobody's to refresh here
    assert operations(table)[0] == "append"

    class Full(MemoryStore):
        def list(self, prefix: str = "") -> Any:
            if prefix == "_m":
                raise OSError("no space left")
            return super().list(prefix)

    full = Full(f"after-{uuid4().hex}")
    kept = fuse.create_table(
        full, "n BIGINT, text STRING", properties={"block_rows": 10, "maintain_after_commit": "compact"}
    )
    grown(kept, 3)
    with pytest.warns(MaintenanceWarning, match="was made, and the upkeep after it was not: no space left"):
        kept.append(numbers(3, 1))
    assert kept.count() == 4
    assert isinstance(kept.to_arrow(), pa.Table)
