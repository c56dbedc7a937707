"""Tables in a classic session: plain SQL asks their indexes, and the answers are those of Spark on the same rows."""

import io
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import DataFrame, SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from fuse_index.reasons import Reason
from fuse_storage import StorageError, open_store
from tests.s3 import s3_server
from tests.spark.executed import files_read

pytestmark = pytest.mark.every_spark

BLOCKS, ROWS = 6, 500


def rows(block: int) -> pa.Table:
    ids = np.arange(block * ROWS, (block + 1) * ROWS)
    values = np.where(ids % 97 == 0, np.nan, ids / 7)
    return pa.table(
        {
            "id": ids,
            "code": [f"c{(i * 7919) % 10007}" for i in ids.tolist()],
            "value": pa.array(values, from_pandas=False),
            "place": pa.array([{"city": f"city{i % 13}", "zip": int(i)} for i in ids.tolist()]),
            "at": pa.array(ids * 3_600_000_000, pa.timestamp("us", "UTC")),
            "maybe": pa.array([None if i % 3 == 0 else i % 50 for i in ids.tolist()], pa.int32()),
        }
    )


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = str(tmp_path_factory.mktemp("tables") / "events")
    table = fuse.create_table(url, rows(0).schema, properties={"block_rows": ROWS, "zone_rows": 100})
    table.create_index("by_code", "bloom", ["code"])
    for block in range(BLOCKS):
        table.append(rows(block))
    return url


@pytest.fixture
def view(spark: SparkSession, url: str) -> Iterator[str]:
    fuse_spark.install(spark)
    fuse_spark.read(spark, url).createOrReplaceTempView("events")
    yield "events"
    spark.catalog.dropTempView("events")


@pytest.fixture(scope="module")
def plain(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    """The same rows, in memory: no file, no statistics, no pushdown. Not cached: Spark's cache loses NaN."""
    return spark.createDataFrame(pa.concat_tables(rows(block) for block in range(BLOCKS)))


QUESTIONS = [
    "id = 1234",
    "id <> 1234",
    "id > 100 AND id < 130",
    "id IN (3, 700, 2999, -5)",
    "NOT (id > 100)",
    "id = 5.0",
    "id = '5'",
    "cast(id AS string) = '77'",
    "abs(id) = 4",
    "id % 99 = 7 AND code > 'c5'",
    "id > 9 AND false",
    "true",
    "false",
    "CAST(NULL AS BOOLEAN)",
    "code = 'c7919'",
    "code IN ('c1', 'c2')",
    "code <=> 'c7919'",
    "code LIKE 'c79%'",
    "code LIKE '%919'",
    "length(code) > 20",
    "value > 400",
    "value = double('NaN')",
    "NOT (value <= 400)",
    "value <> value",
    "place.zip = 77",
    "place.city = 'city3'",
    "at = timestamp'1970-02-01 00:00:00+00:00'",
    "at < timestamp'1970-01-02 00:00:00'",
    "hour(at) = 3 AND id < 50",
    "place IS NULL",
    "maybe IS NULL",
    "NOT (maybe > 3)",
    "maybe IS NOT NULL AND id < 10",
    "maybe > 45 OR id = 3",
    "maybe NOT IN (1, 2, NULL)",
]


@pytest.mark.alike
@pytest.mark.parametrize("where", QUESTIONS)
def test_answers_are_those_of_plain_rows(spark: SparkSession, view: str, plain: DataFrame, where: str) -> None:
    found = spark.sql(f"SELECT id FROM {view} WHERE {where}").collect()

    assert sorted(found) == sorted(plain.filter(where).select("id").collect())


@pytest.mark.any_spark
@pytest.mark.parametrize(
    ("where", "blocks"), [("id = 1234", 1), ("code = 'c7919'", 1), ("id BETWEEN 990 AND 1010", 2), ("id < 0", 0)]
)
def test_only_blocks_that_may_hold_an_answer_are_read(spark: SparkSession, view: str, where: str, blocks: int) -> None:
    found = spark.sql(f"SELECT * FROM {view} WHERE {where}")
    found.collect()

    assert files_read(found) == blocks


@pytest.mark.any_spark
def test_explain_names_the_index_and_what_it_removed(spark: SparkSession, view: str) -> None:
    found = spark.sql(f"SELECT id FROM {view} WHERE code = 'c7919'")
    found.collect()
    explained = fuse_spark.explain(found).to_dict()

    assert explained["blocks"] == {"total": BLOCKS, "kept": 1}
    assert ("by_code", "USED") in {(vote["index"], vote["reason"]) for vote in explained["predicates"]}


def test_explain_gives_what_the_table_gives(spark: SparkSession, url: str, view: str) -> None:
    ours = fuse_spark.explain(spark.table(view).filter("id > 700 AND maybe = 7")).to_dict()
    table = fuse.open_table(url).explain("id > 700 AND maybe = 7").to_dict()

    for level in ("snapshot", "segments", "blocks", "zones", "rows", "bytes"):
        assert ours[level] == table[level], level


def test_explain_after_adaptive_execution_lists_every_scan(spark: SparkSession, view: str) -> None:
    found = spark.sql(
        f"SELECT a.id, count(*) FROM {view} a JOIN {view} b ON a.id = b.maybe WHERE b.code = 'c7919' GROUP BY a.id"
    )
    found.collect()
    explained = fuse_spark.explain(found)

    assert isinstance(explained, fuse_spark.Explanations)
    assert sorted(each.blocks.kept for each in explained) == [1, 1]  # of the one side by the other's keys
    assert {vote.reason for each in explained for vote in each.votes} >= {Reason.NOT_PUSHED, Reason.USED}
    assert str(explained).count("snapshot") == 2


@pytest.mark.any_spark
def test_explain_of_other_tables_says_so(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match="scans no table of ours"):
        fuse_spark.explain(spark.range(3))


def test_a_dataframe_reads_the_snapshot_that_was_the_head(spark: SparkSession, tmp_path: Path) -> None:
    table = fuse.create_table(str(tmp_path / "t"), "id BIGINT")
    table.append(pa.table({"id": [1]}))
    df = fuse_spark.read(spark, str(tmp_path / "t"))
    old = table.snapshot
    table.append(pa.table({"id": [2]}))

    assert df.count() == 1
    assert fuse_spark.read(spark, str(tmp_path / "t")).count() == 2
    assert fuse_spark.read(spark, str(tmp_path / "t"), at=old.id).count() == 1
    assert fuse_spark.read(spark, str(tmp_path / "t"), at=datetime.now(UTC)).count() == 2


def test_refresh_table_moves_a_view_to_the_head(spark: SparkSession, tmp_path: Path) -> None:
    table = fuse.create_table(str(tmp_path / "t"), "id BIGINT")
    table.append(pa.table({"id": [1]}))
    fuse_spark.read(spark, str(tmp_path / "t")).createOrReplaceTempView("moving")
    fuse_spark.read(spark, str(tmp_path / "t"), at=table.snapshot.id).createOrReplaceTempView("pinned")
    try:
        table.append(pa.table({"id": [2]}))
        for name in ("moving", "pinned"):
            spark.sql(f"REFRESH TABLE {name}")
        assert spark.table("moving").filter("id > 0").count() == 2
        assert spark.table("pinned").filter("id > 0").count() == 1
    finally:
        spark.catalog.dropTempView("moving")
        spark.catalog.dropTempView("pinned")


@pytest.mark.any_spark
def test_a_refresh_drops_what_was_cached_of_the_former_snapshot(spark: SparkSession, tmp_path: Path) -> None:
    table = fuse.create_table(str(tmp_path / "t"), "id BIGINT")
    table.append(pa.table({"id": [1]}))
    fuse_spark.read(spark, str(tmp_path / "t")).createOrReplaceTempView("moving")
    try:
        part = spark.table("moving").filter("id > 0").cache()
        spark.catalog.cacheTable("moving")
        assert (part.count(), spark.table("moving").count()) == (1, 1)
        table.append(pa.table({"id": [2]}))
        assert (part.count(), spark.table("moving").count()) == (1, 1)
        spark.sql("REFRESH TABLE moving")
        assert (spark.table("moving").filter("id > 0").count(), spark.table("moving").count()) == (2, 2)
    finally:
        spark.catalog.clearCache()
        spark.catalog.dropTempView("moving")


def test_an_insert_is_refused_and_the_table_stays(spark: SparkSession, view: str, url: str) -> None:
    for attempt in ("INSERT INTO events SELECT * FROM events", "INSERT OVERWRITE events SELECT * FROM events"):
        with pytest.raises(AnalysisException):
            spark.sql(attempt)

    assert fuse.open_table(url).scan().count() == BLOCKS * ROWS


@pytest.mark.any_spark
def test_reading_without_indexes_reads_everything(spark: SparkSession, url: str) -> None:
    found = fuse_spark.read(spark, url, indexes=False).filter("id = 1234").select("id")

    assert found.collect() == [(1234,)]
    assert files_read(found) == BLOCKS
    assert fuse_spark.explain(found).to_dict()["blocks"] == {"total": BLOCKS, "kept": BLOCKS}


@pytest.mark.any_spark
def test_installing_twice_changes_nothing(spark: SparkSession, view: str) -> None:
    rules = spark._jsparkSession.experimental().extraOptimizations()
    fuse_spark.install(spark)

    assert spark._jsparkSession.experimental().extraOptimizations().length() == rules.length()
    assert spark.sql(f"SELECT id FROM {view} WHERE id = 5").collect() == [(5,)]


@pytest.mark.any_spark
def test_another_session_of_the_same_spark_has_its_own_voter(spark: SparkSession, url: str, view: str) -> None:
    other = spark.newSession()
    found = fuse_spark.read(other, url).filter("id = 5").select("id")

    assert found.collect() == [(5,)]
    assert files_read(found) == 1


@pytest.mark.any_spark
def test_a_place_without_a_table_is_named(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(fuse.NotFound, match="is no table"):
        fuse_spark.read(spark, str(tmp_path / "nothing"))


@pytest.mark.any_spark
def test_an_empty_table_has_columns_and_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    fuse.create_table(str(tmp_path / "t"), "id BIGINT, name STRING")
    df = fuse_spark.read(spark, str(tmp_path / "t"))

    assert df.columns == ["id", "name"]
    assert df.filter("id = 1").collect() == []


@pytest.mark.any_spark
def test_a_block_that_is_damaged_in_its_statistics_costs_only_time(spark: SparkSession, tmp_path: Path) -> None:
    table = fuse.create_table(str(tmp_path / "t"), "id BIGINT", properties={"zone_rows": 1})
    table.append(pa.table({"id": [1, 2]}))
    [file] = (tmp_path / "t" / "_sg").glob("*.zones.parquet")
    file.write_bytes(b"not parquet")
    df = fuse_spark.read(spark, str(tmp_path / "t"))

    assert df.filter("id = 2").collect() == [(2,)]


@pytest.fixture
def s3() -> Iterator[dict[str, str]]:
    """A real HTTP server that speaks S3, with two buckets; our store's options for it."""
    with s3_server("tables", "lake") as options:
        yield options


def test_where_spark_has_no_file_system_the_python_source_reads_and_says_so(
    spark: SparkSession, s3: dict[str, str]
) -> None:
    table = fuse.create_table("s3://tables/t", "id BIGINT", options=s3)
    table.append(pa.table({"id": [1, 2, 3]}))

    with pytest.warns(fuse_spark.FallbackWarning, match="no file system for s3://tables/t"):
        df = fuse_spark.read(spark, "s3://tables/t", options=s3)

    assert df.filter("id > 1").count() == 2


@pytest.mark.any_spark
def test_an_attached_table_whose_source_is_in_another_bucket_is_read(spark: SparkSession, s3: dict[str, str]) -> None:
    options, lake = {**s3, "shared_places": "s3://lake"}, open_store("s3://lake/t", s3)
    for first in (0, 10):
        file = io.BytesIO()
        pq.write_table(pa.table({"id": range(first, first + 10)}), file)
        lake.create(f"part={first}/0.parquet", file.getvalue())
    table = fuse.attach("s3://lake/t", "s3://tables/attached", options=options)
    with pytest.warns(fuse_spark.FallbackWarning, match="no file system for s3://tables/attached"):
        df = fuse_spark.read(spark, "s3://tables/attached", options=options)

    assert df.filter("id > 7 AND id < 12").orderBy("id").collect() == [(8, 0), (9, 0), (10, 10), (11, 10)]
    lake.create("part=0/0.parquet", file.getvalue(), overwrite=True)
    changed = r"lake/t/part=0/0\.parquet (has changed since it|is another file than the one that) was attached.* sync"
    with pytest.raises(PythonException, match=changed):  # by its ETag, or in a worker that has no footer yet by that
        df.collect()
    table.sync()
    with pytest.warns(fuse_spark.FallbackWarning):
        df = fuse_spark.read(spark, "s3://tables/attached", options=options)
    assert sorted(map(tuple, df.filter("id = 10").collect())) == [(10, 0), (10, 10)]
    with pytest.raises(StorageError, match="shared_places"):
        fuse_spark.read(spark, "s3://tables/attached", options=s3)


@pytest.mark.any_spark
def test_a_host_given_later_counts_for_dataframes_that_are_there(spark: SparkSession, url: str) -> None:
    other = spark.newSession()
    df = fuse_spark.read(other, url).filter("code = 'c7919'").select("id")
    assert fuse_spark.explain(df).to_dict()["blocks"]["kept"] == 1

    fuse_spark.install(other, fuse.Host())

    explained = fuse_spark.explain(df).to_dict()
    assert explained["blocks"]["kept"] == BLOCKS
    assert {vote["reason"] for vote in explained["predicates"] if vote["index"] == "by_code"} == {"PLUGIN_MISSING"}
    assert df.collect() == fuse_spark.read(spark, url).filter("code = 'c7919'").select("id").collect()
