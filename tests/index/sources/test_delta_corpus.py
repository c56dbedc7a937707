"""Delta tables of every age and feature, by Delta's own projects: each is read as they say, or refused by name.

``DELTA_TEST_DATA`` names a folder with tables in it, at any depth, and archives of tables (``.tar.zst``). Archives of
Delta Kernel hold the rows that are expected; of other tables deltalake says them.
"""

import io
import tarfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from deltalake import DeltaTable, QueryBuilder

import fuse_index as fuse
from tests.index.sources.corpora import assert_right, fitted, folder_of, questions, texts

DATA = folder_of("DELTA_TEST_DATA")
ARCHIVES = [] if DATA is None else sorted(DATA.rglob("*.tar.zst"))
PACKED = {archive.name.removesuffix(".tar.zst").lower() for archive in ARCHIVES}
TABLES = [] if DATA is None else sorted({log.parent for log in DATA.rglob("_delta_log")})
READ_HERE_ALONE = {"type-widening", "type-widening-nested", "spark-shredded-variant-preview-delta"}
"""Tables that deltalake refuses and we read."""
FAR_TIMES = "table_with_edge_timestamps"
"""Has times in the year 9999, which deltalake reads as nanoseconds: they are in 1816 there."""
LOCAL_TIMES = "data-reader-partition-values"
"""Has times without a zone in its paths: ours and deltalake's are in UTC, and those expected of Los Angeles."""
MANY_ROWS = 100_000
"""Tables of more are compared as a whole, and not asked for single rows."""

LEAST_SHARE = 0.95
"""Of the tables that their own readers read, so many attach, and have the rows that these give."""
outcomes: list[bool] = []
"""Of each table that somebody read, whether it did."""

pytestmark = [
    pytest.mark.skipif(DATA is None, reason="DELTA_TEST_DATA names no folder of Delta tables"),
    pytest.mark.filterwarnings("ignore::fuse_index.LeftOutWarning"),
]


@pytest.mark.parametrize(
    "place",
    [each for each in TABLES if each.name.lower() not in PACKED],
    ids=lambda place: str(place.relative_to(DATA)),
)
def test_rows_are_those_that_deltalake_reads(place: Path, tmp_path: Path) -> None:
    check(place, tmp_path / "table", read_by_deltalake(place))


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda archive: archive.name.removesuffix(".tar.zst"))
def test_rows_are_those_that_kernel_expects(archive: Path, tmp_path: Path) -> None:
    with (
        archive.open("rb") as packed,
        zstandard.ZstdDecompressor().stream_reader(packed) as unpacked,
        tarfile.open(fileobj=io.BufferedReader(unpacked), mode="r|") as files,
    ):
        files.extractall(tmp_path / "lake", filter="data")
    places = sorted(log.parent for log in (tmp_path / "lake").rglob("_delta_log"))
    for number, place in enumerate(places):
        known = [read_file(file) for file in sorted((place.parent / "expected").glob("*.parquet"))]
        is_known = known and archive.name.removesuffix(".tar.zst") != LOCAL_TIMES
        check(place, tmp_path / f"{number}", pa.concat_tables(known) if is_known else read_by_deltalake(place))


def read_by_deltalake(place: Path) -> pa.Table | None:
    """The rows of a table; None if it cannot be read."""
    try:
        table = DeltaTable(str(place))
        if place.name == FAR_TIMES:
            return pa.concat_tables([read_file(uri) for uri in table.file_uris()])
        return pa.table(QueryBuilder().register("t", table).execute("SELECT * FROM t").read_all())
    except Exception as problem:  # deltalake raises whatever its parts raise
        print(place, problem)
    return None


def read_file(place: Path | str) -> pa.Table:
    return pq.read_table(place, coerce_int96_timestamp_unit="us")


def check(place: Path, target: Path, expected: pa.Table | None) -> None:
    """Attach a table and compare it. ``expected``: its rows; None where nobody can read them."""
    try:
        table = fuse.attach(place, target, format="delta")
        rows = table.to_arrow()
    except fuse.StorageError as problem:
        refused = str(problem)
    else:
        refused = ""
    if expected is not None:
        outcomes.append(False)  # until it was compared
    if refused:
        assert expected is None, refused
    elif expected is None:
        assert place.name in READ_HERE_ALONE
    elif expected.num_rows > MANY_ROWS:
        order = [(name, "ascending") for name in rows.schema.names]
        assert rows.sort_by(order).equals(fitted(expected, table).sort_by(order))
    else:
        assert_right(table, fitted(expected, table))
    if expected is not None:
        outcomes[-1] = True


def test_most_tables_that_their_own_readers_read_are_right() -> None:
    """Follows the tests of tables, of which it counts those that ran in this process."""
    print(f"{sum(outcomes)} of {len(outcomes)} tables that somebody reads attach, and are right")
    assert sum(outcomes) >= LEAST_SHARE * len(outcomes)


@pytest.mark.parametrize("name", ["delta-golden/dv-partitioned-with-checkpoint", "delta-golden/dv-with-columnmapping"])
def test_deleted_rows_are_followed_from_version_to_version(name: str, tmp_path: Path) -> None:
    assert DATA is not None
    newest = DeltaTable(str(DATA / name)).version()
    table = fuse.attach(DATA / name, tmp_path / "table", format="delta")
    table.create_index("by_first", "bloom", [table.schema.names[1]])
    indexed = 0
    for version in (*range(newest, -1, -3), newest):
        result = table.sync(to=version, indexes=False)
        source = DeltaTable(str(DATA / name), version=version)
        expected = pa.table(QueryBuilder().register("t", source).execute("SELECT * FROM t").read_all())
        assert result.rows == expected.num_rows
        assert sorted(texts(fitted(expected, table))) == sorted(texts(table.to_arrow()))
        indexed += table.inspect.index("by_first")["blocks_indexed"]
        table.maintenance.refresh_index("by_first")
        assert table.maintenance.verify_index("by_first").sound
        for predicate, keep in questions(table, fitted(expected, table), index=False):
            right = sorted(texts(fitted(expected, table).filter(keep)))
            assert sorted(texts(table.scan(predicate).to_arrow())) == right, (version, predicate)
    assert indexed > 0
