"""Spark puts rows into tables with a primary key: of each key one row is there, and each batch is one hot commit."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

import fuse_index as fuse
import fuse_index.spark as fuse_spark
from fuse_index.errors import InputError
from fuse_index.indexes.registry import Host
from fuse_index.predicate import Context
from fuse_index.spark.source import keyed_write
from fuse_index.spark.source.data_source import source_class
from fuse_index.spark.source.options import TableLocation
from fuse_index.spark.source.write_target import KeyedTarget, open_target
from fuse_storage import SchemaError


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    fuse_spark.install(spark)
    return spark


@pytest.fixture
def url(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def make(url: str, **properties: object) -> fuse.Table:
    made = fuse.create_table(url, "id BIGINT, name STRING, n INT", primary_key=["id"], properties=properties)
    made.upsert([{"id": number, "name": "base", "n": number} for number in range(10)])
    made.maintenance.tier()
    return made


def rows(table: fuse.Table) -> dict[int, tuple[Any, ...]]:
    found = table.refresh().to_arrow().to_pylist()
    by_id = {row["id"]: (row["name"], row["n"]) for row in found}
    assert len(by_id) == len(found)
    return by_id


def frame(session: SparkSession, values: str, columns: str = "id, name, n") -> DataFrame:
    return session.sql(f"SELECT * FROM VALUES {values} AS t({columns})")


def save(df: DataFrame, url: str, mode: str = "append", **options: str) -> None:
    df.write.format("fuse").mode(mode).options(**options).save(url)


WAYS: dict[str, Callable[[DataFrame, str], Any]] = {
    "save": save,
    "write": fuse_spark.write,
    "upsert": fuse_spark.upsert,
    "insert": lambda df, url: df.sparkSession.sql(f"INSERT INTO fuse.`{url}` SELECT * FROM {{df}}", df=df),
    "write to": lambda df, url: df.writeTo(f"fuse.`{url}`").append(),
}


@pytest.mark.parametrize("way", WAYS)
def test_rows_are_put_by_one_hot_commit(session: SparkSession, url: str, way: str) -> None:
    table = make(url)
    version, expected = table.version, rows(table)
    given = session.range(8, 14, 1, 3).selectExpr("id", "concat('new ', id) AS name", "CAST(NULL AS INT) AS n")

    WAYS[way](given, url)

    assert rows(table) == expected | {number: (f"new {number}", None) for number in range(8, 14)}
    assert (table.version, table.tail.commits, table.tail.blocks) == (version + 1, 1, 1)
    assert table.snapshot.operation == "upsert"


def test_large_tasks_write_their_own_blocks(session: SparkSession, url: str) -> None:
    table = make(url, block_rows=100)
    given = session.range(0, 900, 1, 2).selectExpr("id", "repeat(uuid(), 100) AS name", "1 AS n")

    fuse_spark.upsert(given, url)

    assert sorted(rows(table)) == list(range(900))
    assert (table.tail.commits, table.tail.rows) == (1, 900)
    assert table.tail.blocks > 2
    with pytest.raises(InputError, match=r"comes twice.*order_by"):
        fuse_spark.upsert(given.union(given), url)


def test_a_key_of_several_tasks_is_refused_and_changes_nothing(session: SparkSession, url: str) -> None:
    table = make(url)
    twice = session.range(0, 4, 1, 2).selectExpr("id % 2 AS id", "CAST(id AS STRING) AS name", "CAST(id AS INT) AS n")
    version = table.version

    for way in ("insert", "upsert"):
        with pytest.raises(
            (InputError, PySparkException, Py4JJavaError), match=r"key {'id': [01]} comes twice.*order_by"
        ):
            WAYS[way](twice, url)
    assert table.refresh().version == version

    fuse_spark.upsert(twice, url, "n")
    assert [rows(table)[number] for number in (0, 1)] == [("2", 2), ("3", 3)]


def test_the_greatest_of_an_order_counts(session: SparkSession, url: str) -> None:
    table = make(url)
    late = frame(
        session,
        "(1, 'b', 2, 5), (1, 'a', 1, 4), (1, 'c', 3, NULL), (2, 'x', 1, 1), (2, 'x', 1, 1), (20, 'y', 1, 1)",
        "id, name, n, at",
    ).repartition(3, "at")

    fuse_spark.upsert(late, url, order_by="at", application=("job", 1))
    fuse_spark.upsert(late.limit(0).union(frame(session, "(1, 'z', 0, 9)", "id, name, n, at")), url, "at", ("job", 1))

    assert [rows(table)[number] for number in (1, 2, 20)] == [("b", 2), ("x", 1), ("y", 1)]
    unclear = frame(session, "(3, 'a', 1, 1), (3, 'b', 1, 1), (4, 'c', 1, 1)", "id, name, n, at").repartition(2)
    with pytest.raises(InputError, match=r"order_by does not say which.*at = 1"):
        fuse_spark.upsert(unclear, url, "at")
    same = frame(session, "(3, double('NaN'), NULL), (3, double('NaN'), NULL)", "id, at, name").coalesce(1)
    fuse_spark.upsert(same, url, "at")
    fuse_spark.upsert(unclear, url, ["at", "name"])
    assert rows(table)[3] == ("b", 1)
    with pytest.raises(InputError, match="order_by names 'when'"):
        fuse_spark.upsert(unclear, url, "when")


@pytest.mark.every_spark
def test_changes_are_applied(session: SparkSession, url: str) -> None:
    table, expected = make(url), rows(make(url + "-same"))
    given = frame(
        session,
        "(1, NULL, 1, 'delete', 7), (1, 'old', 1, 'insert', 6), (2, 'before', 2, 'update_preimage', 8), "
        "(2, 'after', 2, 'update_postimage', 8), (30, 'null', 3, NULL, 9)",
        "id, name, n, _change_type, _commit_version",
    )

    save(given.repartition(4, "name"), url)
    assert rows(table) == {key: row for key, row in expected.items() if key != 1} | {2: ("after", 2), 30: ("null", 3)}

    fuse_spark.upsert(given.where("id = 1"), url, order_by="_commit_version")
    assert 1 not in rows(table)
    with pytest.raises(InputError, match="_change_type 'gone'"):
        fuse_spark.upsert(given.selectExpr("id", "'gone' AS _change_type"), url)


def test_rows_that_lack_columns_set_those_that_they_have(
    session: SparkSession, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(url)

    fuse_spark.upsert(frame(session, "(2L, 'part'), (50L, 'new')", "ID, name").repartition(2), url)

    assert (rows(table)[2], rows(table)[50]) == (("part", 2), ("new", None))
    monkeypatch.setattr(keyed_write, "MAX_PARTIAL_BYTES", 10)
    with pytest.raises(InputError, match="lack column 'n'"):
        fuse_spark.upsert(session.createDataFrame([(1, "a")], "id BIGINT, name STRING"), url)


def test_what_cannot_be_put_is_refused_with_its_name(session: SparkSession, url: str) -> None:
    table, location = make(url), TableLocation(url)
    good, version = frame(session, "(1L, 'a', 1)"), table.version
    plain = fuse.create_table(url + "-plain", "id BIGINT, name STRING, n INT").stored.store.url
    refused: list[tuple[Callable[[], Any], str]] = [
        (lambda: save(good, url, "overwrite"), "primary key is not overwritten"),
        (lambda: KeyedTarget(table.stored, (), merge_schema=True).check(False), "no hot=false, and no mergeSchema"),
        (lambda: KeyedTarget(table.stored, (), hot=False).check(False), "no hot=false, and no mergeSchema"),
        (lambda: open_target(location, good.drop("id").schema), "lack column 'id'"),
        (lambda: open_target(location, good.withColumn("more", good.n).schema), "column 'more' that does not fit"),
        (lambda: open_target(location, good.withColumn("_commit_version", good.n).schema), "'_commit_version'"),
        (lambda: open_target(location, good.withColumn("id", good.id.cast("string")).schema), "column 'id'"),
        (lambda: fuse_spark.upsert(good.selectExpr("CAST(NULL AS BIGINT) AS id", "name", "n"), url), "'id'.*NULL"),
        (lambda: fuse_spark.upsert(good, plain), "has none: create one with primary_key"),
    ]
    for write, sentence in refused:
        with pytest.raises((AnalysisException, InputError, SchemaError), match=sentence):
            write()

    assert table.refresh().version == version


def carry(session: SparkSession, source: str, target: str) -> None:
    """Bring the changes of one table to the next, in a query that begins where the one before ended."""
    reader = session.readStream.format("fuse").option("read_changes", "true").load(source)
    query = reader.writeStream.format("fuse").option("checkpointLocation", f"{target}-checkpoint")
    query.trigger(availableNow=True).start(target).awaitTermination()


def test_three_tables_in_a_row_are_the_same(session: SparkSession, url: str) -> None:
    first, *others = tables = [
        fuse.create_table(f"{url}{number}", "id BIGINT, name STRING, n INT NOT NULL", primary_key=["id"])
        for number in range(3)
    ]
    places = [table.stored.store.url for table in tables]
    first.upsert([{"id": number, "name": "base", "n": number} for number in range(10)])
    first.maintenance.tier()
    first.delete_keys([0])
    for source, target in pairwise(places):
        carry(session, source, target)
    first.upsert(
        [{"id": 1, "name": "late", "n": 1}, {"id": 3, "name": "base", "n": 3}, {"id": 20, "name": None, "n": 0}]
    )
    first.delete_keys([2, 20, 99])
    others[0].refresh().maintenance.tier()
    first.maintenance.tier()
    first.upsert([{"id": 2, "name": "again", "n": 2}, {"id": 1, "name": "last", "n": 1}])
    for source, target in pairwise(places):
        carry(session, source, target)

    expected = rows(first)
    assert expected[2] == ("again", 2)
    assert [rows(table) for table in others] == [expected, expected]
    last = sorted(Path(f"{places[1]}-checkpoint", "commits").glob("[0-9]*"))[-1]
    last.unlink()  # as if Spark had died before it noted the batch down
    (last.parent / f".{last.name}.crc").unlink(missing_ok=True)
    version = others[0].version
    carry(session, *places[:2])
    assert others[0].refresh().version == version


def test_a_stream_of_rows_that_take_the_place_of_others_is_refused(url: str) -> None:
    source = source_class(Host.discover(), Context())({"path": make(url).stored.store.url, "skip_changes": "true"})

    with pytest.raises(InputError, match=r"has a primary key.*set read_changes"):
        source.streamReader(source.schema())


@pytest.mark.every_spark
def test_for_each_batch_upserts_once_by_job_and_batch(session: SparkSession, url: str, tmp_path: Path) -> None:
    table, put = make(url), fuse_spark.upserting(url, "job", order_by="n")
    source = fuse.create_table(url + "-source", "id BIGINT, name STRING, n INT")
    source.append([{"id": 3, "name": "late", "n": 5}, {"id": 3, "name": "early", "n": 4}])
    reader = session.readStream.format("fuse").load(source.stored.store.url)
    query = reader.writeStream.foreachBatch(put).option("checkpointLocation", str(tmp_path / "c"))
    query.trigger(availableNow=True).start().awaitTermination()
    version = table.refresh().version

    put(frame(session, "(3L, 'again', 9)"), 0)

    assert (rows(table)[3], table.version) == (("late", 5), version)
