"""Sessions, threads, views and DataFrames over tables that others change meanwhile."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from fuse_index.spark.catalog.table_names import TableNames, TableReference
from fuse_index.spark.protocol.requests import CreateIndexRequest
from fuse_storage import Warehouse
from tests.effort import effort


@pytest.fixture
def catalog(spark: SparkSession, tmp_path: Path) -> Iterator[fuse.Catalog]:
    fuse_spark.install(spark, warehouse=str(tmp_path / "warehouse"))
    made = fuse.catalog(tmp_path / "warehouse")
    made.create_namespace("db")
    made.create_table("db.t", "id BIGINT, name STRING").append([{"id": 1, "name": "a"}, {"id": 2, "name": "b"}])
    yield made
    spark.catalog.setCurrentCatalog("spark_catalog")


def ids(spark: SparkSession, sql: str) -> list[int]:
    return sorted(row[0] for row in spark.sql(sql).collect())


def test_another_session_is_told_by_another_install(spark, catalog):
    other = spark.newSession()
    with pytest.raises(PySparkException, match=r"fuse"):
        other.sql("SELECT * FROM fuse.db.t").collect()
    fuse_spark.install(other, warehouse=catalog.url)

    assert ids(other, "SELECT id FROM fuse.db.t") == ids(spark, "SELECT id FROM fuse.db.t") == [1, 2]


@pytest.mark.every_spark
def test_a_session_has_several_catalogues(spark, catalog, tmp_path):
    fuse_spark.install(spark, catalog="lake", warehouse=tmp_path / "lake")
    spark.sql("CREATE NAMESPACE lake.db")
    spark.sql("CREATE TABLE lake.db.t (id BIGINT)")
    fuse.catalog(tmp_path / "lake").load_table("db.t").append([{"id": 2}, {"id": 3}])

    assert ids(spark, "SELECT a.id FROM fuse.db.t a JOIN lake.db.t b ON a.id = b.id") == [2]
    fuse_spark.install(spark)  # again, as each program does that gets a session: nothing is forgotten
    assert ids(spark, "SELECT id FROM lake.db.t") == [2, 3]
    assert ids(spark, "SELECT id FROM fuse.db.t") == [1, 2]


def test_a_catalogue_that_is_given_another_warehouse_says_so(spark, catalog, tmp_path, caplog):
    fuse_spark.install(spark, warehouse=catalog.url)
    fuse_spark.install(spark)
    assert caplog.text == ""

    fuse_spark.install(spark, warehouse=tmp_path / "other")
    [said] = caplog.messages
    assert said == (
        f"catalogue 'fuse' has the tables of {tmp_path / 'other'} from now on, and those of {catalog.url} no more: "
        f"to have both, give one another name, install(spark, catalog='…')"
    )


def test_without_a_warehouse_there_are_places_and_no_names(spark, catalog):
    fuse_spark.install(spark, catalog="places")

    assert ids(spark, f"SELECT id FROM places.`{catalog.table_url('db.t')}`") == [1, 2]
    with pytest.raises(AnalysisException, match="has no warehouse, and so no names"):
        spark.sql("SELECT * FROM places.db.t")
    with pytest.raises(AnalysisException, match="has no warehouse, and so no names"):
        spark.sql("CREATE TABLE places.t (id INT)")


def test_threads_work_side_by_side(spark, catalog):
    def work(number: int) -> list[int]:
        spark.sql(f"CREATE TABLE fuse.db.n{number} (id BIGINT)")
        catalog.load_table(f"db.n{number}").append([{"id": number}])
        spark.sql(f"ALTER TABLE fuse.db.n{number} ADD COLUMN more STRING")
        return ids(spark, f"SELECT id FROM fuse.db.n{number}")

    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(work, range(12))) == [[number] for number in range(12)]
    assert len(catalog.list_tables("db")) == 13


def test_of_two_threads_that_make_one_table_one_wins(spark, catalog):
    def work(number: int) -> str:
        try:
            spark.sql(f"CREATE TABLE fuse.db.one (id{number} BIGINT)")
        except AnalysisException as refusal:
            return "lost" if "already" in str(refusal) else str(refusal)
        return f"id{number}"

    with ThreadPoolExecutor(4) as threads:
        outcomes = list(threads.map(work, range(4)))
    assert outcomes.count("lost") == 3
    assert catalog.load_table("db.one").schema.names == [next(name for name in outcomes if name != "lost")]


def test_if_not_exists_never_fails_when_many_say_it(spark, catalog):
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: spark.sql("CREATE TABLE IF NOT EXISTS fuse.db.same (id BIGINT)"), range(8)))
        list(threads.map(lambda _: spark.sql("CREATE NAMESPACE IF NOT EXISTS fuse.same"), range(8)))

    assert catalog.table_exists("db.same")
    assert catalog.namespace_exists("same")


def test_sessions_that_create_and_drop_one_index_are_told_by_spark_s_own_conditions(spark, catalog):
    sessions = [spark, *(spark.newSession() for _ in range(3))]
    for session in sessions:
        fuse_spark.install(session, warehouse=catalog.url)

    def outcomes(sql: str) -> set[str]:
        def run(session: SparkSession) -> str:
            try:
                session.sql(sql)
            except AnalysisException as refusal:
                return re.sub(r".*\] ", "", str(refusal).split(" 'by_name'")[0])
            return "done"

        with ThreadPoolExecutor(len(sessions)) as threads:
            return set(threads.map(run, sessions))

    for _ in range(effort(3)):
        assert outcomes("CREATE INDEX IF NOT EXISTS by_name ON fuse.db.t USING bloom (name)") == {"done"}
        assert outcomes("DROP INDEX IF EXISTS by_name ON fuse.db.t") == {"done"}
        assert "done" in outcomes("CREATE INDEX by_name ON fuse.db.t USING bloom (name)")
        assert outcomes("DROP INDEX by_name ON fuse.db.t") <= {"done", "no index"}
    assert catalog.load_table("db.t").snapshot.definitions == {}


def test_an_index_that_came_after_its_table_was_opened_is_one_that_there_is(spark, catalog, monkeypatch):
    real_open = TableNames.open_to_change

    def open_and_lose(names: TableNames, request: CreateIndexRequest) -> tuple[TableReference, fuse.Table]:
        opened = real_open(names, request)
        catalog.load_table("db.t").create_index(request.index, "bloom", ["name"])
        return opened

    monkeypatch.setattr(TableNames, "open_to_change", open_and_lose)
    spark.sql("CREATE INDEX IF NOT EXISTS by_name ON fuse.db.t USING bloom (name)")
    with pytest.raises(AnalysisException, match="there is an index 'other' already"):
        spark.sql("CREATE INDEX other ON fuse.db.t USING bloom (name)")


@pytest.mark.every_spark
def test_a_query_reads_one_snapshot_of_a_table_throughout(spark, catalog, monkeypatch):
    real_open = TableNames.open

    def open_and_append(names: TableNames, reference: TableReference) -> fuse.Table:
        table = real_open(names, reference)
        catalog.load_table("db.t").append([{"id": 3, "name": "c"}])
        return table

    monkeypatch.setattr(TableNames, "open", open_and_append)
    query = """
        WITH names AS (SELECT name FROM fuse.db.t)
        SELECT a.id FROM fuse.db.t a LEFT ANTI JOIN fuse.db.t b ON a.id = b.id AND a.name = b.name
        UNION ALL SELECT id FROM fuse.db.t WHERE id NOT IN (SELECT id FROM fuse.db.t)
        UNION ALL SELECT id FROM fuse.db.t WHERE name NOT IN (SELECT name FROM names)
        UNION ALL SELECT count(*) FROM fuse.db.t HAVING count(*) <> (SELECT count(*) FROM fuse.db.t)
    """
    assert ids(spark, query) == []


@pytest.mark.every_spark
def test_a_name_is_loaded_once_for_a_query(spark, catalog, monkeypatch):
    opened, real_open = [], TableNames.open
    monkeypatch.setattr(
        TableNames, "open", lambda names, reference: opened.append(reference.shown) or real_open(names, reference)
    )

    looked, real_state = [], Warehouse.state
    monkeypatch.setattr(Warehouse, "state", lambda warehouse: looked.append(1) or real_state(warehouse))

    spark.table("fuse.db.t")
    assert opened == ["fuse.db.t"]
    assert len(looked) == 1  # a request each
    assert ids(spark, "SELECT id FROM fuse.db.t WHERE name = 'b'") == [2]
    assert opened == ["fuse.db.t"] * 2
    assert ids(spark, "SELECT a.id FROM fuse.db.t a JOIN fuse.db.t b USING (id)") == [1, 2]
    assert len(opened) <= 4


def test_a_dataframe_keeps_its_snapshot_while_its_table_is_changed_replaced_and_dropped(spark, catalog):
    before = spark.table("fuse.db.t")
    catalog.load_table("db.t").append([{"id": 3, "name": "c"}])
    assert ids(spark, "SELECT id FROM fuse.db.t") == [1, 2, 3]
    spark.sql("CREATE OR REPLACE TABLE fuse.db.t (other STRING)")

    assert spark.table("fuse.db.t").columns == ["other"]
    assert sorted(row.id for row in before.collect()) == [1, 2]
    spark.sql("DROP TABLE fuse.db.t")
    assert before.where("name = 'b'").count() == 1


@pytest.mark.every_spark
def test_views_follow_their_tables(spark, catalog):
    spark.sql("CREATE VIEW default.kept AS SELECT id FROM fuse.db.t WHERE name > 'a'")
    spark.sql("CREATE TEMPORARY VIEW passing AS SELECT id FROM fuse.db.t WHERE name > 'a'")
    try:
        catalog.load_table("db.t").append([{"id": 3, "name": "c"}])
        assert ids(spark, "SELECT id FROM default.kept") == [2, 3]
        assert ids(spark, "SELECT id FROM passing") == [2, 3]
        assert ids(spark, "SELECT v.id FROM default.kept v JOIN fuse.db.t t ON v.id = t.id") == [2, 3]
    finally:
        spark.sql("DROP VIEW default.kept")
        spark.sql("DROP VIEW passing")


@pytest.mark.every_spark
def test_a_stream_is_read_and_written_by_name(spark, catalog, tmp_path):
    stream = spark.readStream.option("where", "id > 1").table("fuse.db.t")
    query = stream.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).toTable("fuse.db.copied")
    try:
        query.processAllAvailable()
        catalog.load_table("db.t").append([{"id": 3, "name": "c"}])
        query.processAllAvailable()
    finally:
        query.stop()

    assert ids(spark, "SELECT id FROM fuse.db.copied") == [2, 3]
    assert [entry.operation for entry in catalog.load_table("db.copied").stored.history()].count("append") == 2
    refused = {
        "leave it out": spark.readStream.option("path", "/x").table("fuse.db.t"),
        "or these options give others": spark.readStream.option("columns", "id").table("fuse.db.t"),
        "leave out _metadata": spark.readStream.table("fuse.db.t").select("_metadata.row_index"),
    }
    for words, frame in refused.items():
        query = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / words)).start()
        with pytest.raises(PySparkException, match=words):
            query.processAllAvailable()


@pytest.mark.parametrize("name", ["spark_catalog", "", "a.b"])
def test_a_catalogue_cannot_have_any_name(spark, name):
    with pytest.raises(fuse.InputError, match="catalog="):
        fuse_spark.install(spark, catalog=name)


@pytest.mark.every_spark
@pytest.mark.parametrize("statement", ["CREATE OR REPLACE TABLE fuse.db.t (k INT)", "DROP TABLE fuse.db.t"])
def test_a_table_that_is_replaced_or_dropped_under_a_query_is_read_to_its_end(spark, catalog, statement):
    frame = spark.table("fuse.db.t")
    rows = frame.toLocalIterator()
    first = next(rows)
    spark.sql(statement)

    assert sorted([first.id, *(row.id for row in rows)]) == [1, 2]
    assert [row.id for row in frame.where("id = 2").collect()] == [2]
    assert frame.inputFiles() == []  # Spark asks only its own relations


def test_what_is_cached_is_of_its_snapshot_and_no_answer_for_a_newer_one(spark, catalog):
    spark.sql("CACHE TABLE kept AS SELECT * FROM fuse.db.t")
    try:
        catalog.load_table("db.t").append([{"id": 3, "name": "c"}])
        assert ids(spark, "SELECT id FROM kept") == [1, 2, 3]
    finally:
        spark.sql("UNCACHE TABLE kept")
        spark.sql("DROP VIEW kept")
    spark.sql("REFRESH TABLE fuse.db.t")
    spark.catalog.refreshTable("fuse.db.t")
    assert ids(spark, "SELECT id FROM fuse.db.t") == [1, 2, 3]


@pytest.mark.every_spark
def test_the_catalog_of_a_session_in_python(spark, catalog):
    spark.catalog.setCurrentCatalog("fuse")
    spark.catalog.setCurrentDatabase("db")

    assert spark.catalog.currentCatalog() == "fuse"
    assert spark.catalog.currentDatabase() == "db"
    assert "fuse" in [each.name for each in spark.catalog.listCatalogs()]
    assert [each.name for each in spark.catalog.listDatabases()] == ["db"]
    assert [each.name for each in spark.catalog.listTables()] == ["t"]
    assert [each.name for each in spark.catalog.listColumns("t")] == ["id", "name"]
    assert spark.catalog.tableExists("t")
    assert spark.catalog.tableExists("fuse.db.t")
    assert not spark.catalog.tableExists("fuse.db.nothing")
    assert spark.catalog.databaseExists("db")
    assert not spark.catalog.databaseExists("nothing")
    assert spark.catalog.getTable("t").name == "t"
    assert spark.read.table("t").count() == spark.table("fuse.db.t").count() == 2
    assert fuse_spark.explain(spark.table("t").where("id = 1")).to_dict()


@pytest.mark.every_spark
def test_procedures_are_listed_where_spark_has_the_statement(spark, catalog):
    if spark.version < "4.1":
        pytest.skip("Spark 4.0 has no SHOW PROCEDURES")
    names = {row[-1] for row in spark.sql("SHOW PROCEDURES IN fuse.system").collect()}

    assert {"compact", "vacuum", "undrop", "explain"} <= names


def test_explain_as_a_procedure_tells_what_an_index_removed(spark, catalog):
    catalog.load_table("db.t").append([{"id": 3, "name": "c"}])
    spark.sql("CREATE INDEX by_name ON fuse.db.t USING bloom (name)")
    lines = [
        row[0] for row in spark.sql("CALL fuse.system.explain('SELECT * FROM fuse.db.t WHERE name = \"b\"')").collect()
    ]

    assert any("by_name" in line for line in lines), lines
    assert "blocks   1 of 2 to read" in lines


@pytest.mark.every_spark
def test_what_show_create_table_prints_makes_the_same_table(spark, catalog):
    spark.sql("""CREATE TABLE fuse.db.made (
        id BIGINT NOT NULL COMMENT 'who', city STRING DEFAULT 'Bonn', odd STRING NOT NULL DEFAULT "it's\\\\",
        home STRUCT<a: STRUCT<b: INT NOT NULL>>, l ARRAY<STRUCT<c: INT NOT NULL, d: INT>>, m MAP<STRING, DOUBLE>)
        CLUSTER BY (city) COMMENT 'people' TBLPROPERTIES (block_rows = '10', team = 'x', key = 'id')""")
    text = spark.sql("SHOW CREATE TABLE fuse.db.made").first()[0]
    assert "LOCATION" not in text
    assert "CAST('Bonn' AS string)" in text
    spark.sql("ALTER TABLE fuse.db.made RENAME TO first")
    spark.sql(text)

    made, first = (catalog.load_table(name).snapshot for name in ("db.made", "db.first"))
    assert made.schema.fields == first.schema.fields
    assert made.schema.find("odd").write_default == "it's\\"
    assert [field.nullable for field in made.schema.fields] == [False, True, False, True, True, True]
    assert not made.schema.find("home.a.b").nullable
    assert made.key == ("id",)
    assert (made.cluster_by, made.properties) == (first.cluster_by, first.properties)
    assert catalog.load_table_properties("db.made")["comment"] == "people"


@pytest.mark.every_spark
@pytest.mark.parametrize(
    "statement", ["OPTIMIZE", "OPTIMIZE delta.`/x/y`", "VACUUM spark_catalog.default.t", "EXPLAIN OPTIMIZE t"]
)
def test_statements_that_are_about_no_table_of_ours_reach_sparks_parser(spark, catalog, statement):
    spark.sql("USE fuse.db")

    with pytest.raises(ParseException, match="PARSE_SYNTAX_ERROR"):
        spark.sql(statement)
    other = spark.newSession()
    with pytest.raises(ParseException, match="PARSE_SYNTAX_ERROR"):
        other.sql("OPTIMIZE fuse.db.t")
    fuse_spark.install(other, warehouse=catalog.url)
    assert other.sql("OPTIMIZE fuse.db.t").first()["blocks"] == 1
