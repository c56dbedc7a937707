"""Files whose footers lie, by the writers that did: an attached one answers by its rows, with indexes and without."""

from pathlib import Path
from shutil import copy

import pytest

import fuse_index as fuse

LIARS = sorted((Path(__file__).parents[2] / "golden" / "liars").glob("*.parquet"))
ROWS = [("a", 5), ("b", None), (None, 3), ("zzz", None), (None, None), ("frank", 9)]
COUNTS = {
    "f = 'zzz'": 1,
    "f > 'b'": 2,
    "f IS NULL": 2,
    "f IS NOT NULL": 4,
    "n IS NULL": 3,
    "n IS NOT NULL": 3,
    "n = 9": 1,
    "NOT (f = 'a')": 3,
}


@pytest.mark.parametrize("file", LIARS, ids=lambda file: file.stem)
def test_a_footer_that_lies_loses_no_row(file: Path, tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    copy(file, tmp_path / "lake")
    table = fuse.attach(tmp_path / "lake", tmp_path / "table")
    rows = table.to_arrow()
    assert [tuple(row.values()) for row in rows.to_pylist()] == ROWS

    for indexed in (False, True):
        if indexed:
            table.create_index("by_f", "bloom", ["f"])
        assert {query: len(table.to_arrow(query)) for query in COUNTS} == COUNTS


PREFIXES = {"f = 'ba'": 1, "f > 'b'": 1, "g = ''": 1, "g < 'abc'": 1, "x = X'616263'": 1, "x = X''": 1, "f = 'zz'": 0}


@pytest.mark.parametrize("file", sorted((LIARS[0].parent / "prefixes").glob("*.parquet")), ids=lambda file: file.stem)
def test_a_bound_that_is_a_prefix_loses_no_row(file: Path, tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    copy(file, tmp_path / "lake")
    table = fuse.attach(tmp_path / "lake", tmp_path / "table")

    for indexed in (False, True):
        if indexed:
            table.create_index("by_f", "bloom", ["f"])
        assert {query: len(table.to_arrow(query)) for query in PREFIXES} == PREFIXES


def test_every_liar_is_there() -> None:
    """A glob that finds nothing would be a test of nothing."""
    assert len(LIARS) == 6
    assert len([*(LIARS[0].parent / "prefixes").glob("*.parquet")]) == 1
