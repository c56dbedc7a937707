"""Changes of a table with a primary key without what rows were: as a batch, and as a stream."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_index.indexes.registry import Host
from fuse_index.predicate import Context
from fuse_index.spark.source.data_source import FuseSource, register_source, source_class

COLUMNS = ("_commit_version", "_change_type", "id", "city")


@pytest.fixture
def table(tmp_path: Path) -> fuse.Table:
    made = fuse.create_table(tmp_path / "t", "id BIGINT, city STRING NOT NULL", primary_key=["id"])
    made.upsert([{"id": number, "city": "Bonn"} for number in range(5)])
    made.maintenance.tier()
    return made


def source_of(table: fuse.Table, **options: str) -> FuseSource:
    """As Spark makes one, but here."""
    return source_class(Host.discover(), Context())({"path": table.stored.store.url, **options})


def test_puts_and_deletes_are_told_commit_by_commit(spark: SparkSession, table: fuse.Table) -> None:
    since, first = table.snapshot.id, table.version
    table.upsert([{"id": 1, "city": "Oslo"}, {"id": 2, "city": "Bonn"}])
    table.delete_keys([2, 77])
    table.maintenance.tier()
    table.upsert([{"id": 1, "city": "Rome"}])
    options = {"read_changes": "true", "preimages": "false"}

    source = source_of(table, **options)
    reader = source.streamReader(source.schema())
    start = reader.initialOffset()
    pieces = reader.partitions(start, reader.latestOffset(start))
    filled = [row["_change_type"] for piece in pieces for batch in reader.read(piece) for row in batch.to_pylist()]
    source = source_of(table, **options, since=since)
    reader = source.streamReader(source.schema())
    start = reader.initialOffset()
    pieces = reader.partitions(start, reader.latestOffset(start))
    told = [
        tuple(row[name] for name in COLUMNS)
        for piece in pieces
        for batch in reader.read(piece)
        for row in batch.to_pylist()
    ]
    register_source(spark)
    net = spark.read.format("fuse").options(**options, since=since).load(table.stored.store.url).select(*COLUMNS)

    assert filled == ["insert"] * 4
    post = "update_postimage"
    assert sorted(told, key=str) == [
        (first + 1, post, 1, "Oslo"),
        (first + 1, post, 2, "Bonn"),
        (first + 2, "delete", 2, None),
        (first + 2, "delete", 77, None),
        (first + 4, post, 1, "Rome"),
    ]
    last = first + 4
    assert sorted(map(tuple, net.collect()), key=str) == [
        (last, "delete", 2, None),
        (last, "delete", 77, None),
        (last, post, 1, "Rome"),
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "set read_changes too"),
        ({"read_changes": "true", "where": "id = 1"}, "where and preimages=False"),
        ({"read_changes": "true", "key": "city"}, "by the primary key"),
    ],
)
def test_what_cannot_be_told_so_is_refused(table: fuse.Table, options: dict[str, str], said: str) -> None:
    since = {"since": table.snapshot.id} if options else {}
    source = source_of(table, preimages="false", **since, **options)
    for read in (lambda: source.reader(source.schema()), lambda: source.streamReader(source.schema())):
        with pytest.raises(fuse.FuseIndexError, match=said):
            read()
