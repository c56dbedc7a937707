"""Statements of Spark are explained without being run, and read what their accounts name: other blocks may be gone."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from fuse_index.errors import InputError
from fuse_index.pruning.explanation import Explanation
from fuse_index.reasons import Reason
from fuse_index.spark.explanations import explain_query
from tests.effort import in_turn
from tests.spark.executed import job_count

SOURCE = "(SELECT * FROM VALUES (17, 'a'), (41, 'b'), (99, 'c') AS v(id, name)) AS s"
STATEMENTS = {
    "delete": ("DELETE FROM $T WHERE id IN (17, 41)", {1, 4}),
    "delete of blocks": ("DELETE FROM $T WHERE id >= 25", {2}),
    "delete by Spark": ("DELETE FROM $T WHERE id IN (17, 41) AND length(repeat(name, CAST(n + 1 AS INT))) > 0", {1, 4}),
    "update": ("UPDATE $T SET n = n + 1 WHERE id BETWEEN 8 AND 12", {0, 1}),
    "merge": (
        f"MERGE INTO $T AS t USING {SOURCE} ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name "
        f"WHEN NOT MATCHED THEN INSERT (id, name, n) VALUES (s.id, s.name, 0)",
        {1, 4},
    ),
}


def make_table(path: Path, **properties: object) -> fuse.Table:
    table = fuse.create_table(
        path / "t", "id BIGINT, name STRING, n INT", ["id"], {"block_rows": 10, "zone_rows": 5, **properties}
    )
    table.append([{"id": number, "name": f"n{number % 7}", "n": number % 5} for number in range(60)])
    return table


@pytest.mark.every_spark
@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_reads_the_blocks_of_its_account(sql_spark: SparkSession, tmp_path: Path, name: str) -> None:
    text, read = STATEMENTS[name]
    table = make_table(tmp_path, delete_mode="merge-on-read" if name == "update" else "copy-on-write")
    statement = text.replace("$T", f"fuse.`{tmp_path}/t`")
    jobs = job_count(sql_spark)

    told = explain_query(sql_spark, statement)

    assert (job_count(sql_spark), table.refresh().version) == (jobs, 2)
    assert isinstance(told, Explanation)
    assert told.statement is not None
    assert (told.blocks.kept, told.statement.operation) == (len(read), text.split()[0].lower())
    for number, file in enumerate(table.inspect.blocks().column("block").to_pylist()):
        if number not in read:
            (tmp_path / "t" / "_b" / f"{file}.parquet").unlink()
    sql_spark.sql(statement).collect()
    assert table.refresh().version == 3


@pytest.mark.every_spark
def test_keys_of_a_source_that_is_read_are_told_as_awaited(sql_spark: SparkSession, tmp_path: Path) -> None:
    make_table(tmp_path)
    place = f"fuse.`{tmp_path}/t`"

    told = explain_query(
        sql_spark,
        f"MERGE INTO {place} AS t USING (SELECT id + 1 AS id FROM range(5)) s ON t.id = s.id WHEN MATCHED THEN DELETE",
    )

    assert isinstance(told, Explanation)
    assert [vote.added for vote in told.votes if vote.reason is Reason.KEYS_AWAITED][-1]


def test_conditions_that_spark_added_are_marked(sql_spark: SparkSession, tmp_path: Path) -> None:
    make_table(tmp_path)
    place = f"fuse.`{tmp_path}/t`"

    told = fuse_spark.explain(sql_spark.sql(f"SELECT count(name) FROM {place} WHERE id = 17 AND n IS NOT NULL"))

    assert isinstance(told, Explanation)
    assert {vote.leaf: vote.added for vote in told.votes if vote.leaf.startswith(("id", "n "))} == {
        "id IS NULL": True,
        "id = 17": False,
        "n IS NULL": False,
    }


OWN_ACCOUNTS = {
    "DELETE FROM $T WHERE id IN (17, 41)": "fuse delete $T; reads $T 2 of 6 blocks, 2 of 12 zones",
    "UPDATE $T SET n = 0 WHERE id = 3": "fuse update $T; reads $T 1 of 6 blocks, 1 of 12 zones",
    f"MERGE INTO $T AS t USING {SOURCE} ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name": (
        "fuse merge $T; reads $T 6 of 6 blocks"
    ),
    "INSERT INTO $T SELECT id + 100, name, n FROM $T WHERE id = 17": "fuse append $T; reads $T 1 of 6 blocks, 1 of 12",
    "INSERT INTO $T REPLACE WHERE id = 3 SELECT 3L, 'x', 1": "fuse overwrite $T; replaces rows of 1 of 6 blocks, 1 of",
}


@pytest.mark.every_spark
@pytest.mark.parametrize("text", OWN_ACCOUNTS, ids=lambda text: " ".join(text.split()[:4:3]))
def test_spark_s_own_explain_tells_the_blocks_of_a_statement(
    sql_spark: SparkSession, tmp_path: Path, text: str
) -> None:
    make_table(tmp_path)
    place = f"fuse.`{tmp_path}/t`"

    told = sql_spark.sql("EXPLAIN " + text.replace("$T", place)).collect()[0][0]

    assert "fuse_index.spark.java" not in told
    assert OWN_ACCOUNTS[text].replace("$T", place) in told


def test_spark_s_own_explain_of_a_query_tells_blocks(sql_spark: SparkSession, tmp_path: Path) -> None:
    make_table(tmp_path)

    told = sql_spark.sql(f"EXPLAIN SELECT count(n) FROM fuse.`{tmp_path}/t` WHERE id IN (17, 41)").collect()[0][0]

    assert "2 of 6 blocks, 2 of 12 zones" in told


INSERTS = {
    "append": ("INSERT INTO $T SELECT id + 100, name, n FROM $T WHERE id = 17", (0, 1), "append"),
    "values": ("INSERT INTO $T VALUES (100, 'x', 1)", (0,), "append"),
    "with": ("WITH s AS (SELECT * FROM $T WHERE id = 17) INSERT INTO $T SELECT * FROM s", (0, 1), "append"),
    "replace where": (
        "INSERT INTO $T REPLACE WHERE id = 3 SELECT 3L, name, n FROM $T WHERE id = 17",
        (1, 1),
        "overwrite",
    ),
    "overwrite": ("INSERT OVERWRITE $T SELECT * FROM $T WHERE id = 17", (0, 1), "overwrite"),
}


@pytest.mark.every_spark
@pytest.mark.parametrize("name", INSERTS)
def test_an_insert_tells_what_it_reads_of_its_table_and_of_its_query(
    sql_spark: SparkSession, tmp_path: Path, name: str
) -> None:
    text, kept, operation = INSERTS[name]
    table = make_table(tmp_path)

    told = explain_query(sql_spark, text.replace("$T", f"fuse.`{tmp_path}/t`"))

    accounts = [told] if isinstance(told, Explanation) else list(told)
    assert tuple(each.blocks.kept for each in accounts) == kept
    assert accounts[0].statement is not None
    assert accounts[0].statement.operation == operation
    assert (accounts[0].blocks.total, table.refresh().version) == (6, 2)


def test_rows_that_go_elsewhere_are_told_by_their_query(sql_spark: SparkSession, tmp_path: Path) -> None:
    make_table(tmp_path)
    query = f"SELECT * FROM fuse.`{tmp_path}/t` WHERE id = 17"
    sql_spark.sql(f"CREATE TABLE elsewhere (id BIGINT, name STRING, n INT) USING parquet LOCATION '{tmp_path}/rows'")
    try:
        told = [
            explain_query(sql_spark, text)
            for text in (f"CREATE TABLE fuse.`{tmp_path}/other` AS {query}", f"INSERT INTO elsewhere {query}")
        ]
        assert sql_spark.table("elsewhere").isEmpty()
    finally:
        sql_spark.sql("DROP TABLE elsewhere")

    assert [each.blocks.kept for each in told] == [1, 1]  # type: ignore[union-attr]
    assert not (tmp_path / "other").exists()


@pytest.mark.every_spark
def test_a_stream_tells_what_its_first_batch_reads(sql_spark: SparkSession, tmp_path: Path) -> None:
    make_table(tmp_path)
    asked = sql_spark.readStream.format("fuse").option("where", "id IN (17, 41)")
    streams = asked.load(f"{tmp_path}/t"), asked.option("max_blocks_per_trigger", 2).load(f"{tmp_path}/t")

    for stream, (total, kept) in zip(streams, ((6, 2), (2, 1)), strict=True):
        told = fuse_spark.explain(stream.where("n > 0"))
        assert isinstance(told, Explanation)
        assert (told.blocks.total, told.blocks.kept) == (total, kept)
        assert told.changes is not None
        assert (told.changes.until, told.to_dict()["where"]) == (2, "id IN (17, 41)")
    for stream in in_turn(streams, 1):
        query = stream.writeStream.format("memory").queryName(f"t{streams.index(stream)}").start()
        query.processAllAvailable()
        query.stop()
        assert sorted(row.id for row in sql_spark.table(query.name).collect()) == [17, 41]


def test_a_session_switches_indexes_off(sql_spark: SparkSession, tmp_path: Path) -> None:
    make_table(tmp_path)
    query = f"SELECT * FROM fuse.`{tmp_path}/t` WHERE id = 17"
    sql_spark.conf.set("spark.fuse.index.off", "kind:min_max")
    try:
        told = fuse_spark.explain(sql_spark.sql(query))
        rows = sql_spark.sql(query).collect()
    finally:
        sql_spark.conf.unset("spark.fuse.index.off")

    assert isinstance(told, Explanation)
    assert (told.blocks.kept, len(rows)) == (6, 1)
    assert "switched off by the setting spark.fuse.index.off" in {vote.detail for vote in told.votes}
    assert fuse_spark.explain(sql_spark.sql(query)).blocks.kept == 1  # type: ignore[union-attr]


def test_indexes_are_tried_by_calls(sql_spark: SparkSession, tmp_path: Path) -> None:
    make_table(tmp_path)

    tried = sql_spark.sql(
        f"CALL fuse.system.what_if(table => '{tmp_path}/t', kind => 'bloom', columns => array('name'), "
        f"where => array(\"name = 'nowhere'\"))"
    ).collect()
    suggested = sql_spark.sql(
        f"CALL fuse.system.suggest_for(table => '{tmp_path}/t', queries => array(\"name = 'nowhere'\"))"
    ).collect()

    assert len(tried) == 1
    assert suggested[0]["kind"] == "bloom"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE $T SET n = 3 WHERE id = 7",
        "DELETE FROM $T WHERE id = 7 AND length(repeat(name, CAST(n + 1 AS INT))) > 0",
        "MERGE INTO $T t USING (SELECT 7L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
        "INSERT INTO $T SELECT * FROM $T WHERE id = 7",
    ],
)
def test_of_a_statement_what_nobody_wrote_is_marked(sql_spark: SparkSession, tmp_path: Path, statement: str) -> None:
    make_table(tmp_path)

    told = explain_query(sql_spark, statement.replace("$T", f"fuse.`{tmp_path}/t`"))

    accounts = [told] if isinstance(told, Explanation) else list(told)
    marks = {vote.leaf: vote.added for account in accounts for vote in account.votes}
    assert (marks["id IS NULL"], marks["id = 7"]) == (True, False)


@pytest.mark.parametrize("named", [False, True])
def test_a_stream_is_explained_by_its_place_and_by_its_name(
    sql_spark: SparkSession, tmp_path: Path, named: bool
) -> None:
    make_table(tmp_path)
    reader = sql_spark.readStream
    stream = reader.table(f"fuse.`{tmp_path}/t`") if named else reader.format("fuse").load(f"{tmp_path}/t")

    told = fuse_spark.explain(stream)

    assert isinstance(told, Explanation)
    assert (told.blocks.total, told.table) == (6, str(tmp_path / "t"))
    with pytest.raises(InputError, match="DataStreamWriter cannot be explained: give the DataFrame"):
        fuse_spark.explain(stream.writeStream)  # type: ignore[arg-type]
