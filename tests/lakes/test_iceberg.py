"""Iceberg tables that change under an index: what it does not know is read, and no row that was deleted comes back."""

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.functions import lit

from fuse_index import spark as fuse_spark
from tests.lakes.tables import all_rows, create_iceberg, use_index
from tests.spark.foreign.sources import FILES, MISSING, a_of, b_of
from tests.spark.foreign.ways import Use, Ways, conf

X, Y = a_of(777), a_of(1501)
"""Of the files 3 and 7."""


def modes(mode: str) -> dict[str, str]:
    return {f"write.{statement}.mode": mode for statement in ("delete", "update", "merge")}


def probe(ways: Ways, source: str, suffix: str = "", a: str = "a", b: str = "b") -> list[Use]:
    """Compare rows of the files 0, 1, 3 and 7 in both ways."""
    where = f"{a} IN ('{a_of(5)}', '{X}', '{Y}') OR {b} = '{b_of(333)}'"
    return ways.same(f"SELECT id, {a}, {b}, n FROM {source} {suffix} WHERE {where}")


@pytest.mark.parametrize("mode", ["merge-on-read", pytest.param("copy-on-write", marks=pytest.mark.thorough)])
def test_statements_of_rows(ways: Ways, home: Path, mode: str) -> None:
    spark, name = ways.spark, create_iceberg(ways.spark, **modes(mode), **{"format-version": "2"})
    use_index(spark, home, name)
    assert probe(ways, name) == [Use(FILES, 4, 0, 4)]
    spark.sql(f"DELETE FROM {name} WHERE a = '{X}' OR id = 778")
    assert spark.sql(f"SELECT * FROM {name} WHERE a = '{X}'").collect() == []
    left = ways.left_out(f"SELECT id, _pos FROM {name} WHERE a IN ('{a_of(779)}', '{a_of(790)}')")
    assert left == [7]  # of merge-on-read it is the file's other rows, of copy-on-write a file that no index knows
    spark.sql(f"UPDATE {name} SET b = '{b_of(333)}', n = n + 1 WHERE a IN ('{a_of(5)}', '{Y}')")
    spark.sql(
        f"""MERGE INTO {name} t USING (SELECT id, a, b, n FROM {name} WHERE a IN ('{a_of(1000)}', '{a_of(5)}')) s
        ON t.id = s.id WHEN MATCHED AND s.n > 500 THEN DELETE WHEN MATCHED THEN UPDATE SET n = -1"""
    )
    spark.sql(f"DELETE FROM {name} WHERE id IN (SELECT id + 1 FROM {name} WHERE a = '{a_of(1000)}')")
    spark.sql(f"INSERT INTO {name} SELECT id + 9000, a, b, n FROM {name} WHERE a = '{Y}'")
    assert probe(ways, name)[0].left_out >= 3
    ways.same(f"SELECT * FROM {name} WHERE id IN ({', '.join(map(str, range(995, 1010)))})")


def test_rows_that_are_not_read_in_batches_are_of_spark_s_own_kind(ways: Ways, home: Path) -> None:
    """Python and exchanges take no others, and what is not compiled (``exists``) hands them on as they are."""
    spark, name = ways.spark, create_iceberg(ways.spark, **{"read.parquet.vectorization.enabled": "false"})
    use_index(spark, home, name)
    spark.udf.register("plus_one", lambda n: n + 1, "bigint")
    where = f"a = '{X}' AND exists(array(n), e -> e >= 0)"

    assert ways.left_out(f"SELECT id, a, b, n FROM {name} WHERE {where}") == [FILES - 1]
    assert ways.left_out(f"SELECT id, a, b, n FROM {name} WHERE {where} AND plus_one(n) > 0") == [FILES - 1]
    assert ways.left_out(f"SELECT /*+ REPARTITION(2) */ * FROM {name} WHERE {where}") == [FILES - 1]
    assert len(spark.sql(f"SELECT * FROM {name} WHERE {where} AND plus_one(n) > 0").collect()) == 1


def test_metadata_tables_have_no_indexes(ways: Ways, home: Path) -> None:
    spark, name = ways.spark.newSession(), create_iceberg(ways.spark)
    fuse_spark.install(spark, warehouse=home / "warehouse of metadata")
    spark.sql(f"CALL fuse.system.index('{name}', 'bloom', array('a'))")
    for table, column in ("files", "file_path"), ("snapshots", "operation"), ("entries", "status"):
        with pytest.raises(PySparkException, match=rf"source '{name}.{table}' is not read by a connector"):
            spark.sql(f"CALL fuse.system.index('{name}.{table}', 'bloom', array('{column}'))")
    assert spark.sql(f"SELECT * FROM {name}.files WHERE file_path = 'x'").collect() == []
    assert spark.sql(f"SELECT * FROM {name}.files WHERE record_count > 0").count() == FILES


@pytest.fixture(scope="module")
def versions(spark: SparkSession, home: Path) -> str:
    """A table with two versions, a tag and a branch, which both have rows that the other lacks."""
    name = create_iceberg(spark)
    use_index(spark, home, name)
    spark.sql(f"ALTER TABLE {name} CREATE TAG before")
    spark.sql(f"ALTER TABLE {name} CREATE BRANCH side")
    spark.sql(f"INSERT INTO {name}.branch_side VALUES (8000, '{X}', 'side', 1)")
    spark.sql(f"DELETE FROM {name}.branch_side WHERE a = '{Y}'")
    spark.sql(f"INSERT INTO {name} VALUES (8001, '{X}', 'main', 1)")
    return name


def test_earlier_versions_branches_and_tags(ways: Ways, versions: str) -> None:
    name = versions
    first, *_ = ways.spark.sql(
        f"SELECT snapshot_id, committed_at FROM {name}.snapshots ORDER BY committed_at"
    ).collect()
    for suffix in (
        f"VERSION AS OF {first.snapshot_id}",
        "VERSION AS OF 'before'",
        f"TIMESTAMP AS OF '{first.committed_at}'",
    ):
        assert probe(ways, name, suffix) == [Use(FILES, 4, 0, 4)]
    assert probe(ways, name, "VERSION AS OF 'side'")[0].left_out >= 4
    assert probe(ways, f"{name}.branch_side")[0].left_out >= 4
    ids = {
        suffix: [
            row.id for row in ways.spark.sql(f"SELECT id FROM {name} {suffix} WHERE a = '{X}' ORDER BY id").collect()
        ]
        for suffix in ("", "VERSION AS OF 'side'", "VERSION AS OF 'before'")
    }
    assert ids == {"": [777, 8001], "VERSION AS OF 'side'": [777, 8000], "VERSION AS OF 'before'": [777]}


@pytest.mark.thorough
def test_what_came_between_two_versions(ways: Ways, versions: str) -> None:
    spark = ways.spark
    ids = [
        row.snapshot_id
        for row in spark.sql(f"SELECT snapshot_id FROM {versions}.history ORDER BY made_current_at").collect()
    ]
    between = spark.read.format("iceberg").option("start-snapshot-id", ids[0]).option("end-snapshot-id", ids[-1])
    ways.same(lambda: between.load(versions).where(f"a = '{X}'"))
    ways.same(f"SELECT id, _change_type FROM {versions}.changes WHERE a = '{X}'")


@pytest.mark.thorough
def test_streams(ways: Ways, versions: str, tmp_path: Path) -> None:
    streamed = []
    for number, on in enumerate(("true", "false")):
        with conf(ways.spark, spark_fuse_index_transparent=on):
            chosen = ways.spark.readStream.table(versions).where(f"a IN ('{X}', '{Y}')")
            sink = chosen.writeStream.format("memory").queryName(f"ice_stream{number}")
            query = sink.option("checkpointLocation", str(tmp_path / str(number))).trigger(availableNow=True).start()
            query.awaitTermination()
            streamed.append(sorted(row.id for row in ways.spark.table(f"ice_stream{number}").collect()))
    assert streamed == [[777, 1501, 8001]] * 2


def test_columns_that_got_other_names_and_types(ways: Ways, home: Path) -> None:
    spark, name = ways.spark, create_iceberg(ways.spark)
    use_index(spark, home, name, "a", "b", "n")
    for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
        spark.sql(f"ALTER TABLE {name} RENAME COLUMN {old} TO {new}")
    assert probe(ways, name, a="b", b="a") == [Use(FILES, 4, 0, 4)]
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN n TYPE BIGINT")
    spark.sql(f"INSERT INTO {name} VALUES (7000, 'wide', 'b', 31000000000)")
    for where in ("n = 31", "n = 31000000000", f"n = 31 AND b = '{a_of(1)}'"):
        ways.same(f"SELECT id FROM {name} WHERE {where}")
    spark.sql(f"ALTER TABLE {name} DROP COLUMN b")
    spark.sql(f"ALTER TABLE {name} ADD COLUMN b STRING")
    spark.sql(f"INSERT INTO {name} (id, a, n, b) VALUES (9100, 'x', 1, '{a_of(9)}')")
    assert ways.left_out(f"SELECT * FROM {name} WHERE b = '{a_of(9)}' AND upper(b) > 'A'") in ([], [0])
    ways.same(f"SELECT count(*) FROM {name} WHERE b IS NULL AND n = 31")


def test_files_are_written_anew(ways: Ways, home: Path) -> None:
    spark, name = ways.spark, create_iceberg(ways.spark)
    use_index(spark, home, name)
    spark.sql(f"DELETE FROM {name} WHERE a = '{X}'")
    spark.sql(f"CALL ice.system.rewrite_data_files(table => '{name[4:]}', options => map('rewrite-all', 'true'))")
    (use, *_) = ways.same(f"SELECT * FROM {name} WHERE a = '{Y}'")
    assert use.left_out == 0
    assert use.unknown == use.files > 0
    spark.sql(f"INSERT OVERWRITE {name} SELECT 1, '{X}', 'b', 2")
    assert len(spark.sql(f"SELECT * FROM {name} WHERE a = '{X}'").collect()) == 1
    ways.same(f"SELECT * FROM {name} WHERE a = '{X}'")


def test_one_split_of_which_nothing_is_left(ways: Ways, home: Path) -> None:
    spark, name = ways.spark, create_iceberg(ways.spark)
    all_rows(spark).where("id < 100").coalesce(1).writeTo(name).overwrite(lit(True))
    use_index(spark, home, name)
    expected = [1]
    assert ways.left_out(f"SELECT count(*), max(n) FROM {name} WHERE a = '{MISSING}'") == expected
    assert ways.left_out(f"SELECT count(*) c FROM {name} p CROSS JOIN {name} q WHERE p.a = '{MISSING}'") == expected
    assert ways.left_out(f"SELECT id, count(*) OVER () FROM {name} WHERE a = '{MISSING}'") == expected


@pytest.mark.parametrize("partly", ["true", pytest.param("false", marks=pytest.mark.thorough)])
def test_joins_of_partitions_as_they_are_stored(ways: Ways, home: Path, partly: str) -> None:
    spark = ways.spark
    names = [create_iceberg(spark, "PARTITIONED BY (bucket(3, id))") for _ in range(2)]
    for name in names:
        use_index(spark, home, name)
    settings = {
        "spark.sql.sources.v2.bucketing.enabled": "true",
        "spark.sql.sources.v2.bucketing.pushPartValues.enabled": "true",
        "spark.sql.sources.v2.bucketing.partiallyClusteredDistribution.enabled": partly,
        "spark.sql.iceberg.planning.preserve-data-grouping": "true",
        "spark.sql.requireAllClusterKeysForCoPartition": "false",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
    }
    one, two = names
    files = spark.sql(f"SELECT count(*) FROM {one}.files").head()[0]
    with conf(spark, **settings):
        for query, left in [
            (f"SELECT p.id, q.b FROM {one} p JOIN {two} q USING (id) WHERE p.a = '{X}'", [files - 1, 0]),
            (
                f"SELECT p.id, q.b FROM {one} p LEFT JOIN {two} q ON p.id = q.id AND q.a = '{MISSING}' "
                f"WHERE p.a = '{X}'",
                [files - 1, files],
            ),
            (f"SELECT id, count(*) FROM {one} WHERE a IN ('{X}', '{Y}') GROUP BY id", [files - 2]),
        ]:
            df = spark.sql(query)
            df.collect()
            assert "Exchange hashpartitioning" not in df._jdf.queryExecution().executedPlan().toString()
            assert sorted(each for each in ways.left_out(query) if each) == sorted(each for each in left if each)
