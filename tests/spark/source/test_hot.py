"""Hot rows in Spark: read with all others by its own reader, streamed once, and written by small batches."""

from pathlib import Path

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

import fuse_index as fuse
import fuse_index.spark as fuse_spark
import fuse_storage as storage
from fuse_storage import Corrupt, InvalidArgument


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    fuse_spark.install(spark)
    return spark


@pytest.fixture
def url(tmp_path: Path) -> str:
    return str(tmp_path / "table")


def rows(start: int, count: int) -> pa.Table:
    ids = range(start, start + count)
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [f"n{n}" for n in ids], "x": [n / 4 for n in ids]})


def make(url: str, **properties: object) -> fuse.Table:
    table = fuse.create_table(
        url, "id BIGINT, name STRING, x DOUBLE", ["id"], {"block_rows": 50, "hot_rows": 20} | properties
    )
    table.append(rows(0, 200))
    for start in range(200, 230, 10):
        table.append(rows(start, 10))
    return table


def test_a_scan_of_a_hot_table_finds_what_the_tiered_one_has(session: SparkSession, url: str) -> None:
    table = make(url)
    table.create_index("by_name", "bloom", ["name"])
    hot, source = fuse_spark.read(session, url), session.read.format("fuse").load(url)
    table.maintenance.tier()
    tiered = fuse_spark.read(session, url)

    for where in ("true", "id = 207", "name = 'n211' OR id < 3", "x > 56", "id BETWEEN 198 AND 203", "id < 0"):
        expected = sorted(map(tuple, tiered.filter(where).collect()))
        assert sorted(map(tuple, hot.filter(where).collect())) == expected
        assert sorted(map(tuple, source.filter(where).collect())) == expected
    joined = hot.alias("a").join(hot.alias("b"), "id").filter("a.id >= 195")
    assert joined.count() == 35
    assert (
        hot.groupBy().agg({"id": "sum", "*": "count"}).collect()
        == tiered.groupBy().agg({"id": "sum", "*": "count"}).collect()
    )
    assert hot.orderBy("id", ascending=False).limit(3).select("id").collect() == [(229,), (228,), (227,)]


def test_a_stream_goes_through_hot_commits_and_tiering_with_no_row_lost_or_doubled(
    session: SparkSession, url: str, tmp_path: Path
) -> None:
    table, target = make(url), str(tmp_path / "copy")
    fuse.create_table(target, "id BIGINT, name STRING, x DOUBLE", properties={"hot_rows": 100})

    def run_once() -> None:
        reader = session.readStream.format("fuse").load(url).writeStream.format("fuse")
        query = reader.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start(target)
        query.awaitTermination()

    run_once()
    table.append(rows(230, 5))
    table.append(rows(235, 5))
    run_once()
    table.maintenance.tier()
    run_once()
    table.append(rows(240, 1))
    table.maintenance.compact()
    run_once()

    copy = fuse.open_table(target)
    assert sorted(copy.to_arrow().column("id").to_pylist()) == list(range(241))
    kinds = [entry.kind for entry in copy.stored.history()]
    assert kinds.count("hot") >= 1


@pytest.mark.every_spark
def test_a_small_batch_is_a_hot_commit_and_a_large_one_is_not(session: SparkSession, url: str) -> None:
    table = make(url)
    small = session.range(300, 305).selectExpr("id", "'a' AS name", "CAST(id AS DOUBLE) AS x").repartition(3)
    small.write.format("fuse").mode("append").save(url)
    assert table.refresh().tail.commits == 4
    small.write.format("fuse").mode("append").option("hot", "false").save(url)
    assert table.refresh().tail.commits == 4
    large = session.range(400, 430).selectExpr("id", "'a' AS name", "CAST(id AS DOUBLE) AS x").repartition(2)
    large.write.format("fuse").mode("append").save(url)
    assert table.refresh().tail.commits == 4
    large.write.format("fuse").mode("append").option("hot", "true").save(url)
    assert table.refresh().tail.commits == 5
    with pytest.raises(AnalysisException, match="say true or false"):
        small.write.format("fuse").mode("append").option("hot", "warm").save(url)

    ids = table.to_arrow().column("id").to_pylist()
    assert sorted(ids) == sorted([*range(230), *range(300, 305), *range(300, 305), *range(400, 430), *range(400, 430)])


def test_statements_change_hot_rows(session: SparkSession, url: str) -> None:
    table = make(url)
    fuse_spark.delete(session, url, "id IN (3, 207)")
    fuse_spark.update(session, url, "id = 208", {"name": "'other'"})

    found = table.refresh().scan("id >= 205 AND id < 210").to_arrow()
    assert dict(zip(found.column("id").to_pylist(), found.column("name").to_pylist(), strict=True)) == {
        205: "n205",
        206: "n206",
        208: "other",
        209: "n209",
    }
    assert table.count() == 228


def test_a_lost_hot_block_or_list_of_them_is_an_error_however_it_is_read(session: SparkSession, url: str) -> None:
    table = make(url)
    (block, *_), folder = table.stored.blocks().locations[-1:], Path(url)
    lost = folder / block
    data = lost.read_bytes()
    native, source = fuse_spark.read(session, url), session.read.format("fuse").load(url)
    lost.unlink()
    storage.process_cache.clear()
    try:
        session.conf.set("spark.sql.files.ignoreMissingFiles", "true")
        for frame in (native, source, fuse_spark.read(session, url)):
            with pytest.raises((PySparkException, Py4JJavaError, Corrupt), match=lost.name):
                frame.filter("x > 50").collect()
    finally:
        session.conf.unset("spark.sql.files.ignoreMissingFiles")
    for ask in (
        lambda opened: opened.to_arrow(),
        lambda opened: opened.count("x > 55.1"),
        lambda opened: opened.maintenance.tier(),
    ):
        with pytest.raises(Corrupt, match=lost.name):
            ask(fuse.open_table(url))
    lost.write_bytes(data)

    widened = fuse.open_table(url)
    widened.add_column("more", "int")
    tail = folder / "_ss" / f"{widened.snapshot.id}.tail.parquet"
    tail.unlink()
    storage.process_cache.clear()
    for ask in (lambda opened: opened.count(), lambda _: fuse_spark.read(session, url).count()):
        with pytest.raises(Corrupt, match=tail.name):
            ask(fuse.open_table(url))


def test_a_state_is_read_by_its_version_and_without_its_tail(session: SparkSession, url: str) -> None:
    table = make(url)
    version = table.version
    table.append(rows(230, 5))
    whole, base = fuse_spark.read(session, url, version=version), fuse_spark.read(session, url, tail=False)
    source = session.read.format("fuse")

    assert [frame.count() for frame in (whole, base, fuse_spark.read(session, url))] == [230, 200, 235]
    assert [frame.filter("id >= 195").count() for frame in (whole, base)] == [35, 5]
    assert base.selectExpr("max(id)", "sum(x)").first() == (199, sum(n / 4 for n in range(200)))
    assert source.option("version", version).load(url).filter("id >= 195").count() == 35
    assert source.option("tail", "false").load(url).filter("id >= 195").count() == 5
    assert fuse_spark.read(session, url, version=version, tail=False).count() == 200
    table.maintenance.tier()
    assert (whole.count(), base.count(), fuse_spark.read(session, url, tail=False).count()) == (230, 200, 235)
    for options in ({"version": "0"}, {"version": "x"}, {"tail": "no"}, {"version": "2", "at": "v1"}):
        with pytest.raises((AnalysisException, InvalidArgument), match=r"version|tail"):
            source.options(**options).load(url).count()


def test_executors_tier_in_one_commit(session: SparkSession, url: str) -> None:
    table = make(url)
    table.create_index("by_name", "bloom", ["name"])
    for start in range(230, 330, 20):
        table.append(rows(start, 20))

    fuse_spark.tier(session, url, min_age="1h")
    assert table.refresh().tail.rows == 130
    fuse_spark.tier(session, url)
    fuse_spark.tier(session, url)

    assert table.refresh().tail.rows == 0
    assert table.history().column("operation").to_pylist().count("tier") == 1
    assert sorted(table.to_arrow().column("id").to_pylist()) == list(range(330))
    assert [names for names in table.inspect.blocks().column("indexes").to_pylist() if names != ["by_name"]] == []
