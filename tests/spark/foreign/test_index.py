"""Indexes of sources as users get them: by CALL and in Python, found again by the warehouse, refreshed and let go."""

import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from fuse_index.errors import InputError
from fuse_index.pruning.account.uses import SourceUse
from fuse_index.spark.catalog.indexes import IndexRequests
from fuse_index.spark.foreign.source_indexes import SourceIndexes
from fuse_index.spark.lakes.source import NamedSource
from fuse_storage import InvalidArgument, NotFound
from tests.effort import effort

SWITCH = "spark.fuse.index.transparent"
FILES, ROWS = 6, 200


def rows(number: int) -> pa.Table:
    ids = list(range(number * ROWS, (number + 1) * ROWS))
    keys = [f"k{(each * 7919) % 100_003:06d}" for each in ids]
    return pa.table({"id": ids, "key": keys, "amount": pa.array([each % 10 for each in ids], pa.int32())})


def key(number: int, row: int) -> str:
    return rows(number).column("key")[row].as_py()


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    folder = tmp_path / "lake"
    folder.mkdir()
    for number in range(FILES):
        pq.write_table(rows(number), folder / f"part-{number}.parquet", row_group_size=50)
    return folder


@pytest.fixture
def session(spark: SparkSession, tmp_path: Path) -> SparkSession:
    """A session of its own, so that no other test's sources are known, with a warehouse."""
    other = spark.newSession()
    other.conf.set("spark.fuse.index.transparent.maxAge", "0s")
    fuse_spark.install(other, warehouse=tmp_path / "warehouse")
    return other


def use_of(session: SparkSession, query: str) -> SourceUse | None:
    return fuse_spark.explain(session.sql(query)).source


def failure(session: SparkSession, statement: str) -> str:
    with pytest.raises(PySparkException) as raised:
        session.sql(statement)
    return str(raised.value).splitlines()[0]


@pytest.mark.every_spark
def test_one_call_and_the_query_as_it_was_reads_one_file_of_six(session: SparkSession, lake: Path) -> None:
    query = f"SELECT * FROM parquet.`{lake}` WHERE key = '{key(4, 120)}'"
    before = session.sql(query).collect()

    [row] = session.sql(f"CALL fuse.system.index('{lake}', kind => 'bloom', columns => array('key'))").collect()

    assert (row["source"], row["format"], row["index"], row["columns"]) == (str(lake), "parquet", "bloom_key", ["key"])
    assert (row["files"], row["indexed"]) == (FILES, FILES)
    assert session.sql(query).collect() == before != []
    assert use_of(session, query) == SourceUse("parquet", FILES, FILES - 1, 0, 1)
    assert session.sql("SHOW NAMESPACES IN fuse").collect() == []


def test_a_session_without_the_call_finds_the_index_in_its_warehouse(
    session: SparkSession, lake: Path, tmp_path: Path
) -> None:
    fuse_spark.index(session, str(lake), "bloom", ["key"], "by_key", fpp=0.001)
    later = session.newSession()
    query = f"SELECT id FROM parquet.`{lake}` WHERE key = '{key(1, 3)}'"
    with pytest.raises(InputError, match="nothing to explain"):
        fuse_spark.explain(later.sql(query))

    fuse_spark.install(later, warehouse=tmp_path / "warehouse")

    assert use_of(later, query) == SourceUse("parquet", FILES, FILES - 1, 0, 1)
    assert [row.id for row in later.sql(query).collect()] == [ROWS + 3]


@pytest.mark.parametrize("named", ["table", "view", "frame", "folder of it"])
def test_a_source_is_named_as_queries_name_it(session: SparkSession, lake: Path, named: str) -> None:
    session.sql(f"CREATE TABLE IF NOT EXISTS lake_of_names USING parquet LOCATION '{lake}'")
    session.sql("CREATE OR REPLACE TEMPORARY VIEW some AS SELECT key, id FROM lake_of_names WHERE amount < 9")
    meant = {"table": "spark_catalog.default.lake_of_names", "view": "some", "frame": session.table("some")}
    try:
        fuse_spark.index(session, meant.get(named, str(lake)), "bloom", ["key"])

        assert use_of(session, f"SELECT id FROM some WHERE key = '{key(2, 7)}'") == SourceUse(
            "parquet", FILES, FILES - 1, 0, 1
        )
    finally:
        session.sql("DROP TABLE lake_of_names")


@pytest.mark.every_spark
def test_columns_of_a_view_are_those_of_its_source_that_it_names_so(session: SparkSession, lake: Path) -> None:
    columns = "id AS key, key AS `other key`, lower(key) AS small"
    session.sql(f"CREATE OR REPLACE TEMPORARY VIEW renamed AS SELECT {columns} FROM parquet.`{lake}` WHERE amount < 9")

    def index(column: str) -> str:
        return f"CALL fuse.system.index('renamed', 'bloom', array('{column}'))"

    made = [session.sql(index(each)).collect()[-1] for each in ("key", "other key", "upper(`other key`)")]
    assert [(row["index"], row["columns"]) for row in made] == [
        ("bloom_id", ["id"]),
        ("bloom_key", ["key"]),
        ("bloom_upper_key", ["upper(key)"]),
    ]
    assert use_of(session, f"SELECT key FROM renamed WHERE `other key` = '{key(2, 7)}'") == SourceUse(
        "parquet", FILES, FILES - 1, 0, 1
    )
    assert "column 'small' is computed" in failure(session, index("small"))
    assert "no column 'amount'" in failure(session, index("amount"))


def test_a_column_of_char_is_no_computed_one(session: SparkSession, lake: Path) -> None:
    session.sql(f"CREATE TABLE lake_of_chars (id BIGINT, key CHAR(9)) USING parquet LOCATION '{lake}'")
    try:
        [row] = session.sql("CALL fuse.system.index('lake_of_chars', 'bloom', array('key'))").collect()
        assert row["columns"] == ["key"]
    finally:
        session.sql("DROP TABLE lake_of_chars")


@pytest.mark.every_spark
def test_partitions_that_are_read_are_looked_for_by_their_table(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    roots = [tmp_path / "parts" / f"p={number}" for number in range(FILES)]
    for number, root in enumerate(roots):
        root.mkdir(parents=True)
        pq.write_table(rows(number), root / "0.parquet")
    look, places = SourceIndexes.find_table, set[str]()

    def note_and_look(indexes: SourceIndexes, format_: str, location: str) -> fuse.Table | None:
        places.add(location)
        return look(indexes, format_, location)

    monkeypatch.setattr(SourceIndexes, "find_table", note_and_look)
    read = session.read.parquet(*map(str, roots)).where(f"key = '{key(4, 120)}'")
    assert (len(read.collect()), places) == (1, {f"file:{tmp_path}/parts"})
    fuse_spark.index(session, f"file:{tmp_path}/parts", "bloom", ["key"])
    again = session.read.parquet(*map(str, roots)).where(f"key = '{key(4, 120)}'")
    assert len(again.collect()) == 1
    assert fuse_spark.explain(again).source == SourceUse("parquet", FILES, FILES - 1, 0, 0)


@pytest.mark.every_spark
def test_the_ui_counts_files(session: SparkSession, lake: Path) -> None:
    fuse_spark.index(session, str(lake), "bloom", ["key"])
    pq.write_table(rows(7), lake / "later.parquet")
    assert len(session.sql(f"SELECT * FROM parquet.`{lake}` WHERE key = '{key(4, 120)}'").collect()) == 1

    session.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    store = session._jsparkSession.sharedState().statusStore()
    last = store.executionsList().last()
    values, metrics = store.executionMetrics(last.executionId()), last.metrics()
    listed = [metrics.apply(number) for number in range(metrics.length())]
    counted = {
        "number of files to read": "2",
        "number of files that indexes and statistics left out": "5",
        "number of files that no index knows": "1",
    }
    shown = {each.name(): values.get(each.accumulatorId()).get() for each in listed if each.name() in counted}
    assert shown == counted
    assert "FuseIndexedScan" in last.physicalPlanDescription()


@pytest.mark.every_spark
def test_new_files_are_read_and_a_refresh_makes_them_known(session: SparkSession, lake: Path) -> None:
    fuse_spark.index(session, str(lake), "bloom", ["key"])
    pq.write_table(rows(9), lake / "part-9.parquet")
    query = f"SELECT id FROM parquet.`{lake}` WHERE key = '{key(9, 5)}'"

    assert use_of(session, query) == SourceUse("parquet", FILES + 1, FILES, 1, 0)
    assert "the index does not know 1 of these: refresh it" in str(fuse_spark.explain(session.sql(query)))
    assert [row.id for row in session.sql(query).collect()] == [9 * ROWS + 5]

    [row] = session.sql(f"CALL fuse.system.refresh_source_index('{lake}')").collect()
    assert (row["files"], row["indexed"]) == (FILES + 1, FILES + 1)
    assert use_of(session, f"SELECT id FROM parquet.`{lake}` WHERE key = 'none'") == SourceUse(
        "parquet", FILES + 1, FILES + 1, 0, 0
    )


def test_a_refresh_builds_an_index_anew_whose_column_became_wider(session: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "numbers"
    folder.mkdir()
    for number in range(3):
        pq.write_table(pa.table({"n": pa.array(range(number, 3_000, 3), pa.int32())}), folder / f"{number}.parquet")
    fuse_spark.index(session, str(folder), "bloom", ["n"])
    pq.write_table(pa.table({"n": pa.array([1 << 40], pa.int64())}), folder / "3.parquet")

    session.sql(f"CALL fuse.system.refresh_source_index('{folder}')").collect()

    asked = session.read.schema("n BIGINT").parquet(str(folder)).where("n = 7")
    assert [row.n for row in asked.collect()] == [7]
    assert str(fuse_spark.explain(asked).source) == "parquet reads 1 of 4 files"


def test_unknown_files_that_queries_met_make_an_index_refresh_itself(session: SparkSession, lake: Path) -> None:
    table = fuse_spark.index(session, str(lake), "bloom", ["key"])
    table.set_properties({"max_unknown_files": 1})
    pq.write_table(rows(9), lake / "part-9.parquet")
    query = f"SELECT id FROM parquet.`{lake}` WHERE key = '{key(9, 5)}'"

    session.sql(query).collect()  # meets one
    session.sql(query).collect()  # asks again, and tells of it
    for _ in range(200):
        if (
            table.refresh().snapshot.block_count == FILES + 1
            and table.inspect.indexes()["blocks_indexed"][0].as_py() == 7
        ):
            break
        session.sql(query).collect()

    assert use_of(session, query) == SourceUse("parquet", FILES + 1, FILES, 0, 0)


def test_indexes_are_listed_and_dropped_one_by_one_and_all_together(session: SparkSession, lake: Path) -> None:
    for column in ("key", "amount"):
        session.sql(f"CALL fuse.system.index('{lake}', 'bloom', array('{column}'))")
    query = f"SELECT id FROM parquet.`{lake}` WHERE key = '{key(2, 7)}'"
    assert [row["index"] for row in session.sql("CALL fuse.system.source_indexes()").collect()] == [
        "bloom_key",
        "bloom_amount",
    ]

    dropped = session.sql(f"CALL fuse.system.drop_source_index('{lake}', index => 'bloom_key')").collect()
    assert [row["index"] for row in dropped] == ["bloom_key"]
    use = use_of(session, query)
    assert use is not None
    assert use.left_out < FILES - 1  # by bounds alone

    session.sql(f"CALL fuse.system.drop_source_index('{lake}')")
    assert session.sql("CALL fuse.system.source_indexes()").collect() == []
    with pytest.raises(InputError, match="nothing to explain"):
        fuse_spark.explain(session.sql(query))


def test_an_index_whose_files_are_gone_stands_in_nobodys_way(session: SparkSession, lake: Path, tmp_path: Path) -> None:
    index = f"CALL fuse.system.index('{lake}', 'bloom', array('key'))"
    [made] = session.sql(index).collect()
    second = tmp_path / "second"
    second.mkdir()
    pq.write_table(rows(0), second / "0.parquet")
    other = fuse.catalog(tmp_path / "warehouse").index_source(second, "bloom", ["id"])
    shutil.rmtree(made["location"])

    listed = session.sql("CALL fuse.system.source_indexes()").collect()
    assert {(row["source"], row["index"]) for row in listed} == {(str(second), "bloom_id"), (str(lake), None)}
    assert [row["problem"] for row in listed if row["problem"]] == [
        "its files are gone: index the source anew, or drop its index"
    ]
    assert "are gone: index the source anew" in failure(session, f"CALL fuse.system.refresh_source_index('{lake}')")
    [again] = session.sql(index).collect()
    assert again["location"] not in (made["location"], other.stored.store.url)
    shutil.rmtree(again["location"])
    assert session.sql(f"CALL fuse.system.drop_source_index('{lake}')").collect() == []
    [left] = session.sql("CALL fuse.system.source_indexes()").collect()
    assert left["source"] == str(second)


@pytest.mark.every_spark
def test_keys_of_a_join_that_were_broadcast_leave_out_files(session: SparkSession, lake: Path) -> None:
    fuse_spark.index(session, str(lake), "bloom", ["key"])
    # Not by createDataFrame, which makes the session the active one for tests to come.
    keys = f"SELECT /*+ REPARTITION(1) */ * FROM VALUES ('{key(2, 7)}'), ('{key(5, 8)}') AS v(k)"
    session.sql(f"CREATE OR REPLACE TEMPORARY VIEW few AS {keys}")
    joined = session.sql(
        f"SELECT /*+ BROADCAST(few) */ id FROM parquet.`{lake}` t JOIN few ON lower(t.key) = k OR t.key = k"
    )
    assert sorted(row.id for row in joined.collect()) == [2 * ROWS + 7, 5 * ROWS + 8]

    joined = session.sql(f"SELECT /*+ BROADCAST(few) */ id FROM parquet.`{lake}` t JOIN few ON t.key = k")
    both = joined.union(session.sql(f"SELECT id FROM parquet.`{lake}` WHERE key <> 'x'"))
    assert sorted(row.id for row in joined.collect()) == [2 * ROWS + 7, 5 * ROWS + 8]
    assert fuse_spark.explain(joined).source == SourceUse("parquet", FILES, FILES - 2, 0, 2)
    assert both.count() == 2 + FILES * ROWS


@pytest.mark.every_spark
def test_votes_are_switched_off_for_a_session_a_read_and_a_table(session: SparkSession, lake: Path) -> None:
    fuse_spark.index(session, str(lake), "bloom", ["key"])
    condition = f"key = '{key(2, 7)}'"
    read = session.read.parquet(str(lake)).where(condition)
    off = session.read.option("fuse.index.transparent", "false").parquet(str(lake)).where(condition)

    assert "FuseIndexedScan" in read._jdf.queryExecution().executedPlan().toString()
    assert "FuseIndexedScan" not in off._jdf.queryExecution().executedPlan().toString()
    assert read.collect() == off.collect()
    session.conf.set(SWITCH, "FALSE")
    again = session.read.parquet(str(lake)).where(condition)
    assert "FuseIndexedScan" not in again._jdf.queryExecution().executedPlan().toString()


def test_a_query_that_no_index_can_help_asks_for_no_vote(session: SparkSession, lake: Path) -> None:
    fuse_spark.index(session, str(lake), "bloom", ["key"])
    for query in ("SELECT * FROM t", "SELECT * FROM t WHERE key IS NOT NULL", "SELECT * FROM t WHERE id + amount = 3"):
        read = session.sql(query.replace("FROM t", f"FROM parquet.`{lake}`"))
        asks = "FuseIndexedScan" in read._jdf.queryExecution().executedPlan().toString()
        assert asks == ("amount" in query)  # which a kind may know; nobody here does, and every file is read
        assert read.count() == (ROWS * FILES if "amount" not in query else read.count())


def test_a_table_at_a_place_of_its_own_is_used_without_a_warehouse(spark: SparkSession, lake: Path) -> None:
    session = spark.newSession()
    place = lake.parent / "votes"
    made = fuse_spark.index(session, str(lake), "bloom", ["key"], at=place)
    query = f"SELECT id FROM parquet.`{lake}` WHERE key = '{key(2, 7)}'"

    assert made.snapshot.votes_only
    assert use_of(session, query) == SourceUse("parquet", FILES, FILES - 1, 0, 1)
    later = spark.newSession()
    fuse_spark.use(later, place)
    assert use_of(later, query) == SourceUse("parquet", FILES, FILES - 1, 0, 1)


def test_what_cannot_be_indexed_is_said_in_one_sentence(session: SparkSession, lake: Path, tmp_path: Path) -> None:
    calls = {
        "'nosuch.t', 'bloom', array('key')": "source 'nosuch.t' cannot be read: .*cannot be found",
        "'/nosuch', 'bloom', array('key')": "there is no folder /nosuch",
        f"'{lake}', 'blom', array('key')": "no index kind 'blom': did you mean 'bloom'",
        f"'{lake}', 'bloom', array('kee')": "no column 'kee'",
        f"'{lake}', 'bloom', array()": r"columns => \[\]: give names",
        f"'{lake}', 'bloom', array('key'), format => 'orc'": "format='orc': give parquet, delta, iceberg",
        f"'{lake}', 'bloom', array('key'), format => 'delta'": "format='delta': .*lake has indexes as parquet",
    }
    for arguments, sentence in calls.items():
        assert re.search(sentence, failure(session, f"CALL fuse.system.index({arguments})")), arguments
    session.range(3).createOrReplaceTempView("numbers")
    assert "is not read by a connector that is known here" in failure(
        session, "CALL fuse.system.index('numbers', 'bloom', array('id'))"
    )
    assert "the warehouse has no index of" in failure(session, f"CALL fuse.system.drop_source_index('{lake.parent}')")
    own = fuse.create_table(tmp_path / "own", "id BIGINT")
    with pytest.raises(InvalidArgument, match="was not attached to a source"):
        fuse_spark.use(session, own.stored.store.url)
    with pytest.raises(NotFound):
        fuse_spark.use(session, tmp_path / "nothing")
    with pytest.raises(InputError, match="has no warehouse where the index could be"):
        fuse_spark.index(session.newSession(), str(lake), "bloom", ["key"])


@pytest.mark.every_spark
def test_create_index_on_a_table_of_somebody_else_is_kept_in_the_warehouse(session: SparkSession, lake: Path) -> None:
    session.sql(f"CREATE TABLE lake_of_statements USING parquet LOCATION '{lake}'")
    name = "spark_catalog.default.lake_of_statements"
    try:
        session.sql(f"CREATE INDEX by_key ON {name} USING bloom (key) OPTIONS (fpp = '0.001')")
        session.sql(f"CREATE INDEX IF NOT EXISTS by_key ON {name} USING bloom (key)")

        assert use_of(session, f"SELECT id FROM {name} WHERE key = '{key(2, 7)}'") == SourceUse(
            "parquet", FILES, FILES - 1, 0, 1
        )
        assert "INDEX_ALREADY_EXISTS" in failure(session, f"CREATE INDEX by_key ON {name} USING bloom (key)")
        assert "did you mean 'bloom'" in failure(session, f"CREATE INDEX other ON {name} USING blom (key)")
        assert "is of no kind: say USING" in failure(session, f"CREATE INDEX other ON {name} (key)")
        session.sql(f"DROP INDEX by_key ON {name}")
        session.sql(f"DROP INDEX IF EXISTS by_key ON {name}")
        assert session.sql("CALL fuse.system.source_indexes()").collect() == []
        assert "INDEX_NOT_FOUND" in failure(session, f"DROP INDEX by_key ON {name}")
    finally:
        session.sql("DROP TABLE lake_of_statements")


def test_an_index_that_another_session_made_meanwhile_is_one_that_there_is(
    session: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.sql(f"CREATE TABLE lake_of_two USING parquet LOCATION '{lake}'")
    name, look, lost = "spark_catalog.default.lake_of_two", IndexRequests._table_of, []

    def look_and_lose(requests: IndexRequests, source: NamedSource) -> fuse.Table | None:
        found = look(requests, source)
        if not lost:
            lost.append(True)
            fuse_spark.index(session, str(lake), "bloom", ["key"], name="by_key")
        return found

    try:
        monkeypatch.setattr(IndexRequests, "_table_of", look_and_lose)
        session.sql(f"CREATE INDEX IF NOT EXISTS by_key ON {name} USING bloom (key)")
        session.sql(f"DROP INDEX by_key ON {name}")
        lost.clear()
        assert "INDEX_ALREADY_EXISTS" in failure(session, f"CREATE INDEX by_key ON {name} USING bloom (key)")
        assert "did you mean 'bloom'" in failure(session, f"CREATE INDEX other ON {name} USING blom (key)")
        assert [row["index"] for row in session.sql("CALL fuse.system.source_indexes()").collect()] == ["by_key"]
    finally:
        session.sql("DROP TABLE lake_of_two")


def test_sessions_that_create_and_drop_one_index_of_a_source(
    spark: SparkSession, session: SparkSession, lake: Path, tmp_path: Path
) -> None:
    session.sql(f"CREATE TABLE lake_of_many USING parquet LOCATION '{lake}'")
    sessions = [session, *(spark.newSession() for _ in range(3))]
    for other in sessions[1:]:
        fuse_spark.install(other, warehouse=tmp_path / "warehouse")

    def outcomes(statement: str) -> set[str]:
        def run(each: SparkSession) -> str:
            by = " USING bloom (key)" if statement.startswith("CREATE") else ""
            try:
                each.sql(f"{statement} ON spark_catalog.default.lake_of_many{by}")
            except PySparkException as refusal:
                return str(refusal).partition("]")[0].strip("[")
            return "done"

        with ThreadPoolExecutor(len(sessions)) as threads:
            return set(threads.map(run, sessions))

    try:
        for _ in range(effort(2)):
            assert outcomes("CREATE INDEX IF NOT EXISTS by_key") == {"done"}
            assert outcomes("DROP INDEX IF EXISTS by_key") == {"done"}
            assert "done" in outcomes("CREATE INDEX by_key")
            assert outcomes("DROP INDEX by_key") <= {"done", "INDEX_NOT_FOUND"}
    finally:
        session.sql("DROP TABLE lake_of_many")
