"""VARIANT within other columns: what Spark finds in plain Parquet, natively, by rows, in Python and locally."""

import itertools
import json
import shutil
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from fuse_index.errors import OpaqueError
from fuse_storage.testing import check_invariants
from tests.effort import everything, in_turn
from tests.index.sources.test_variants import Log

pytestmark = pytest.mark.every_spark

VALUES = [
    "1",
    "127",
    "1.5",
    "true",
    "null",
    '"1"',
    '"x"',
    '"2024-01-02"',
    "[1]",
    "{}",
    '{"b":1}',
    "12345678901234567890",
]
DOCUMENTS = [f'{{"a":{value},"z":[{value},2]}}' for value in VALUES] + VALUES
CASTS = ["1.5D", "CAST(1.50 AS DECIMAL(10,2))", "DATE'2024-01-02'", "TIMESTAMP'2024-01-02 03:04:05'", "X'31'"]
PLACES = ["s.v", "try_element_at(l, 1)", "m['k']", "get(d, 0).w"]
"""Where values lie: the first is indexed, and of the last only Spark finds any."""
QUESTIONS = [
    f"try_variant_get({place}, '{path}', '{kind}') {question}"
    for place, path, (kind, question) in itertools.product(
        PLACES,
        ["$", "$.a", "$.z[0]"],
        [("int", "= 1"), ("double", "> 1"), ("string", "= 'x'"), ("date", "= DATE'2024-01-02'"), ("int", "IS NULL")],
    )
] + ["s.v IS NULL", "s IS NULL", "s.v IS NULL AND s.a = 1", "l[0] IS NULL", "size(l) = 2"]
FEW = [*in_turn(QUESTIONS[:15], 0), *QUESTIONS[15:-5:7], *QUESTIONS[-5:]]
COLUMNS = (
    "id BIGINT, s STRUCT<a: INT, v: VARIANT>, l ARRAY<VARIANT>, m MAP<STRING, VARIANT>, d ARRAY<STRUCT<w: VARIANT>>"
)


def world(spark: SparkSession) -> DataFrame:
    texts = spark.createDataFrame([(number, text) for number, text in enumerate(DOCUMENTS)], "id BIGINT, t STRING")
    values = texts.selectExpr("id", "parse_json(t) v")
    for number, cast in enumerate(CASTS, len(DOCUMENTS)):
        values = values.union(spark.sql(f"SELECT {number}L id, to_variant_object(named_struct('a', {cast})) v"))
    values = values.union(spark.sql("SELECT 100L id, CAST(NULL AS VARIANT) v"))
    rows = values.selectExpr(
        "id",
        "named_struct('a', 1, 'v', v) s",
        "array(v, CAST(NULL AS VARIANT)) l",
        "map('k', v, 'z', CAST(NULL AS VARIANT)) m",
        "array(named_struct('w', v), CAST(NULL AS STRUCT<w: VARIANT>)) d",
    )
    return rows.union(
        spark.sql(
            "SELECT 101L id, CAST(NULL AS STRUCT<a: INT, v: VARIANT>), CAST(NULL AS ARRAY<VARIANT>), "
            "CAST(NULL AS MAP<STRING, VARIANT>), CAST(array() AS ARRAY<STRUCT<w: VARIANT>>)"
        )
    )


@pytest.fixture(scope="module")
def url(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    fuse_spark.install(spark)
    url = str(tmp_path_factory.mktemp("tables") / "variants")
    table = fuse.create_table(url, COLUMNS, properties={"block_rows": 1})
    table.create_index("by_path", "json_path", ["s.v"])
    fuse_spark.write(world(spark).coalesce(1), url)
    return url


@pytest.fixture(scope="module")
def plain(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    path = str(tmp_path_factory.mktemp("plain") / "variants")
    world(spark).coalesce(1).write.parquet(path)
    return spark.read.parquet(path).cache()


@pytest.fixture(scope="module")
def answers(plain: DataFrame) -> dict[str, list[int]]:
    """The ids on which each question is true, of one job."""
    told = plain.selectExpr("id", *(f"coalesce({question}, false) q{n}" for n, question in enumerate(QUESTIONS)))
    found = told.collect()
    return {question: sorted(row.id for row in found if row[f"q{n}"]) for n, question in enumerate(QUESTIONS)}


def texts(rows: DataFrame) -> list[tuple[object, ...]]:
    told = rows.selectExpr(
        "id", "to_json(s) s", "to_json(l) l", "to_json(m) m", "to_json(d) d", "to_json(s.v) v", "to_json(m['k']) k"
    )
    return sorted(map(tuple, told.collect()), key=lambda row: row[0])


@pytest.mark.parametrize("vectorized", ["true", "false"])
def test_rows_are_those_of_plain_parquet(spark: SparkSession, url: str, plain: DataFrame, vectorized: str) -> None:
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
    try:
        assert texts(fuse_spark.read(spark, url)) == texts(plain)
    finally:
        spark.conf.unset("spark.sql.parquet.enableVectorizedReader")


@pytest.mark.any_spark
def test_rows_that_python_reads_for_spark_are_alike(spark: SparkSession, url: str, plain: DataFrame) -> None:
    assert texts(spark.read.format("fuse").load(url)) == texts(plain)


def test_rows_are_found_as_without_us(spark: SparkSession, url: str, answers: dict[str, list[int]]) -> None:
    ours, wrong = fuse_spark.read(spark, url), {}
    for question in FEW:
        found = sorted(row.id for row in ours.where(question).select("id").collect())
        if found != answers[question]:
            wrong[question] = (found, answers[question])
    assert not wrong


@pytest.mark.any_spark
def test_locally_found_rows_are_those_that_spark_finds(url: str, answers: dict[str, list[int]]) -> None:
    table, wrong, opaque = fuse.open_table(url), {}, []
    asked = [each for each in (QUESTIONS if everything() else FEW) if "get(d, 0)" not in each]
    for number, question in enumerate(asked):
        for indexes in in_turn([True, False], number):
            try:
                found = sorted(table.scan(question, ["id"], indexes=indexes).to_arrow().column("id").to_pylist())
            except OpaqueError:
                opaque.append(question)
                continue
            if found != answers[question]:
                wrong[question, indexes] = (found, answers[question])
    assert not wrong
    answers_asked = len(asked) * len(in_turn([True, False], 0))
    assert len(opaque) <= 0.35 * answers_asked  # what raises in Spark, and floats as text, are left to it


def test_columns_of_delta_with_a_variant_in_them_are_read(
    spark: SparkSession, url: str, plain: DataFrame, tmp_path: Path
) -> None:
    fields = json.loads(plain.schema.json())["fields"]
    lake = Log(tmp_path / "lake", {field["name"]: field["type"] for field in fields})
    for file in Path(url, "_b").glob("*.parquet"):
        shutil.copy(file, tmp_path / "lake")
        lake.add_file(file.name)
    table = fuse.attach(tmp_path / "lake", tmp_path / "table", "delta")
    assert texts(fuse_spark.read(spark, table.stored.store.url)) == texts(plain)
    assert table.to_arrow().sort_by("id").to_pylist() == fuse.open_table(url).to_arrow().sort_by("id").to_pylist()


@pytest.mark.any_spark
def test_few_blocks_are_read_in_spark(spark: SparkSession, url: str) -> None:
    rows = fuse_spark.read(spark, url).where("variant_get(s.v, '$.b', 'int') = 1")
    assert [row.id for row in rows.collect()] == [DOCUMENTS.index('{"b":1}')]
    assert len(rows.inputFiles()) < 10


def test_rows_are_written_by_spark_as_by_python(
    spark: SparkSession, url: str, plain: DataFrame, tmp_path: Path
) -> None:
    place = str(tmp_path / "copy")
    fuse.create_table(place, COLUMNS)
    fuse_spark.write(plain, place)
    local = spark.createDataFrame(plain.selectExpr("id", "to_json(s.v) t").collect(), "id BIGINT, t STRING")
    fuse_spark.write(local.selectExpr("id + 1000 id", "named_struct('a', 1, 'v', parse_json(t)) s"), place)
    table = fuse.open_table(place)
    assert table.scan("id < 1000").to_arrow().sort_by("id") == fuse.open_table(url).scan().to_arrow().sort_by("id")
    assert table.scan("id >= 1000").count() == plain.count()
    check_invariants(table.stored)
