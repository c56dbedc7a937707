"""UPDATE and MERGE of values that are drawn, of where rows lie, and of what is not of one row, into all tables."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from tests.effort import in_turn

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
SMALL = {"block_rows": 50}
KINDS: dict[str, dict[str, Any]] = {
    "copy-on-write": {"properties": SMALL},
    "merge-on-read": {"properties": SMALL | {"delete_mode": "merge-on-read"}},
    "keyed": {"properties": SMALL, "primary_key": ["id"]},
}


@pytest.fixture(params=KINDS)
def table(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> str:
    catalog = fuse.catalog(tmp_path / "warehouse", create=True)
    catalog.create_namespace("db")
    made = catalog.create_table("db.t", SCHEMA, **KINDS[request.param])
    made.append(pa.table({"id": range(500), "v": pa.nulls(500, pa.string())}, schema=SCHEMA))
    fuse_spark.install(spark, warehouse=catalog.url)
    return "fuse.db.t"


def drawn_ids(rows: int) -> str:
    """So many rows, each with another key below 1,000, of which nobody knows before whether the table has it."""
    return (
        f"SELECT CAST(floor(rand() * 50) AS BIGINT) * {rows} + n AS id, concat(n, '/', uuid()) AS v "
        f"FROM (SELECT id AS n FROM range(0, {rows}, 1, 2))"
    )


@pytest.mark.alike
def test_a_source_that_draws_its_rows_is_evaluated_once(spark: SparkSession, table: str) -> None:
    statement = (
        f"MERGE INTO {table} t USING ({drawn_ids(20)}) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"
    )
    spark.sql(f"EXPLAIN {statement}").collect()
    assert spark.table(table).count() == 500
    spark.sql(statement)

    changed = spark.table(table).where("v IS NOT NULL").collect()
    assert sorted(int(row.v.split("/")[0]) for row in changed) == list(range(20))
    assert all(row.id % 20 == int(row.v.split("/")[0]) for row in changed)
    ids = [row.id for row in spark.table(table).collect()]
    assert len(ids) == len(set(ids)) == 500 + sum(row.id >= 500 for row in changed)


@pytest.mark.alike
def test_clauses_draw_a_value_for_each_row(spark: SparkSession, table: str) -> None:
    spark.sql(
        f"MERGE INTO {table} t USING (SELECT id, 'x' AS v FROM range(490, 510)) s ON t.id = s.id "
        "WHEN MATCHED AND s.id < 495 THEN UPDATE SET v = concat(s.v, uuid(), t.id) "
        "WHEN MATCHED THEN UPDATE SET v = uuid() WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, uuid())"
    )
    rows = spark.table(table).where("v IS NOT NULL").orderBy("id").collect()
    assert [(row.id, len(row.v)) for row in rows] == [
        *((id_, 1 + 36 + 3) for id_ in range(490, 495)),
        *((id_, 36) for id_ in range(495, 510)),
    ]
    assert len({row.v for row in rows}) == 20


@pytest.mark.every_spark
def test_rows_are_updated_by_where_they_lie(spark: SparkSession, table: str) -> None:
    spark.sql(f"UPDATE {table} SET v = 'x' WHERE _metadata.row_index >= 0 AND id = 1")
    spark.sql(f"UPDATE {table} SET v = concat(_metadata.file_name LIKE '%.parquet', '/', id) WHERE id = 77")
    spark.sql(f"DELETE FROM {table} WHERE _metadata.row_index >= 0 AND id = 90")
    assert [tuple(row) for row in spark.table(table).where("v IS NOT NULL").orderBy("id").collect()] == [
        (1, "x"),
        (77, "true/77"),
    ]
    assert spark.table(table).count() == 499


WINDOW = "CAST(row_number() OVER (ORDER BY {}) AS STRING)"
CLAUSES = [  # and what Spark's analyzer refuses before anybody else sees it
    (f"UPDATE {{table}} SET v = {WINDOW.format('id')} WHERE id >= 2", "a window"),
    ("UPDATE {table} SET v = max(v)", "an aggregate"),
    ("UPDATE {table} SET v = 'x' WHERE id > 7 AND max(id) > 0", "an aggregate"),
    ("DELETE FROM {table} WHERE max(id) > 0", "an aggregate"),
    (f"DELETE FROM {{table}} WHERE id > 7 AND {WINDOW.format('id')} > '1'", None),
    ("DELETE FROM {table} WHERE explode(array(id)) > 7", None),
    (f"{{merge}} WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, {WINDOW.format('s.id')})", "a window"),
    ("{merge} WHEN NOT MATCHED THEN INSERT (id, v) VALUES (max(s.id), max(s.v))", "an aggregate"),
    ("{merge} WHEN NOT MATCHED THEN INSERT (id, v) VALUES (explode(array(s.id)), s.v)", None),
    (f"{{merge}} WHEN MATCHED THEN UPDATE SET v = {WINDOW.format('t.id')}", "a window"),
    (f"{{merge}} WHEN MATCHED AND {WINDOW.format('s.id')} = '1' THEN DELETE", "a window"),
    ("{merge} WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, max(s.v))", "an aggregate"),
    ("{merge} WHEN MATCHED AND max(s.id) > 0 THEN DELETE", None),
    ("{merge} WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = max(t.v)", "an aggregate"),
]


def test_what_is_not_of_one_row_is_refused_in_clauses(
    spark: SparkSession, table: str, request: pytest.FixtureRequest
) -> None:
    merge = f"MERGE INTO {table} t USING (SELECT id, 'x' AS v FROM range(498, 502)) s ON t.id = s.id"
    number = list(KINDS).index(request.node.callspec.params["table"])
    for statement, found in in_turn(CLAUSES, number, len(KINDS)):
        named = (
            rf"(UPDATE|DELETE FROM|MERGE INTO) fuse\.db\.t has {found}, .* looks at each row by itself: say MERGE INTO"
        )
        with pytest.raises(AnalysisException, match=named if found else None):
            spark.sql(statement.format(table=table, merge=merge))
    spark.sql(
        f"MERGE INTO {table} t USING (SELECT id, lag(id) OVER (ORDER BY id) AS before FROM {table}) s ON t.id = s.id "
        "WHEN MATCHED AND s.id = 7 THEN UPDATE SET v = CAST(s.before AS STRING) "
        "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, (SELECT max(id) FROM range(3)))"
    )
    assert [tuple(row) for row in spark.table(table).where("v IS NOT NULL").collect()] == [(7, "6")]
    assert spark.table(table).count() == 500


@pytest.mark.every_spark
@pytest.mark.parametrize(
    "statement",
    [
        "MERGE INTO {table} t USING (SELECT id FROM range(498, 502)) s ON t.id = s.id AND t._metadata.row_index >= 0 "
        "WHEN MATCHED THEN UPDATE SET v = 'x'",
        "MERGE INTO {table} t USING (SELECT id FROM range(498, 502)) s ON t.id = s.id "
        "WHEN MATCHED AND t._metadata.file_name LIKE '%.parquet' THEN UPDATE SET v = 'x'",
    ],
)
def test_a_merge_by_where_rows_lie_is_done_or_refused_by_name(spark: SparkSession, table: str, statement: str) -> None:
    if spark.version.startswith("4.0"):
        spark.sql(statement.format(table=table))
        assert [row.id for row in spark.table(table).where("v = 'x'").orderBy("id").collect()] == [498, 499]
    else:
        with pytest.raises(AnalysisException, match=r"MERGE INTO fuse\.db\.t has conditions on _metadata"):
            spark.sql(statement.format(table=table))
