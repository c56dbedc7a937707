"""Tables that are followed and written by streaming queries: every row once, also over restarts and kills."""

import pickle
import shutil
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

import fuse_index as fuse
from fuse_index.errors import StreamError
from fuse_index.indexes.registry import Host
from fuse_index.ingest.schema_merge import evolved_table
from fuse_index.predicate import Context
from fuse_index.spark.source import data_source
from fuse_index.spark.source.batch_writer import TaskCommitMessage
from fuse_index.spark.source.options import OptionError
from fuse_index.spark.source.stream_reader import ReadAllAvailable, StreamReader
from fuse_index.spark.source.stream_writer import StreamWriter
from fuse_index.spark.source.task_rows import TaskRows, take_few
from fuse_index.spark.source.write_target import HeapTarget
from fuse_storage import process_cache


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    data_source.register_source(spark)
    return spark


def rows(*ids: int) -> list[dict]:
    return [{"id": row_id, "city": ["Bonn", "Oslo"][row_id % 2]} for row_id in ids]


@pytest.fixture
def table(tmp_path: Path) -> fuse.Table:
    """Four blocks of two rows."""
    made = fuse.create_table(str(tmp_path / "followed"), "id BIGINT, city STRING", properties={"block_rows": 8})
    for row_id in range(0, 8, 2):
        made.append(rows(row_id, row_id + 1))
    return made


def url(table: fuse.Table) -> str:
    return table.stored.store.url


def stream(session: SparkSession, table: fuse.Table, **options: str) -> DataFrame:
    return session.readStream.format("fuse").options(**options).load(url(table))


def started(df: DataFrame, folder: Path, mode: str = "append") -> StreamingQuery:
    """Into the table ``written``, with a checkpoint beside it."""
    made = df.writeStream.format("fuse").outputMode(mode).option("checkpointLocation", str(folder / "checkpoint"))
    return made.start(str(folder / "written"))


def done(query: StreamingQuery) -> None:
    try:
        query.processAllAvailable()
    finally:
        query.stop()


def ids(folder: Path) -> list[int]:
    return fuse.open_table(str(folder / "written")).scan().to_arrow().column("id").to_pylist()


def batches(folder: Path) -> list[int]:
    """Rows of each commit that added some, oldest first."""
    stored = fuse.open_table(str(folder / "written")).stored
    return [
        stored.at_version(entry.version).snapshot.summary["added_rows"]
        for entry in reversed(stored.history())
        if entry.sequence > 1
    ]


@pytest.mark.every_spark
def test_a_stream_fills_follows_and_goes_on_after_a_restart(session, table, tmp_path):
    query = started(stream(session, table, max_blocks_per_trigger="3"), tmp_path)
    query.processAllAvailable()
    assert (ids(tmp_path), batches(tmp_path)) == (list(range(8)), [6, 2])
    table.maintenance.compact()
    table.append(rows(8))
    table.create_index("by_city", "bloom", ["city"])
    done(query)
    table.append(rows(9))
    table.maintenance.compact()
    table.append(rows(10))
    done(started(stream(session, table, max_blocks_per_trigger="3"), tmp_path))

    assert ids(tmp_path) == list(range(11))
    assert batches(tmp_path) == [6, 2, 1, 2]
    assert list(fuse.open_table(str(tmp_path / "written")).snapshot.applications.values()) == [
        batches_of(query, tmp_path)
    ]


def batches_of(query: StreamingQuery, folder: Path) -> int:
    """The number of the last batch that wrote rows, by the checkpoint: later ones may have been empty."""
    noted = [int(file.name) for file in (folder / "checkpoint" / "commits").iterdir() if file.name.isdecimal()]
    applications = fuse.open_table(str(folder / "written")).snapshot.applications
    assert set(applications) == {f"spark-query-{query.id}"}
    assert max(noted) - 3 <= applications[f"spark-query-{query.id}"] <= max(noted)
    return applications[f"spark-query-{query.id}"]


def test_a_killed_query_loses_and_doubles_no_row(session, killed_halfway):
    folder = killed_halfway / "stream"
    assert ids(folder) == [0, 1, 2, 3, 4, 5]
    assert list((folder / "checkpoint" / "commits").glob("0*")) == []

    done(started(stream(session, fuse.open_table(folder / "followed")), folder))
    assert ids(folder) == list(range(8))
    assert batches(folder) == [6, 2]


def test_deletes_stop_a_stream_unless_they_are_passed_over_or_told(session, table, tmp_path):
    since = table.snapshot.id
    table.delete("id = 3")
    table.update("id = 4", {"city": "'Rome'"})
    table.append(rows(9))
    with pytest.raises(StreamingQueryException, match=r"rows were deleted or changed by delete.*read_changes"):
        done(started(stream(session, table, since=since), tmp_path / "refused"))
    skipping = reader(table, since=since, skip_changes="true")
    end = skipping.latestOffset(skipping.initialOffset())
    found = [
        batch.to_pylist()
        for piece in skipping.partitions(skipping.initialOffset(), end)
        for batch in skipping.read(piece)
    ]
    assert found == [rows(9)]

    told = stream(session, table, since=since, read_changes="true", key="id")
    query = told.writeStream.format("memory").queryName("told").start()
    done(query)
    number = table.snapshot.sequence
    found = session.table("told").select("_commit_version", "_change_type", "id", "city").collect()
    assert [tuple(row) for row in found] == [
        (number - 2, "delete", 3, "Oslo"),
        (number - 1, "update_preimage", 4, "Bonn"),
        (number - 1, "update_postimage", 4, "Rome"),
        (number, "insert", 9, "Oslo"),
    ]


def test_each_commit_is_told_by_the_key_that_the_table_had_then(table):
    since = table.snapshot.id
    for city in ("Rome", "Lima"):
        table.update("id = 4", {"city": f"'{city}'"})
        table.key_by(["id"])
    table.rename_column("id", "number")

    def told(**options):
        made = reader(table, since=since, read_changes="true", **options)
        start = made.initialOffset()
        pieces = made.partitions(start, made.latestOffset(start))
        return [row["_change_type"] for piece in pieces for batch in made.read(piece) for row in batch.to_pylist()]

    pair = ["update_preimage", "update_postimage"]
    assert told() == ["delete", "insert", *pair]
    assert told(key="number") == [*pair, *pair]
    assert told(key="") == ["delete", "insert"] * 2
    batch = source_of(table, since=since, read_changes="true")
    net = batch.reader(batch.schema())
    assert [
        row["_change_type"] for part in net.partitions() for found in net.read(part) for row in found.to_pylist()
    ] == pair


def test_complete_results_replace_all_rows(session, table, tmp_path):
    counted = stream(session, table).groupBy("city").count()
    query = started(counted, tmp_path, "complete")
    query.processAllAvailable()
    table.append(rows(8))
    done(query)

    found = fuse.open_table(str(tmp_path / "written")).scan().to_arrow().to_pylist()
    assert Counter({row["city"]: row["count"] for row in found}) == {"Bonn": 5, "Oslo": 4}


def test_net_changes_are_a_batch(session, table):
    since = table.snapshot.id
    table.delete("id = 3")
    table.append(rows(9, 10))
    table.maintenance.compact()
    read = session.read.format("fuse").option("read_changes", "true").option("since", since)

    told = sorted((row["_change_type"], row.id) for row in read.load(url(table)).collect())
    assert told == [("delete", 3), ("insert", 9), ("insert", 10)]
    only = read.option("where", "id > 9").option("columns", "id").load(url(table))
    assert [tuple(row)[:3] for row in only.collect()] == [(10, "insert", table.snapshot.sequence)]
    assert only.columns == ["id", "_change_type", "_commit_version", "_commit_timestamp"]


def source_of(table: fuse.Table, **options: str) -> data_source.FuseSource:
    """As Spark makes one, but here."""
    return data_source.source_class(Host.discover(), Context())({"path": url(table), **options})


def reader(table: fuse.Table, **options: str) -> StreamReader:
    made = source_of(table, **options)
    return made.streamReader(made.schema())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"max_rows_per_trigger": "0"}, "max_rows_per_trigger='0': say a whole number above 0"),
        ({"max_rows_per_triger": "1"}, "did you mean 'max_rows_per_trigger'"),
        ({"skip_changes": "yes"}, "say true or false"),
        ({"skip_changes": "true", "read_changes": "true"}, "contradict"),
        ({"key": "id"}, "set read_changes too"),
        ({"at": "1"}, "no option 'at' here: did you mean 'since'"),
        ({"version": "1"}, "no option 'version' here: did you mean 'since'"),
        (
            {"xyzzy": "1"},
            "known are path, branch, where, .*key, of batches at, version, tail, of streams skip_changes, ",
        ),
        ({"since": "monday"}, "no tag 'monday'"),
        ({"since": ""}, "no tag ''"),
    ],
)
def test_options_that_cannot_be_are_refused(table, options, says):
    with pytest.raises((OptionError, fuse.StorageError), match=says):
        reader(table, **options).initialOffset()


@pytest.mark.every_spark
def test_a_query_that_cannot_begin_says_why(session, table, tmp_path):
    keyed = fuse.create_table(tmp_path / "keyed", "id BIGINT", primary_key=["id"])
    for followed, options, says in (
        (keyed, {}, "has a primary key, so rows that come take the place of others: set read_changes"),
        (table, {"max_rows_per_trigger": "some"}, "max_rows_per_trigger='some': say a whole number above 0"),
        (table, {"since": "monday"}, "has no tag 'monday'"),
        (table, {"since": "2001-01-01T00:00:00Z"}, "began at .* after 2001-01-01"),
    ):
        with pytest.raises(StreamingQueryException, match=says) as failure:
            done(started(stream(session, followed, **options), tmp_path))
        assert "Traceback" not in str(failure.value)
        assert "UnboundLocalError" not in str(failure.value)


@pytest.mark.every_spark
def test_a_batch_that_cannot_be_written_says_why(session, table, tmp_path):
    for number, (columns, says) in enumerate(
        (
            ("id BIGINT, city STRING NOT NULL", "column 'city' is NOT NULL, and 8 rows have NULL in it"),
            ("id BIGINT, other STRING", r"it has \['id', 'other'\]\. The option mergeSchema adds columns"),
            ("id BIGINT, citi STRING", r"did you mean \['citi'\]\? The option mergeSchema adds columns"),
        )
    ):
        fuse.create_table(tmp_path / str(number) / "written", columns)
        nameless = stream(session, table).selectExpr("id", "CAST(NULL AS STRING) AS city")
        with pytest.raises(StreamingQueryException, match=says) as failure:
            done(started(nameless, tmp_path / str(number)))
        assert "Traceback" not in str(failure.value)


@pytest.mark.every_spark
def test_a_query_whose_sink_was_made_anew_says_so(session, table, tmp_path):
    done(started(stream(session, table), tmp_path))
    shutil.rmtree(tmp_path / "written")
    fuse.create_table(tmp_path / "written", "id BIGINT, city STRING")
    table.append(rows(8))
    with pytest.raises(StreamingQueryException, match=r"knows no batch of this query") as failure:
        done(started(stream(session, table), tmp_path))
    assert "Traceback" not in str(failure.value)


def test_options_of_streams_are_none_of_batches(session, table):
    for options, says in (({"skip_changes": "true"}, "no option 'skip_changes' here"), ({"since": "x"}, "no tag 'x'")):
        with pytest.raises(Exception, match=says):
            session.read.format("fuse").options(**options).load(url(table)).collect()
    with pytest.raises(Exception, match="read_changes and since go together"):
        session.read.format("fuse").option("read_changes", "true").load(url(table)).collect()


def test_a_condition_and_columns_hold_for_what_is_filled_and_what_follows(table):
    following = reader(table, where="city = 'Bonn'", columns="id")
    start = following.initialOffset()
    table.append(rows(8, 9, 10))
    end = following.latestOffset(start)

    found = [batch.to_pylist() for piece in following.partitions(start, end) for batch in following.read(piece)]
    assert found == [[{"id": row_id}] for row_id in (0, 2, 4, 6)] + [[{"id": 8}, {"id": 10}]]
    assert following.latestOffset(end) == end


def test_a_query_outlives_the_snapshots_that_it_began_with(table):
    table.tag("begun")
    made = source_of(table, since="begun")
    wanted = made.schema()
    start = made.streamReader(wanted).initialOffset()
    table.append(rows(8))
    here = made.streamReader(wanted).latestOffset(start)
    table.append(rows(9))
    table.untag("begun")
    table.stored.store.delete([f"_ss/{made.pinned_snapshot}.json"])
    process_cache.clear()

    again = pickle.loads(cloudpickle.dumps(made)).streamReader(wanted)
    end = again.latestOffset(here)
    assert [batch.to_pylist() for piece in again.partitions(here, end) for batch in again.read(piece)] == [rows(9)]


def test_a_trigger_may_end_the_stream_or_lift_the_limit(table):
    following = reader(table, max_blocks_per_trigger="3")
    start, there = following.initialOffset(), table.snapshot.sequence
    following.prepareForTriggerAvailableNow()
    table.append(rows(8))
    middle = following.latestOffset(start, None)
    end = following.latestOffset(middle, None)

    assert (middle["blocks"], end["sequence"]) == (3, there)
    assert following.latestOffset(end, None) == end
    assert (
        reader(table, max_blocks_per_trigger="3").latestOffset(start, ReadAllAvailable())["sequence"]
        == table.snapshot.sequence
    )


@pytest.mark.every_spark
def test_before_4_2_a_reader_remembers_where_its_query_is(table):
    first = reader(table, max_rows_per_trigger="2")
    end = first.latestOffset()
    table.append(rows(8))
    start = first.initialOffset()
    assert (start["blocks"], start["sequence"]) == (0, end["sequence"])
    assert len(first.partitions(start, end)) == 1
    again = reader(table, max_rows_per_trigger="2")
    assert again.partitions(end, end) == []
    assert again.latestOffset() == first.latestOffset() != end


def batch_of(table: fuse.Table, *ids: int) -> tuple[StreamWriter, list[TaskCommitMessage]]:
    """A writer of the table, as a query is given one, and what its task wrote."""
    stored = fuse.open_table(url(table)).stored
    with stored.writer() as writer:
        if ids:
            writer.write(pa.Table.from_pylist(rows(*ids)))
        return StreamWriter(HeapTarget(stored, ("id", "city")), Host.discover(), False), [
            TaskCommitMessage(TaskRows(stored.snapshot.schema, staged=tuple(writer.finish())), "q1")
        ]


def test_columns_that_come_while_a_query_writes_do_not_end_it(session, table, tmp_path):
    written = fuse.create_table(str(tmp_path / "written"), "id BIGINT, city STRING, s STRUCT<a: INT>")
    query = started(stream(session, table, max_blocks_per_trigger="4"), tmp_path)
    query.processAllAvailable()
    written.refresh().add_column("more", "int", default=7)
    written.add_column("s.b", "int")
    table.append([{"id": 8}])
    done(query)

    assert ids(tmp_path) == list(range(9))
    assert {row["more"] for row in written.refresh().scan().to_arrow().to_pylist()} == {7}


def test_a_query_brings_its_columns_with_its_first_rows(session, table, tmp_path):
    written = fuse.create_table(str(tmp_path / "written"), "id INT")
    made = stream(session, table).writeStream.format("fuse").option("mergeSchema", "true")
    query = made.option("checkpointLocation", str(tmp_path / "checkpoint")).start(str(tmp_path / "written"))
    query.processAllAvailable()
    table.append(rows(8))
    done(query)

    assert written.refresh().schema == pa.schema([("id", pa.int64()), ("city", pa.string())])
    assert ids(tmp_path) == list(range(9))
    assert [entry.operation for entry in written.stored.history()] == ["append", "append", "create"]


def test_columns_that_others_change_while_a_batch_brings_some_are_noticed(tmp_path):
    table = fuse.create_table(str(tmp_path / "sink"), "id BIGINT")
    wanted = pa.schema([("id", pa.int64()), ("city", pa.string())])
    target = HeapTarget(table.stored, ("id", "city"), wanted)
    step = target.schema_change(table.stored)
    with evolved_table(table.stored, step).writer() as writer:
        writer.write(pa.Table.from_pylist(rows(1)))
        schema = step(table.snapshot).schema
        message = TaskCommitMessage(TaskRows(schema, staged=tuple(writer.finish())), "q1")
    table.add_column("other", "string")

    with pytest.raises(fuse.Conflict, match="columns were changed while the batch was written"):
        StreamWriter(target, Host.discover(), False).commit([message], 0)
    assert fuse.open_table(url(table)).scan().count() == 0


def _swap_names(table: fuse.Table) -> None:
    table.rename_column("city", "old")
    table.add_column("city", "string")


def _drop_and_add(table: fuse.Table) -> None:
    table.drop_column("city")
    table.add_column("city", "string")


@pytest.mark.parametrize("change", [_swap_names, _drop_and_add, lambda table: table.drop_column("city")])
def test_rows_that_tasks_handed_over_go_into_no_other_column_of_their_name(tmp_path, change):
    table = fuse.create_table(str(tmp_path / "sink"), "id BIGINT, city STRING", properties={"hot_rows": 10})
    writer, message = handed_batch(table, [{"id": 1, "city": "Bonn"}])
    change(table)

    with pytest.raises(fuse.Conflict, match="'city' was changed while the batch was written"):
        writer.commit([message], 0)
    assert fuse.open_table(url(table)).count() == 0


def test_rows_that_tasks_handed_over_lack_columns_that_came_since(tmp_path):
    table = fuse.create_table(str(tmp_path / "sink"), "id BIGINT, s STRUCT<a: INT>", properties={"hot_rows": 10})
    writer, message = handed_batch(table, [{"id": 1, "s": {"a": 2}}])
    table.add_column("more", "int", default=7)
    table.add_column("s.b", "int")

    writer.commit([message], 0)

    assert fuse.open_table(url(table)).to_arrow().to_pylist() == [{"id": 1, "s": {"a": 2, "b": None}, "more": 7}]
    assert fuse.open_table(url(table)).tail.rows == 1


def handed_batch(table: fuse.Table, given: list[dict]) -> tuple[StreamWriter, TaskCommitMessage]:
    """A writer of the table, and what a task hands to it of few rows."""
    stored = fuse.open_table(url(table)).stored
    schema = stored.snapshot.schema
    handed, _ = take_few(pa.Table.from_pylist(given, schema.arrow).to_batches(), stored, 10)
    assert handed is not None
    writer = StreamWriter(HeapTarget(stored, tuple(schema.names)), Host.discover(), False)
    return writer, TaskCommitMessage(TaskRows(schema, handed), "q1")


def test_a_sink_that_was_made_anew_is_noticed(tmp_path):
    made = fuse.create_table(str(tmp_path / "sink"), "id BIGINT, city STRING")
    writer, messages = batch_of(made, 1, 2)
    writer.commit(messages, 0)
    writer.commit(messages, 0)
    running, more = batch_of(made, 3)
    shutil.rmtree(tmp_path / "sink")
    process_cache.clear()
    anew = fuse.create_table(str(tmp_path / "sink"), "id BIGINT, city STRING")

    for query, staged in ((running, more), batch_of(anew, 3)):  # while it runs, and after a restart
        with pytest.raises(StreamError, match=r"sink knows no batch of this query.* it has written 1: .*anew"):
            query.commit(staged, 1)
    assert fuse.open_table(url(anew)).scan().count() == 0
    writer, messages = batch_of(anew, 1)
    writer.commit(messages, 0)
    assert fuse.open_table(url(anew)).scan().count() == 1


def test_a_query_whose_first_batches_have_no_rows_is_known_all_the_same(tmp_path):
    table = fuse.create_table(str(tmp_path / "sink"), "id BIGINT, city STRING")
    for batch, ids in enumerate([(), (), (1,), ()]):
        writer, messages = batch_of(table, *ids)
        writer.commit(messages, batch)

    table = fuse.open_table(url(table))
    assert table.scan().count() == 1
    assert len(table.stored.history()) == 3  # made, entered, appended
