"""A replacement that breaks at any write leaves the table as it was or as it should be."""

from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from fuse_storage import (
    StoredTable,
    abort_replacement,
    add_column,
    commit_replacement,
    drop_column,
    first_snapshot,
    stage_replacement,
)
from fuse_storage.maintenance.check import check_invariants
from fuse_storage.testing import FaultMode, FaultyStore
from tests.storage.small import COLUMNS, append, ids_of


@pytest.mark.parametrize(("how", "raced"), [("after", False), ("lost", False), ("after", True)])
def test_a_fault_at_any_write(tmp_path: Path, how: FaultMode, raced: bool) -> None:
    """``raced``: others give the table a column meanwhile, so that what was staged is staged once more."""
    columns = pa.schema([*COLUMNS][::-1]) if raced else COLUMNS
    table = StoredTable.create(str(tmp_path / "t"), COLUMNS)
    table = append(table, 1)
    outcomes = set()
    for nth in range(1, 60, 1 + raced):
        before = ids_of(table.refresh())
        faulty = FaultyStore(table.store, nth, how)
        try:
            mine = StoredTable.open(faulty)
            staged = append(stage_replacement(mine, first_snapshot(columns, (), {})), 100 + nth)
            if raced:
                table.refresh().transaction().evolve_schema(partial(add_column, path="x", data_type=pa.int8())).commit()
            commit_replacement(mine, staged)
            done = True
        except BaseException as problem:
            done = None if type(problem).__name__ == "Crash" else False
        if faulty.write_count < nth:
            break

        after = table.refresh()
        check_invariants(after)
        found = ids_of(after)
        outcomes.add(found == before)
        assert found in ([before, [100 + nth]] if done is None else [[100 + nth]] if done else [before])
        assert ids_of(after.at_version(2)) == [1]
        assert not (raced and done) or after.snapshot.schema_id > staged.snapshot.schema_id
        if raced and "x" in after.snapshot.schema.names:
            after.transaction().evolve_schema(partial(drop_column, path="x")).commit()
    assert outcomes == {True, False}
    assert nth > 10


def test_what_is_given_up_may_be_given_up_twice(tmp_path: Path) -> None:
    table = append(StoredTable.create(str(tmp_path / "t"), COLUMNS), 1)
    staged = stage_replacement(table, first_snapshot(COLUMNS, (), {}))
    abort_replacement(staged)
    abort_replacement(staged)
    assert table.refresh() is table
