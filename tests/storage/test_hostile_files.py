"""A table from a stranger can do no more than be refused: every kind of file, changed by whoever can make checksums."""

import json
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuse_storage import Corrupt, FormatError, Snapshot, StorageError, StoredTable, recover_branches
from fuse_storage.metadata.encoding import encode_checksummed_json
from fuse_storage.metadata.refs import RefEntry
from fuse_storage.metadata.tags import Tag
from tests.effort import effort
from tests.storage import tampering
from tests.storage.hostile import made
from tests.storage.small import ids_of

KINDS = ("entry", "hint", "tag", "notice", "snapshot", "list", "segment", "zones", "sidecars", "block")


@pytest.fixture
def table() -> StoredTable:
    return made()


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_stranger_wrote_ends_in_an_answer_or_an_error_of_ours(kind: str) -> None:
    """In a process of its own, which neither crashes nor hangs nor takes a gigabyte more than a sound table."""
    program = [sys.executable, "-m", "tests.storage.hostile", kind, str(effort(3))]

    ended = subprocess.run(
        program, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=280, check=False
    )

    assert ended.returncode == 0, ended.stderr[-2000:]
    assert ended.stdout.endswith(" tried, 0 wrong\n"), ended.stdout


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("rows", -1),
        ("blocks", 1 << 63),
        ("bytes", "x"),
        ("sequence", 1.5),
        ("timestamp", "2026-01-01T00:00:00"),
        ("timestamp", "9999-12-31T23:59:59.999999Z"),
        ("cluster_by", [99]),
        ("cluster_by", [[]]),
        ("schema", 7),
        ("schemas", [{"id": 0, "fields": [{"id": 1, "name": "a", "type": "decimal(99,2)", "nullable": True}]}]),
        ("schemas", [{"id": 0, "fields": [{"id": 1, "name": "a", "type": "int", "nullable": True, "default": "x"}]}]),
        ("schemas", [{"id": 0, "fields": [{"id": 1, "name": "a", "type": "int", "nullable": True}] * 2}]),
        ("properties", []),
        ("properties", {"max_write_seconds": "x"}),
        ("properties", {"max_write_seconds": 1e300}),
        ("definitions", {"a": {}}),
        ("definitions", {"a": {"key": "../x"}}),
        ("names", {"x": []}),
        ("operation", "\ud800"),
        ("reader_features", "shared-files"),
        ("format_version", "1"),
    ],
)
def test_members_of_a_snapshot_have_types_and_bounds(table: StoredTable, member: str, value: Any) -> None:
    members = {**json.loads(table.snapshot.encode()), member: value}

    with pytest.raises(FormatError, match="here"):
        Snapshot.decode(json.dumps(members).encode(), "here")


@pytest.mark.parametrize("deep", [b"[" * 200_000, b'{"a":' * 500 + b"1" + b"}" * 500])
def test_what_is_nested_too_deeply_is_refused(deep: bytes) -> None:
    for decode in (Snapshot.decode, RefEntry.decode, Tag.decode):
        with pytest.raises(FormatError, match="here"):
            decode(deep, "here")


@pytest.mark.parametrize("time", ["2026-01-01T00:00:00", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00", "x"])
def test_times_have_zones_and_can_be_reckoned_with(table: StoredTable, time: str) -> None:
    members = json.loads(table.entry.encode())
    del members["checksum"]

    with pytest.raises(FormatError, match="here is no entry of a branch"):
        RefEntry.decode(encode_checksummed_json({**members, "timestamp": time}), "here")


@pytest.mark.parametrize("count", [-1, 0, 1 << 31, 1 << 60])
@pytest.mark.parametrize("name", ["block_count", "row_count", "zone_count", "length", "size"])
def test_counts_of_a_list_are_not_believed(table: StoredTable, name: str, count: int) -> None:
    tracemalloc.start()
    try:
        changed = tampering.rewrite_list(
            table,
            lambda rows: rows.set_column(
                rows.column_names.index(name), name, pa.array([count] * len(rows), pa.int64())
            ),
        )
        if name in ("zone_count", "size", "length") and 0 <= count < 1 << 32:
            try:  # the list adds up; what it counts does not
                assert ids_of(changed) == list(range(8))
                changed.zones(changed.blocks()).statistics(1)
            except StorageError:
                pass
        else:
            with pytest.raises(StorageError):
                ids_of(changed)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


def test_some_kilobytes_do_not_become_gigabytes(table: StoredTable) -> None:
    many = np.ones(30_000_000, np.int64)

    def change(rows: pa.Table) -> pa.Table:
        lists = pa.array([many] + [[1]] * (len(rows) - 1), rows.schema.field("zone_rows").type)
        return rows.set_column(rows.column_names.index("zone_rows"), "zone_rows", lists)

    changed = tampering.rewrite_part(table, "segment", change)

    with pytest.raises(FormatError, match="bytes become more than"):
        ids_of(changed)


@pytest.mark.parametrize("cut", [1, 100, 1000])
def test_a_block_that_is_cut_short_is_named(table: StoredTable, cut: int) -> None:
    name = table.blocks().ids[0]
    tampering.replace_block(table, 0, lambda data, _: data[:-cut])

    with pytest.raises(Corrupt, match=name):
        ids_of(StoredTable.open(table.store))


@pytest.mark.parametrize("sequence", [0, 1 << 60])
def test_a_recovery_makes_no_entries_up_to_a_number_that_somebody_made_up(table: StoredTable, sequence: int) -> None:
    other = replace(table.snapshot, id="f" * 32, sequence=sequence)
    table.store.create(other.path, other.encode())

    found = recover_branches(table.store, dry_run=True)

    assert list(found.unreadable) == [other.path]
