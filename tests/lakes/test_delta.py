"""Delta tables that change under an index: what it does not know is read, and no row that was deleted comes back."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.effort import everything
from tests.lakes.tables import create_delta, place_of, use_index
from tests.spark.foreign.sources import FILES, a_of, b_of
from tests.spark.foreign.ways import Use, Ways, conf

X, Y = a_of(777), a_of(1501)
"""Of the files 3 and 7."""


def rows_and_uses(ways: Ways, source: str, suffix: str = "", a: str = "a", b: str = "b") -> tuple[list[str], list[Use]]:
    """Rows of the files 0, 1, 3 and 7, which are the same in both ways."""
    where = f"{a} IN ('{a_of(5)}', '{X}', '{Y}') OR {b} = '{b_of(333)}'"
    return ways.found(f"SELECT id, {a}, {b}, n FROM {source} {suffix} WHERE {where}")


def probe(ways: Ways, source: str, suffix: str = "") -> list[Use]:
    """Compare these rows in both ways."""
    return rows_and_uses(ways, source, suffix)[1]


@pytest.fixture(scope="module")
def mapped(spark: SparkSession, home: Path) -> str:
    """A table that is changed by one test after the other: with vectors, and columns that have other names in files."""
    name = create_delta(
        spark,
        home,
        **{
            "delta.enableDeletionVectors": "true",
            "delta.columnMapping.mode": "name",
            "delta.enableChangeDataFeed": str(everything()).lower(),  # each statement writes changes as well
        },
    )
    use_index(spark, home, name)
    return name


def test_statements_of_rows(ways: Ways, mapped: str) -> None:
    spark = ways.spark
    assert probe(ways, mapped) == [Use(FILES, 4)]
    spark.sql(f"DELETE FROM {mapped} WHERE a = '{X}' OR id = 778")
    rows, told = rows_and_uses(ways, mapped)
    assert told == [Use(FILES, 4)]
    assert not [row for row in rows if X in row]
    # Of a file whose vector says which rows are deleted: its other rows are where they were.
    assert ways.left_out(f"SELECT id, _metadata.row_index FROM {mapped} WHERE a IN ('{a_of(779)}', '{a_of(790)}')") == [
        7
    ]
    spark.sql(f"UPDATE {mapped} SET b = '{b_of(333)}', n = n + 1 WHERE a IN ('{a_of(5)}', '{Y}')")
    (use,) = probe(ways, mapped)  # the old rows are deleted, the new ones are in files that no index knows
    assert use.left_out == 4
    assert use.unknown == use.files - FILES > 0
    spark.sql(
        f"""MERGE INTO {mapped} t USING (SELECT id, a, b, n FROM {mapped} WHERE a IN ('{a_of(1000)}', '{a_of(5)}')) s
        ON t.id = s.id WHEN MATCHED AND s.n > 500 THEN DELETE WHEN MATCHED THEN UPDATE SET n = -1"""
    )
    probe(ways, mapped)
    spark.sql(
        f"""MERGE INTO {mapped} t USING (SELECT id + 1 AS next FROM {mapped} WHERE a = '{a_of(1000)}') s
        ON t.id = s.next WHEN MATCHED THEN DELETE"""
    )
    spark.sql(f"INSERT INTO {mapped} SELECT id + 9000, a, b, n FROM {mapped} WHERE a = '{Y}'")
    (use,) = probe(ways, mapped)
    assert use.left_out >= 3
    assert use.unknown >= 1


def test_earlier_versions(ways: Ways, mapped: str) -> None:
    rows, told = ways.found(f"SELECT * FROM {mapped} VERSION AS OF 1 WHERE a IN ('{a_of(5)}', '{X}')")
    assert (len(rows), told) == (2, [Use(FILES, FILES - 2)])
    history = ways.spark.sql(f"DESCRIBE HISTORY {mapped}").where("version = 2").head()
    probe(ways, mapped, f"TIMESTAMP AS OF '{history.timestamp}'")


@pytest.mark.thorough
def test_changes_and_streams(ways: Ways, home: Path, tmp_path: Path) -> None:
    name = create_delta(
        ways.spark, home, **{"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
    )
    use_index(ways.spark, home, name)
    ways.spark.sql(f"DELETE FROM {name} WHERE a = '{X}'")
    place = place_of(home, name)
    changes = f"SELECT _change_type, _commit_version FROM table_changes_by_path('{place}', 1) WHERE a = '{X}'"
    assert ways.same(changes) == []
    assert ways.with_votes(changes)[0] == [
        "Row(_change_type='delete', _commit_version=2)",
        "Row(_change_type='insert', _commit_version=1)",
    ]
    streamed = []
    for number, on in enumerate(("true", "false")):
        with conf(ways.spark, spark_fuse_index_transparent=on):
            stream = ways.spark.readStream.format("delta").option("skipChangeCommits", "true").load(str(place))
            chosen = (
                stream.where(f"a IN ('{a_of(9)}', '{Y}')").writeStream.format("memory").queryName(f"stream{number}")
            )
            query = chosen.option("checkpointLocation", str(tmp_path / str(number))).trigger(availableNow=True).start()
            query.awaitTermination()
            streamed.append(sorted(map(str, ways.spark.table(f"stream{number}").collect())))
    assert streamed[0] == streamed[1] != []


def test_names_of_columns_that_were_exchanged(ways: Ways, mapped: str) -> None:
    for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
        ways.spark.sql(f"ALTER TABLE {mapped} RENAME COLUMN {old} TO {new}")
    rows, (use,) = rows_and_uses(ways, mapped, a="b", b="a")
    assert use.left_out >= 3
    assert len([row for row in rows if f"b='{Y}'" in row]) == 2
    assert probe(ways, mapped, "VERSION AS OF 1") == [Use(FILES, 4)]
    ways.spark.sql(f"ALTER TABLE {mapped} DROP COLUMN b")
    ways.spark.sql(f"ALTER TABLE {mapped} ADD COLUMN b STRING")
    ways.spark.sql(f"INSERT INTO {mapped} (id, a, n, b) VALUES (9100, 'x', 1, '{a_of(9)}')")
    rows, _ = ways.found(f"SELECT * FROM {mapped} WHERE b = '{a_of(9)}' OR b IS NULL AND n = 31")
    assert len([row for row in rows if f"b='{a_of(9)}'" in row]) == 1


@pytest.mark.thorough
def test_maintenance(ways: Ways, mapped: str) -> None:
    spark = ways.spark
    spark.sql(f"OPTIMIZE {mapped}")
    ways.same(f"SELECT * FROM {mapped} WHERE a = '{b_of(1000)}'")
    spark.sql(f"RESTORE TABLE {mapped} TO VERSION AS OF 1")
    assert probe(ways, mapped) == [Use(FILES, 4)]
    spark.sql(f"INSERT OVERWRITE {mapped} SELECT 1, '{X}', 'b', 2")
    assert len(spark.sql(f"SELECT * FROM {mapped} WHERE a = '{X}'").collect()) == 1
    ways.same(f"SELECT * FROM {mapped} WHERE a = '{X}'")


@pytest.mark.thorough
def test_widened_types(ways: Ways, home: Path) -> None:
    spark = ways.spark
    name = create_delta(spark, home, **{"delta.enableTypeWidening": "true"})
    use_index(spark, home, name, "a", "n")
    query = f"SELECT * FROM {name} WHERE n = 31 AND a = '{a_of(1)}'"
    assert ways.left_out(query) == [7]
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN n TYPE BIGINT")
    spark.sql(f"INSERT INTO {name} VALUES (7000, 'wide', 'b', 31000000000)")
    assert ways.left_out(query) == [7]
    for where in ("n = 31", "n = 31000000000", "n = 31 OR a = 'wide'"):
        ways.same(f"SELECT id FROM {name} WHERE {where}")


@pytest.mark.thorough
def test_a_vacuum(ways: Ways, mapped: str) -> None:
    with conf(ways.spark, **{"spark.databricks.delta.retentionDurationCheck.enabled": "false"}):
        ways.spark.sql(f"VACUUM {mapped} RETAIN 0 HOURS")
    probe(ways, mapped)
