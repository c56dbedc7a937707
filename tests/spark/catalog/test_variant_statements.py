"""Statements on VARIANT columns, through every way that rows go between Spark and files."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from fuse_storage.testing import check_invariants

HAS_COLON = pytest.mark.skipif("not __import__('pyspark').__version__ >= '4.1'", reason="v:a is of Spark 4.1")


@pytest.fixture(scope="module")
def filled(sql_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    place = str(tmp_path_factory.mktemp("filled") / "t")
    sql_spark.sql(f"CREATE TABLE fuse.`{place}` (id BIGINT, v VARIANT)")
    sql_spark.sql(
        f"""INSERT INTO fuse.`{place}` VALUES (1, parse_json('{{"a":1}}')), (2, NULL), (3, parse_json('null')),
            (4, CAST(DATE'2024-01-02' AS VARIANT))"""
    )
    made = "parse_json(concat('{\"a\":', id, '}'))"
    sql_spark.sql(f"INSERT INTO fuse.`{place}` SELECT id + 10, {made} FROM range(5)")
    return place


@pytest.fixture
def place(filled: str, tmp_path: Path) -> str:
    return str(shutil.copytree(filled, tmp_path / "t"))


def rows(spark: SparkSession, place: str, where: str = "true") -> dict[int, Any]:
    found = spark.sql(f"SELECT id, to_json(v) t FROM fuse.`{place}` WHERE {where}").collect()
    return {row.id: row.t for row in found}


@pytest.mark.every_spark
def test_rows_are_inserted_updated_deleted_and_merged(sql_spark: SparkSession, place: str) -> None:
    whole = {1: '{"a":1}', 2: None, 3: "null", 4: '"2024-01-02"', **{10 + n: f'{{"a":{n}}}' for n in range(5)}}
    assert rows(sql_spark, place) == whole
    sql_spark.sql(f"""UPDATE fuse.`{place}` SET v = parse_json('{{"u":1}}') WHERE id = 2""")
    sql_spark.sql(f"UPDATE fuse.`{place}` SET v = NULL WHERE id = 3")
    sql_spark.sql(f"DELETE FROM fuse.`{place}` WHERE try_variant_get(v, '$.a', 'int') = 2")
    sql_spark.sql(
        f"""MERGE INTO fuse.`{place}` t USING (SELECT 1L id, parse_json('[7]') v UNION ALL SELECT 99L, NULL) s
            ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"""
    )
    whole = {1: "[7]", 2: '{"u":1}', 3: None, 4: '"2024-01-02"', 99: None, **{10 + n: f'{{"a":{n}}}' for n in range(5)}}
    del whole[12]
    assert rows(sql_spark, place) == whole
    table = fuse.open_table(place)
    assert {row["id"]: row["v"] for row in table.scan().to_arrow().to_pylist()} == whole
    assert table.scan("v::date = DATE'2024-01-02'").count() == 1
    check_invariants(table.stored)


def test_rows_of_an_index_of_one_and_of_a_query_are_alike(sql_spark: SparkSession, place: str) -> None:
    sql_spark.sql(f"CREATE INDEX by_path ON fuse.`{place}` USING json_path (v)")
    assert rows(sql_spark, place, "variant_get(v, '$.a', 'int') = 3") == {13: '{"a":3}'}
    assert rows(sql_spark, place, "id = 4") == {4: '"2024-01-02"'}
    assert rows(sql_spark, place, "v IS NULL") == {2: None}
    (row,) = sql_spark.sql(f"SELECT v FROM fuse.`{place}` WHERE id = 11").collect()
    assert row.v.toPython() == {"a": 1}


@pytest.mark.every_spark
@HAS_COLON
def test_a_path_after_a_colon_is_voted_on(sql_spark: SparkSession, place: str) -> None:
    sql_spark.sql(f"CREATE INDEX by_path ON fuse.`{place}` USING json_path (v)")
    question = sql_spark.sql(f"SELECT id FROM fuse.`{place}` WHERE v:a::int = 77")
    assert question.collect() == []
    assert fuse_spark.explain(question).to_dict()["blocks"]["kept"] < 2


def test_other_ways_carry_variants(sql_spark: SparkSession, place: str, tmp_path: Path) -> None:
    copy, keyed, written = (str(tmp_path / name) for name in ("copy", "keyed", "written"))
    sql_spark.sql(f"CREATE TABLE fuse.`{copy}` AS SELECT * FROM fuse.`{place}`")
    assert rows(sql_spark, copy) == rows(sql_spark, place)
    sql_spark.sql(f"CREATE TABLE fuse.`{keyed}` (id BIGINT NOT NULL, v VARIANT) TBLPROPERTIES ('primary_key' = 'id')")
    sql_spark.sql(f"INSERT INTO fuse.`{keyed}` VALUES (1, parse_json('1')), (2, NULL)")
    sql_spark.sql(f"INSERT INTO fuse.`{keyed}` VALUES (1, parse_json('2'))")
    assert rows(sql_spark, keyed) == {1: "2", 2: None}
    fuse_spark.write(sql_spark.table(f"fuse.`{place}`"), written)
    source = sql_spark.read.format("fuse").load(written).selectExpr("id", "to_json(v) t").collect()
    assert {row.id: row.t for row in source} == rows(sql_spark, place)
    changes = sql_spark.read.format("fuse").option("read_changes", "true").option("since", "1").load(place)
    assert {row.id: row.t for row in changes.selectExpr("id", "to_json(v) t").collect()} == rows(sql_spark, place)


def test_statements_about_columns_know_the_type(sql_spark: SparkSession, place: str) -> None:
    described = sql_spark.sql(f"DESCRIBE fuse.`{place}`").collect()
    assert ("v", "variant") in [(row.col_name, row.data_type) for row in described]
    shown = sql_spark.sql(f"SHOW CREATE TABLE fuse.`{place}`").collect()[0][0]
    assert "v VARIANT" in shown
    assert "not_null" not in shown
    sql_spark.sql(f"ALTER TABLE fuse.`{place}` RENAME COLUMN v TO w")
    sql_spark.sql(f"ALTER TABLE fuse.`{place}` ADD COLUMN v VARIANT")
    assert set(rows(sql_spark, place).values()) == {None}
    for statement in (
        "CREATE TABLE fuse.`$P` (s MAP<VARIANT, INT>)",
        "CREATE TABLE fuse.`$P` (v VARIANT, i INT) PARTITIONED BY (v)",
        "CREATE TABLE fuse.`$P` (i INT, v VARIANT DEFAULT parse_json('1'))",
    ):
        with pytest.raises(AnalysisException, match=r"(?i)variant"):
            sql_spark.sql(statement.replace("$P", f"{place}-other"))


NESTED = "s STRUCT<a: INT, v: VARIANT>, l ARRAY<VARIANT>, m MAP<STRING, VARIANT>"
AS_TEXT = "to_json(s.v) v, to_json(l) l, to_json(m) m, s.a a"


def nested_rows(spark: SparkSession, place: str, where: str = "true") -> dict[int, tuple[Any, ...]]:
    found = spark.sql(f"SELECT id, {AS_TEXT} FROM fuse.`{place}` WHERE {where}").collect()
    return {row.id: (row.v, row.l, row.m, row.a) for row in found}


@pytest.fixture(scope="module")
def filled_nested(sql_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    place = str(tmp_path_factory.mktemp("filled") / "nested")
    sql_spark.sql(f"CREATE TABLE fuse.`{place}` (id BIGINT, {NESTED})")
    sql_spark.sql(
        f"""INSERT INTO fuse.`{place}` VALUES
            (1, named_struct('a', 1, 'v', parse_json('{{"a":1}}')), array(parse_json('1'), NULL),
             map('k', parse_json('[1]'), 'n', NULL)), (2, NULL, NULL, NULL)"""
    )
    made = "named_struct('a', 5, 'v', parse_json(concat('{\"a\":', id, '}')))"
    sql_spark.sql(f"INSERT INTO fuse.`{place}` SELECT id + 10, {made}, NULL, NULL FROM range(3)")
    return place


@pytest.fixture
def nested(filled_nested: str, tmp_path: Path) -> str:
    return str(shutil.copytree(filled_nested, tmp_path / "nested"))


@pytest.mark.every_spark
def test_variants_within_columns_go_every_way(sql_spark: SparkSession, nested: str, tmp_path: Path) -> None:
    first = ('{"a":1}', "[1,null]", '{"k":[1],"n":null}', 1)
    nothing = (None, None, None, None)
    whole = {1: first, 2: nothing, **{10 + n: (f'{{"a":{n}}}', None, None, 5) for n in range(3)}}
    assert nested_rows(sql_spark, nested) == whole
    changes = sql_spark.read.format("fuse").option("read_changes", "true").option("since", "1").load(nested)
    found = {row.id: (row.v, row.l, row.m, row.a) for row in changes.selectExpr("id", *AS_TEXT.split(", ")).collect()}
    assert found == whole
    sql_spark.sql(f"CREATE INDEX by_path ON fuse.`{nested}` USING json_path (s.v)")
    found = sql_spark.sql(f"SELECT id FROM fuse.`{nested}` WHERE variant_get(s.v, '$.a', 'int') = 77")
    assert found.collect() == []
    assert fuse_spark.explain(found).to_dict()["blocks"]["kept"] < 2
    assert nested_rows(sql_spark, nested, "id = 1") == {1: first}
    assert nested_rows(sql_spark, nested, "try_variant_get(s.v, '$.a', 'int') = 2") == {12: whole[12]}
    sql_spark.sql(f"""UPDATE fuse.`{nested}` SET s.v = parse_json('{{"u":1}}'), l = array(NULL) WHERE id = 10""")
    sql_spark.sql(f"UPDATE fuse.`{nested}` SET m = map('x', CAST(NULL AS VARIANT)) WHERE id = 2")
    sql_spark.sql(f"DELETE FROM fuse.`{nested}` WHERE try_variant_get(s.v, '$.a', 'int') = 2")
    sql_spark.sql(
        f"""MERGE INTO fuse.`{nested}` t USING (SELECT 1L id, named_struct('a', 9, 'v', parse_json('[7]')) s, m
                FROM fuse.`{nested}` WHERE id = 1 UNION ALL SELECT 99L, NULL, NULL) u
            ON t.id = u.id WHEN MATCHED THEN UPDATE SET s = u.s, m = u.m
            WHEN NOT MATCHED THEN INSERT (id, s, l, m) VALUES (u.id, u.s, NULL, u.m)"""
    )
    whole[1], whole[99], whole[2] = ("[7]", *first[1:3], 9), nothing, (None, None, '{"x":null}', None)
    whole[10] = ('{"u":1}', "[null]", None, 5)
    del whole[12]
    assert nested_rows(sql_spark, nested) == whole
    copy = str(tmp_path / "copy")
    sql_spark.sql(f"CREATE TABLE fuse.`{copy}` AS SELECT * FROM fuse.`{nested}`")
    assert nested_rows(sql_spark, copy) == whole
    check_invariants(fuse.open_table(nested).stored)


def test_columns_of_structs_with_a_variant_change(sql_spark: SparkSession, nested: str) -> None:
    described = {row.col_name: row.data_type for row in sql_spark.sql(f"DESCRIBE fuse.`{nested}`").collect()}
    assert described["s"] == "struct<a:int,v:variant>"
    sql_spark.sql(f"ALTER TABLE fuse.`{nested}` RENAME COLUMN s.v TO w")
    sql_spark.sql(f"ALTER TABLE fuse.`{nested}` ADD COLUMN s.v VARIANT")
    sql_spark.sql(f"ALTER TABLE fuse.`{nested}` ADD COLUMN late STRUCT<v: VARIANT>")
    found = sql_spark.sql(f"SELECT to_json(s.w) w, s.v IS NULL n, late FROM fuse.`{nested}` WHERE id = 1").collect()
    assert [tuple(row) for row in found] == [('{"a":1}', True, None)]


def test_rows_of_a_key_carry_variants_within(sql_spark: SparkSession, tmp_path: Path) -> None:
    keyed = str(tmp_path / "keyed")
    sql_spark.sql(f"CREATE TABLE fuse.`{keyed}` (id BIGINT NOT NULL, {NESTED}) TBLPROPERTIES ('primary_key' = 'id')")
    for value in ("1", "2"):
        struct = f"named_struct('a', 1, 'v', parse_json('{value}'))"
        sql_spark.sql(f"INSERT INTO fuse.`{keyed}` VALUES (1, {struct}, NULL, NULL), (2, NULL, NULL, NULL)")
    lists = "SELECT id, NULL, array(CAST(NULL AS VARIANT)), NULL FROM range(2, 4)"
    sql_spark.sql(f"INSERT INTO fuse.`{keyed}` {lists}")
    assert nested_rows(sql_spark, keyed) == {
        1: ("2", None, None, 1),
        2: (None, "[null]", None, None),
        3: (None, "[null]", None, None),
    }
