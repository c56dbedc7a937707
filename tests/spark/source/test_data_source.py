"""``format("fuse")`` for reading: the same rows as the table has, of one snapshot, from no more blocks than needed."""

import math
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from fuse_index import create_table, open_table
from fuse_index.indexes.registry import Host
from fuse_index.predicate import Context
from fuse_index.spark.source import data_source
from fuse_storage import StoredTable
from tests.index import kinds
from tests.s3 import s3_server
from tests.spark.questions import BLOCKS, FEW, QUESTIONS, ROWS, numbers

NAN, EMOJI = math.nan, "😀"
EVERYTHING = pa.table(
    {
        "b": pa.array([True, None, False]),
        "i8": pa.array([1, None, -128], pa.int8()),
        "i16": pa.array([1, None, 2], pa.int16()),
        "i32": pa.array([1, None, 2], pa.int32()),
        "i64": pa.array([1, None, 1 << 62], pa.int64()),
        "f32": pa.array([1.5, None, NAN], pa.float32()),
        "f64": pa.array([-0.0, None, math.inf], pa.float64()),
        "dec": pa.array([Decimal("1.50"), None, Decimal("-99999999.99")], pa.decimal128(10, 2)),
        "day": pa.array([date(2020, 2, 29), None, date(1500, 1, 1)]),
        "ts": pa.array(
            [datetime(2020, 11, 1, 5, 30, tzinfo=UTC), None, datetime(1900, 1, 1, tzinfo=UTC)],
            pa.timestamp("us", "UTC"),
        ),
        "ntz": pa.array([datetime(2020, 3, 8, 2, 30), None, datetime(1, 1, 1)], pa.timestamp("us")),
        "s": pa.array(["", None, EMOJI]),
        "bin": pa.array([b"", None, b"\x00\xff"]),
        "st": pa.array(
            [{"x": 1, "y": ["a", None]}, None, {"x": None, "y": None}],
            pa.struct({"x": pa.int32(), "y": pa.list_(pa.string())}),
        ),
        "m": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
        "a.b c`d": pa.array([1, None, 3], pa.int32()),
    }
)


def append(table: StoredTable, rows: pa.Table) -> StoredTable:
    writing = table.writer()
    writing.write(rows)
    transaction = table.transaction()
    transaction.append(writing.finish())
    return transaction.commit("append")


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    own = spark.newSession()
    data_source.register_source(own)
    return own


@pytest.fixture(scope="module")
def pushing(spark: SparkSession) -> SparkSession:
    """One in which Spark pushes filters into Python data sources (4.1 and later; off by default)."""
    own = spark.newSession()
    own.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    data_source.register_source(own)
    return own


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Eight blocks of a hundred ids each."""
    place = str(tmp_path_factory.mktemp("source") / "numbers")
    table = StoredTable.create(place, numbers(0).schema)
    for block in range(BLOCKS):
        table = append(table, numbers(block))
    return place


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = str(tmp_path_factory.mktemp("source") / "everything")
    append(StoredTable.create(place, EVERYTHING.schema), EVERYTHING)
    return place


def load(session: SparkSession, url: str, **options: str) -> DataFrame:
    return session.read.format("fuse").options(**options).load(url)


def values(df: DataFrame) -> list[tuple[object, ...]]:
    return sorted((tuple(row) for row in df.collect()), key=repr)


def ids(df: DataFrame) -> list[int]:
    return sorted(row.id for row in df.select("id").collect())


@pytest.mark.every_spark
def test_every_type_comes_back_as_it_was_written(session: SparkSession, everything: str) -> None:
    read = load(session, everything).toArrow()

    assert str(read.cast(EVERYTHING.schema).to_pylist()) == str(EVERYTHING.to_pylist())


def test_the_schema_is_the_tables(session: SparkSession, everything: str) -> None:
    assert load(session, everything).schema.simpleString() == (
        "struct<b:boolean,i8:tinyint,i16:smallint,i32:int,i64:bigint,f32:float,f64:double,dec:decimal(10,2),day:date,ts:timestamp,"
        "ntz:timestamp_ntz,s:string,bin:binary,st:struct<x:int,y:array<string>>,m:map<string,bigint>,a.b c`d:int>"
    )


@pytest.mark.every_spark
@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kathmandu"])
def test_an_instant_is_the_same_in_every_time_zone(spark: SparkSession, everything: str, zone: str) -> None:
    own = spark.newSession()
    own.conf.set("spark.sql.session.timeZone", zone)
    data_source.register_source(own)
    micros = load(own, everything).selectExpr("unix_micros(ts) t").where("t > 0").collect()

    assert [row.t for row in micros] == [1604208600000000]


def test_plain_sql_over_a_view(session: SparkSession, url: str) -> None:
    session.sql(f"CREATE OR REPLACE TEMPORARY VIEW numbers USING fuse OPTIONS (path '{url}')")
    query = (
        "SELECT a.kind, count(*) n FROM numbers a JOIN numbers b USING (id) WHERE b.id BETWEEN 95 AND "
        "104 GROUP BY 1 ORDER BY 1"
    )
    found = session.sql(query)

    assert [tuple(row) for row in found.collect()] == [("k0", 2), ("k1", 2), ("k2", 2), ("k3", 2), ("k4", 2)]


def test_a_dataframe_keeps_its_snapshot(session: SparkSession, tmp_path: Path) -> None:
    table = append(StoredTable.create(str(tmp_path / "t"), numbers(0).schema), numbers(0))
    before = load(session, str(tmp_path / "t"))
    append(table, numbers(1))

    assert before.count() == ROWS
    assert load(session, str(tmp_path / "t")).count() == 2 * ROWS


def test_an_older_snapshot_is_read_by_id_and_by_time(session: SparkSession, tmp_path: Path) -> None:
    first = append(StoredTable.create(str(tmp_path / "t"), numbers(0).schema), numbers(0))
    append(first, numbers(1))

    assert load(session, str(tmp_path / "t"), at=first.snapshot.id).count() == ROWS
    assert load(session, str(tmp_path / "t"), at=first.snapshot.timestamp.isoformat()).count() == ROWS


def test_an_empty_table_has_no_rows(session: SparkSession, pushing: SparkSession, tmp_path: Path) -> None:
    StoredTable.create(str(tmp_path / "t"), EVERYTHING.schema)

    assert load(session, str(tmp_path / "t")).collect() == []
    assert load(pushing, str(tmp_path / "t")).where("i32 = 1").collect() == []


def test_the_where_option_filters_exactly(session: SparkSession, url: str) -> None:
    assert ids(load(session, url, where="id >= 795 AND kind IN ('k0', 'k1') OR id = 3")) == [3, 795, 796]
    assert load(session, url, where="isnan(half) AND id < 0").count() == 0


def test_the_columns_option_picks_and_orders(session: SparkSession, url: str) -> None:
    picked = load(session, url, columns="half,`id`", where="kind = 'k3' AND id < 5")

    assert picked.columns == ["half", "id"]
    assert [tuple(row) for row in picked.collect()] == [(1.5, 3)]


@pytest.mark.every_spark
def test_columns_are_found_as_the_session_finds_them(session: SparkSession, url: str) -> None:
    assert load(session, url, columns="ID", where="Id = 5").collect()[0].asDict() == {"id": 5}


def test_odd_names_are_picked_in_back_quotes(session: SparkSession, everything: str) -> None:
    assert load(session, everything, columns="`a.b c``d`, s").columns == ["a.b c`d", "s"]


def test_a_schema_of_ones_own_picks_columns(session: SparkSession, url: str) -> None:
    picked = session.read.format("fuse").schema("half double, id bigint").load(url)

    assert picked.where("id = 4").collect()[0].asDict() == {"half": 2.0, "id": 4}


def test_counting_needs_no_columns(session: SparkSession, url: str) -> None:
    assert load(session, url).count() == BLOCKS * ROWS


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"wher": "id = 1"}, "no option 'wher'"),
        ({"where": "nobody = 1"}, "nobody"),
        ({"where": "id = "}, "id ="),
        ({"where": "soundex(kind) = 'x'"}, "only Spark can evaluate"),
        ({"columns": "id,nobody"}, "no column 'nobody'"),
        ({"columns": "id,id"}, "twice"),
        ({"columns": "id,`"}, "cannot be read"),
        ({"at": "no-such-tag"}, "no-such-tag"),
        ({"branch": "nowhere"}, "nowhere"),
        ({"at": ""}, "has no tag ''"),
        ({"branch": ""}, "'' is no name for a branch"),
        ({"where": ""}, "an empty predicate"),
    ],
)
def test_a_wrong_option_is_named_at_load(session: SparkSession, url: str, options: dict[str, str], says: str) -> None:
    with pytest.raises(AnalysisException, match=says):
        load(session, url, **options)


@pytest.mark.every_spark
@pytest.mark.parametrize(
    ("schema", "says"), [("id int", "'id' is int64"), ("nobody int", "'nobody'"), ("id bigint not null", "may be NULL")]
)
def test_a_schema_that_the_table_lacks_is_refused(session: SparkSession, url: str, schema: str, says: str) -> None:
    with pytest.raises(AnalysisException, match=says):
        session.read.format("fuse").schema(schema).load(url).collect()


def test_a_missing_path_is_refused_by_name(session: SparkSession) -> None:
    with pytest.raises(AnalysisException, match="needs the table's URL"):
        session.read.format("fuse").load()


def test_a_missing_table_and_a_path_that_holds_something_else_are_told(session: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(AnalysisException, match="nothing-here"):
        load(session, str(tmp_path / "nothing-here"))
    with pytest.raises(AnalysisException, match=str(tmp_path)):
        load(session, str(tmp_path))


def test_tables_in_the_memory_of_one_process_are_refused(session: SparkSession) -> None:
    with pytest.raises(AnalysisException, match="lives in one process"):
        load(session, "memory://numbers")


@pytest.mark.parametrize("prefix", ["file://", "file:"])
def test_file_urls_are_understood_as_spark_prints_them(session: SparkSession, url: str, prefix: str) -> None:
    assert load(session, prefix + url).count() == BLOCKS * ROWS


def test_the_class_carries_the_hosts_kinds_into_other_processes(spark: SparkSession, url: str) -> None:
    own = spark.newSession()
    made = data_source.register_source(own, Host.discover())

    assert made.host.kinds.keys() == Host.discover().kinds.keys()
    assert load(own, url, where="id = 7").count() == 1


def test_kinds_that_are_not_installed_travel_with_the_class(spark: SparkSession, tmp_path: Path) -> None:
    """Planning and tasks run in processes that could not discover them."""
    host = Host([kinds.Values])
    table = create_table(str(tmp_path / "t"), numbers(0).schema, properties={"block_rows": ROWS}, host=host)
    table.create_index("values_of_kind", "values", ["kind"])
    data_source.register_source(spark, host)  # in the active session, where Spark looks for the source of a write
    spark.createDataFrame(numbers(0)).coalesce(1).write.format("fuse").mode("append").save(str(tmp_path / "t"))
    data_source.register_source(spark)

    assert open_table(str(tmp_path / "t"), host=host).explain("kind = 'k'").to_dict()["blocks"]["kept"] == 0
    own = spark.newSession()
    data_source.register_source(own, host)
    assert load(own, str(tmp_path / "t"), where="kind = 'k3'").count() == ROWS // 5


@pytest.mark.parametrize("lost", ["_i", "_x"])
def test_lost_index_files_lose_no_rows(session: SparkSession, tmp_path: Path, lost: str) -> None:
    table = create_table(str(tmp_path / "t"), numbers(0).schema)
    table.create_index("by_kind", "bloom", ["kind"])
    table.append(numbers(0))
    files = [path for path in (tmp_path / "t" / lost).rglob("*") if path.is_file()]
    for path in files:
        path.unlink()

    assert files
    assert load(session, str(tmp_path / "t"), where="kind = 'k3'").count() == ROWS // 5


def test_where_reads_times_in_the_zone_of_the_session_or_of_its_option(spark: SparkSession, everything: str) -> None:
    own = spark.newSession()
    own.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    data_source.register_source(own)
    tokyo, utc = "ts = timestamp'2020-11-01 14:30:00'", "ts = timestamp'2020-11-01 05:30:00'"

    assert (load(own, everything, where=tokyo).count(), load(own, everything, where=utc).count()) == (1, 0)
    assert load(own, everything, where=utc, timeZone="UTC").count() == 1


@pytest.fixture(scope="module")
def bucket() -> Iterator[dict[str, str]]:
    """An object store over HTTP, and the options that reach it."""
    with s3_server("tables") as options:
        yield {f"store.{key}": value for key, value in options.items()} | {"store.allow_http": "true"}


def test_tables_on_an_object_store_are_reached_with_its_options(spark: SparkSession, bucket: dict[str, str]) -> None:
    data_source.register_source(spark)
    for _ in range(2):
        spark.createDataFrame(numbers(1)).write.format("fuse").options(**bucket).mode("append").save(
            "s3://tables/numbers"
        )

    assert load(spark, "s3://tables/numbers", where="id = 150", **bucket).count() == 2


def reader(url: str, **options: str) -> data_source.BatchReader:
    made = data_source.source_class(Host.discover(), Context())({"path": url, **options})
    return made.reader(made.schema())


def blocks_of(reader: data_source.BatchReader) -> int:
    return sum(len(part.value.plan.blocks) for part in reader.partitions())


def test_where_is_planned_with_the_tables_indexes(url: str) -> None:
    assert blocks_of(reader(url)) == BLOCKS
    assert blocks_of(reader(url, where="id = 250")) == 1
    assert blocks_of(reader(url, where="id = -1")) == 0


def test_tasks_hold_about_a_million_rows(tmp_path: Path) -> None:
    table = StoredTable.create(str(tmp_path / "t"), pa.schema({"n": pa.int32()}), properties={"block_rows": 400_000})
    append(table, pa.table({"n": pa.array(range(2_000_000), pa.int32())}))
    parts = reader(str(tmp_path / "t")).partitions()

    assert [int(part.value.plan.blocks.zone_rows.sum()) for part in parts] == [800_000, 1_200_000]
    assert [sum(batch.num_rows for batch in reader(str(tmp_path / "t")).read(part)) for part in parts] == [
        800_000,
        1_200_000,
    ]


@pytest.fixture(scope="module")
def plain(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    """The same rows, without us. Not cached: Spark's own cache loses NaNs (``half > 398`` finds none of them there)."""
    return spark.createDataFrame(pa.concat_tables([numbers(block) for block in range(BLOCKS)]))


@pytest.fixture(scope="module")
def table(session: SparkSession, url: str) -> DataFrame:
    return load(session, url)


@pytest.mark.alike
@pytest.mark.every_spark
@pytest.mark.parametrize("question", QUESTIONS)
def test_filters_give_the_rows_that_spark_alone_gives(table: DataFrame, plain: DataFrame, question: str) -> None:
    assert str(values(table.where(question))) == str(values(plain.where(question)))


def test_filters_of_one_query_take_no_rows_from_the_next(pushing: SparkSession, url: str) -> None:
    """Spark keeps one plan of a Python source for all scans of a relation; filters must not be part of it."""
    table = load(pushing, url)
    table.createOrReplaceTempView("shared")

    assert table.where("id = 250").count() == 1
    assert table.count() == BLOCKS * ROWS
    assert ids(table.where("id < 3 OR id > 797")) == [0, 1, 2, 798, 799]
    both = (
        "SELECT id FROM shared WHERE id = 7 UNION ALL SELECT id FROM shared WHERE id = 700 UNION "
        "ALL SELECT id FROM shared"
    )
    assert pushing.sql(both).count() == BLOCKS * ROWS + 2


@pytest.mark.parametrize("question", FEW)
def test_the_where_option_gives_the_rows_that_spark_alone_gives(
    session: SparkSession, plain: DataFrame, url: str, question: str
) -> None:
    assert str(values(load(session, url, where=question))) == str(values(plain.where(question)))
