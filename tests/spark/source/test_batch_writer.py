"""``format("fuse")`` for writing: all rows or none, once, in the table's own types."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from fuse_index.indexes.registry import Host
from fuse_index.spark.schemas import all_nullable, to_arrow_schema, to_spark_schema
from fuse_index.spark.source import data_source
from fuse_index.spark.source.batch_writer import BatchWriter, TaskCommitMessage
from fuse_index.spark.source.options import TableLocation
from fuse_index.spark.source.task_rows import TaskRows
from fuse_index.spark.source.write_target import HeapTarget, KeyedTarget, open_target
from fuse_storage import StorageError, StoredTable
from fuse_storage.testing import check_invariants


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    """The active session: Spark looks for the source of a write there, whosever DataFrame it is."""
    data_source.register_source(spark)
    return spark


@contextmanager
def configured(session: SparkSession, **settings: str) -> Iterator[SparkSession]:
    before = {name: session.conf.get(name) for name in settings}
    for name, value in settings.items():
        session.conf.set(name, value)
    try:
        yield session
    finally:
        for name, value in before.items():
            session.conf.set(name, value)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return str(tmp_path / "table")


def save(df: DataFrame, url: str, mode: str = "append") -> None:
    df.write.format("fuse").mode(mode).save(url)


def rows(url: str) -> pa.Table:
    table = StoredTable.open(url)
    blocks = table.blocks()
    names = table.snapshot.schema.names
    parts = [table.read_block(blocks, place, names, None) for place in range(len(blocks))]
    return pa.concat_tables(parts) if parts else table.snapshot.schema.arrow.empty_table()


def ids(url: str) -> list[int]:
    return sorted(rows(url).column("id").to_pylist())


def commits(url: str) -> list[str]:
    return [entry.operation for entry in StoredTable.open(url).history()]


def files(url: str) -> set[str]:
    return {str(path) for path in Path(url).rglob("*") if path.is_file()}


@pytest.mark.every_spark
def test_a_dataframe_creates_the_table_that_is_not_there(session: SparkSession, url: str) -> None:
    save(session.range(10), url)

    assert ids(url) == list(range(10))
    assert StoredTable.open(url).snapshot.schema.arrow == pa.schema(
        {"id": pa.int64()}
    )  # nullable, though range() never is NULL
    check_invariants(StoredTable.open(url))


def test_overwrite_creates_it_too(session: SparkSession, url: str) -> None:
    save(session.range(10), url, "overwrite")

    assert ids(url) == list(range(10))


@pytest.mark.every_spark
def test_one_write_is_one_commit(session: SparkSession, url: str) -> None:
    save(session.range(0, 10, 1, 4), url)
    before = len(commits(url))
    save(session.range(10, 20, 1, 4), url)

    assert ids(url) == list(range(20))
    assert len(commits(url)) == before + 1
    assert commits(url)[0] == "append"


def test_overwrite_replaces_all_rows_in_one_commit(session: SparkSession, url: str) -> None:
    save(session.range(10), url)
    old = StoredTable.open(url)
    save(session.range(100, 103), url, "overwrite")

    assert ids(url) == [100, 101, 102]
    assert len(commits(url)) == len(old.history()) + 1
    assert old.snapshot.row_count == 10  # and is still there to be read
    assert load(session, url, at=old.snapshot.id).count() == 10


def load(session: SparkSession, url: str, **options: str) -> DataFrame:
    return session.read.format("fuse").options(**options).load(url)


def test_a_table_can_be_overwritten_with_what_was_read_of_it(session: SparkSession, url: str) -> None:
    save(session.range(10), url)
    load(session, url).where("id % 2 = 0").createOrReplaceTempView("even")
    save(session.table("even"), url, "overwrite")

    assert ids(url) == [0, 2, 4, 6, 8]


def test_sql_inserts_into_a_view(session: SparkSession, url: str) -> None:
    save(session.range(3), url)
    session.sql(f"CREATE OR REPLACE TEMPORARY VIEW target USING fuse OPTIONS (path '{url}')")
    session.sql("INSERT INTO target VALUES (7), (8)")

    assert ids(url) == [0, 1, 2, 7, 8]


def test_a_view_takes_inserts_and_shows_what_was_there_when_it_was_made(session: SparkSession, url: str) -> None:
    save(session.range(1), url)
    view = f"CREATE OR REPLACE TEMPORARY VIEW target USING fuse OPTIONS (path '{url}')"
    session.sql(view)
    for number in (1, 2, 3):
        session.sql(f"INSERT INTO target VALUES ({number})")
    assert [row.id for row in session.table("target").collect()] == [0]
    session.sql(view)
    session.sql("INSERT OVERWRITE target SELECT id FROM target WHERE id > 1")

    assert ids(url) == [2, 3]


def test_odd_names_are_kept(session: SparkSession, url: str) -> None:
    save(session.sql("SELECT 1 `a.b`, 2 `c d`, 3 `e``f`, named_struct('g.h', 4) i"), url)
    save(session.sql("SELECT 1 `a.b`, 2 `c d`, 3 `e``f`, named_struct('g.h', 4) i"), url)

    assert rows(url).to_pylist() == 2 * [{"a.b": 1, "c d": 2, "e`f": 3, "i": {"g.h": 4}}]


def test_nothing_appended_commits_nothing(session: SparkSession, url: str) -> None:
    save(session.range(3), url)
    before = commits(url)
    save(session.range(0), url)
    save(session.range(9).where("id < 0").repartition(3), url)

    assert commits(url) == before


def test_overwriting_with_nothing_empties_the_table(session: SparkSession, url: str) -> None:
    save(session.range(3), url)
    save(session.range(0), url, "overwrite")

    assert rows(url).num_rows == 0


def test_empty_partitions_make_no_blocks(session: SparkSession, url: str) -> None:
    save(session.range(2).repartition(8), url)

    assert ids(url) == [0, 1]
    assert StoredTable.open(url).snapshot.block_count <= 2


TYPES = """
    true b, 1Y i8, 1S i16, 1 i32, 1L i64, 1.5F f32, double('nan') f64, 1.50BD dec, date'2020-02-29' day,
    timestamp'2020-11-01 01:30:00 America/New_York' ts, timestamp_ntz'2020-03-08 02:30:00' ntz, '😀' s, X'00FF' bin,
    named_struct('t', timestamp'2020-01-01 00:00:00Z', 'l', array(1, null)) st,
    map('k', timestamp'2020-01-01 00:00:00Z') m
"""


@pytest.mark.every_spark
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
@pytest.mark.parametrize("large", ["false", "true"])
def test_every_type_arrives_as_it_is(session: SparkSession, url: str, zone: str, large: str) -> None:
    with configured(
        session, **{"spark.sql.session.timeZone": zone, "spark.sql.execution.arrow.useLargeVarTypes": large}
    ):
        save(session.sql(f"SELECT {TYPES}"), url)
    instant = datetime(2020, 1, 1, tzinfo=UTC)

    (row,) = rows(url).to_pylist()
    assert str(row.pop("f64")) == "nan"
    assert row == {
        "b": True,
        "i8": 1,
        "i16": 1,
        "i32": 1,
        "i64": 1,
        "f32": 1.5,
        "dec": Decimal("1.50"),
        "day": date(2020, 2, 29),
        "ts": datetime(2020, 11, 1, 5, 30, tzinfo=UTC),
        "ntz": datetime(2020, 3, 8, 2, 30),
        "s": "😀",
        "bin": b"\x00\xff",
        "st": {"t": instant, "l": [1, None]},
        "m": [("k", instant)],
    }


def test_char_and_varchar_are_text(session: SparkSession, url: str) -> None:
    session.sql("CREATE OR REPLACE TEMPORARY VIEW padded AS SELECT cast('ab' AS varchar(5)) v, cast('ab' AS char(4)) c")
    save(session.table("padded"), url)
    save(session.createDataFrame([("x", "y")], "v string, c string"), url)

    assert sorted(rows(url).column("v").to_pylist()) == ["ab", "x"]
    assert rows(url).schema == pa.schema({"v": pa.string(), "c": pa.string()})


def test_columns_are_matched_by_name_not_by_place(session: SparkSession, url: str) -> None:
    save(session.sql("SELECT 1 a, 'x' b"), url)
    save(session.sql("SELECT 'y' b, 2 a"), url)
    save(session.sql("SELECT 'z' B, 3 A"), url)

    assert sorted(rows(url).to_pylist(), key=str) == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}, {"a": 3, "b": "z"}]


def test_narrower_numbers_are_widened(session: SparkSession, url: str) -> None:
    save(session.sql("SELECT 1L a, 1.5D b"), url)
    save(session.sql("SELECT 2 a, 2.5F b UNION ALL SELECT NULL, NULL"), url)

    assert sorted(rows(url).to_pylist(), key=str) == [{"a": 1, "b": 1.5}, {"a": 2, "b": 2.5}, {"a": None, "b": None}]


def test_a_column_of_nulls_alone_fits_every_column(session: SparkSession, url: str) -> None:
    save(session.sql("SELECT 1 a, 'x' b"), url)
    save(session.sql("SELECT NULL a, NULL b"), url)

    assert rows(url).column("a").to_pylist() == [1, None]


@pytest.mark.every_spark
@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("SELECT 1 a, 'x' bb", "'bb' .* did you mean \\['b'\\]"),
        ("SELECT 1 a, 'x' b, 2 c", "'c' .*mergeSchema"),
        ("SELECT 1 a, 2 b", "'b' is string"),
        ("SELECT 'x' a, 'x' b", "'a' is int32"),
        ("SELECT 1 a, 'x' b, 3 A", "'a'"),
        ("SELECT 1 a, parse_json('1') b", "'b' is string, and the rows have variant"),
        ("SELECT interval '1' month a, 'x' b", "'a' has type interval month"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused_at_once_by_name(
    session: SparkSession, url: str, query: str, says: str
) -> None:
    save(session.sql("SELECT 1 a, 'x' b"), url)
    before = files(url)
    with pytest.raises(Exception, match=says):
        save(session.sql(query), url)

    assert files(url) == before


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("SELECT NULL a", "'a'"),
        ("SELECT named_struct('x', NULL) a", "'a.x'"),
        ("SELECT 1 a, 2 a", "'a'"),
        ("SELECT interval '1' day a", "'a' has type interval day"),
        ("SELECT 'x' COLLATE UNICODE_CI a", "collate UNICODE_CI"),
    ],
)
def test_no_table_is_created_of_what_it_cannot_hold(session: SparkSession, url: str, query: str, says: str) -> None:
    with pytest.raises(Exception, match=says):
        save(session.sql(query), url)

    assert not Path(url).exists()


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_dataframe_may_lack_columns_and_fields(session: SparkSession, url: str, mode: str) -> None:
    save(session.sql("SELECT 1 a, 'x' b, named_struct('c', 1, 'd', 2) s"), url)
    save(session.sql("SELECT 2 a, named_struct('D', 3) S".replace("'D'", "'d'")), url, mode)

    assert rows(url).to_pylist()[-1] == {"a": 2, "b": None, "s": {"c": None, "d": 3}}


def test_a_column_that_may_not_be_null_may_not_be_missing(session: SparkSession, url: str) -> None:
    StoredTable.create(url, pa.schema([pa.field("a", pa.int32(), nullable=False), ("b", pa.int32())]))
    with pytest.raises(Exception, match="lack column 'a', which is NOT NULL and has no default"):
        save(session.sql("SELECT 1 b"), url)

    assert commits(url) == ["create"]


def test_merge_schema_adds_columns_in_the_commit_of_the_rows(session: SparkSession, url: str) -> None:
    save(session.sql("SELECT 1 a, named_struct('c', 1) s"), url)
    wider = session.sql("SELECT 5000000000 A, named_struct('d', 'x') s, array(1) t")
    wider.write.format("fuse").mode("append").option("mergeSchema", "true").save(url)

    assert rows(url).to_pylist() == [
        {"a": 1, "s": {"c": 1, "d": None}, "t": None},
        {"a": 5_000_000_000, "s": {"c": None, "d": "x"}, "t": [1]},
    ]
    assert commits(url) == ["append", "append", "create"]


def test_null_in_a_not_null_column_is_refused_by_name(session: SparkSession, url: str) -> None:
    StoredTable.create(url, pa.schema([pa.field("a", pa.int32(), nullable=False)]))
    save(session.sql("SELECT 1 a"), url)
    before = commits(url)
    with pytest.raises(Exception, match="'a' is NOT NULL") as failure:
        save(session.sql("SELECT CAST(NULL AS int) a"), url)

    assert "Traceback" not in str(failure.value)
    assert commits(url) == before


@pytest.mark.every_spark
def test_the_default_mode_is_refused_by_spark(session: SparkSession, url: str) -> None:
    with pytest.raises(Exception, match='Please use either the "Append" or "Overwrite" mode'):
        session.range(3).write.format("fuse").save(url)

    assert not Path(url).exists()


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [("at", "x", "no option 'at'"), ("mergeSchema", "yes", "say true or false"), ("branch", "b", "b")],
)
def test_options_that_writing_does_not_have_are_refused(
    session: SparkSession, url: str, option: str, value: str, says: str
) -> None:
    with pytest.raises(Exception, match=says):
        session.range(3).write.format("fuse").option(option, value).mode("append").save(url)

    assert not Path(url).exists()


def test_a_path_that_holds_something_else_is_left_alone(session: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("hello")
    with pytest.raises(Exception, match=str(tmp_path)):
        save(session.range(3), str(tmp_path), "overwrite")

    assert [path.name for path in tmp_path.iterdir()] == ["precious.txt"]


@pytest.mark.every_spark
def test_create_table_using_fuse_is_refused_with_the_way_out(session: SparkSession, url: str) -> None:
    with pytest.raises(Exception, match="CREATE TEMPORARY VIEW"):
        session.sql(f"CREATE TABLE lost USING fuse OPTIONS (path '{url}') AS SELECT 1 a")


def broken(df: DataFrame, when: Callable[[TaskContext], bool]) -> DataFrame:
    """Rows whose second partition fails at its end, in the attempts for which ``when`` says so."""

    def fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        yield from batches
        if context.partitionId() == 1 and when(context):
            raise ValueError("a broken task")

    return df.mapInArrow(fail, df.schema)


@pytest.mark.every_spark
def test_a_failing_task_leaves_the_table_as_it_was(session: SparkSession, url: str) -> None:
    save(session.range(5), url)
    before = commits(url)
    for mode in ("append", "overwrite"):
        # Spark 4.0 may report the closed connection between the two Python workers instead of what closed it
        with pytest.raises(Exception, match=r"a broken task|ClosedChannel|CancelledKey"):
            save(broken(session.range(0, 1000, 1, 2), lambda _: True), url, mode)

    assert commits(url) == before
    assert ids(url) == list(range(5))
    check_invariants(StoredTable.open(url))


def test_an_overwrite_that_has_not_seen_all_rows_is_refused(session: SparkSession, url: str) -> None:
    """Somebody appends while the job runs: those rows stay, and the error says who it was."""
    save(session.range(5), url)

    def meanwhile(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        append_one(url)
        yield from batches

    with pytest.raises(Exception, match="rows that this overwrite has not seen were added by") as failure:
        save(session.range(7, 8, 1, 1).mapInArrow(meanwhile, "id long"), url, "overwrite")

    assert "Traceback" not in str(failure.value)
    assert ids(url) == [0, 1, 2, 3, 4, 99]
    save(session.range(7, 8, 1, 1).mapInArrow(meanwhile, "id long"), url)  # and an append minds nobody
    assert ids(url) == [0, 1, 2, 3, 4, 7, 99, 99]


def append_one(url: str) -> None:
    table = StoredTable.open(url)
    writing = table.writer()
    writing.write(pa.table({"id": [99]}))
    table.transaction().append(writing.finish()).commit("append")


def test_a_driver_that_is_killed_leaves_the_table_as_it_was(session: SparkSession, killed_halfway: Path) -> None:
    url = str(killed_halfway / "added")

    assert commits(url) == ["append", "create"]
    assert ids(url) == list(range(5))
    save(session.range(5, 7), url)
    assert ids(url) == list(range(7))
    check_invariants(StoredTable.open(url))


def test_a_rows_error_in_the_input_fails_the_write(session: SparkSession, url: str) -> None:
    save(session.range(5), url)
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        save(session.range(5).selectExpr("id div (id - 3) AS id"), url)

    assert ids(url) == list(range(5))


def test_writing_builds_the_indexes_in_the_same_pass(session: SparkSession, url: str) -> None:
    from fuse_index import create_table

    table = create_table(url, pa.schema({"id": pa.int64(), "s": pa.string()}))
    table.create_index("by_s", "bloom", ["s"])
    save(session.range(0, 1000, 1, 3).selectExpr("id", "concat('s', id) AS s"), url)

    (index,) = [row for row in open_indexes(url) if row["name"] == "by_s"]
    assert (index["blocks"], index["blocks_indexed"]) == (3, 3)
    assert load(session, url, where="s = 's77'").collect()[0].id == 77


def open_indexes(url: str) -> list[dict[str, object]]:
    from fuse_index import open_table

    return list(open_table(url).inspect.indexes().to_pylist())


def test_blocks_are_cut_by_the_tables_properties(session: SparkSession, url: str) -> None:
    StoredTable.create(url, pa.schema({"id": pa.int64()}), properties={"block_rows": 1000, "zone_rows": 100})
    save(session.range(0, 10_000, 1, 2), url)

    assert StoredTable.open(url).blocks().row_counts.tolist() == [1000] * 10


def one_column(url: str) -> HeapTarget | KeyedTarget:
    return open_target(TableLocation(url), to_spark_schema(pa.schema({"id": pa.int64()})))


def test_a_commit_without_a_tasks_answer_is_refused(url: str) -> None:
    made = BatchWriter(one_column(url), Host.discover(), False)
    with pytest.raises(StorageError, match="rows would be lost"):
        made.commit([TaskCommitMessage(TaskRows(StoredTable.open(url).snapshot.schema)), None])


def test_an_aborted_write_deletes_nothing(url: str) -> None:
    """Spark aborts after a commit that got no answer, and that one may have happened."""
    made = BatchWriter(one_column(url), Host.discover(), False)
    message = made.write(iter([pa.record_batch({"id": [1, 2, 3]})]))
    made.commit([message])
    made.abort([message])

    assert ids(url) == [1, 2, 3]


def test_an_append_goes_through_beside_others(url: str) -> None:
    writers = [BatchWriter(one_column(url), Host.discover(), False) for _ in range(3)]
    messages = [made.write(iter([pa.record_batch({"id": [place]})])) for place, made in enumerate(writers)]
    for made, message in zip(writers, messages, strict=True):
        made.commit([message])

    assert ids(url) == [0, 1, 2]


def test_the_rows_of_a_task_that_was_stopped_are_in_no_message(url: str) -> None:
    made = BatchWriter(one_column(url), Host.discover(), False)

    def stopped() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"id": [1]})
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made.write(stopped())
    made.commit([made.write(iter([pa.record_batch({"id": [2]})]))])

    assert ids(url) == [2]


@pytest.mark.every_spark
def test_schemas_go_to_spark_and_back() -> None:
    schema = pa.schema(
        [
            pa.field("a", pa.int32(), nullable=False),
            pa.field(
                "s",
                pa.struct(
                    [pa.field("t", pa.timestamp("us", "UTC"), nullable=False), pa.field("n", pa.timestamp("us"))]
                ),
            ),
            pa.field("l", pa.list_(pa.field("element", pa.decimal128(10, 2), nullable=False))),
            pa.field("m", pa.map_(pa.string(), pa.field("value", pa.binary(), nullable=False))),
        ]
    )

    assert to_arrow_schema(to_spark_schema(schema)) == schema
    assert all(field.nullable for field in to_spark_schema(all_nullable(schema)))
