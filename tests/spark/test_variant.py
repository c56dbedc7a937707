"""VARIANT columns in Spark: values x paths x types find the rows that they find without us, in Spark and locally."""

import itertools
import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from fuse_index.errors import OpaqueError
from fuse_storage import VARIANT
from tests.effort import in_turn, some_of

pytestmark = pytest.mark.every_spark

SCALARS = ["1", "0", "-1", "127", "128", "2147483648", "9223372036854775807", "12345678901234567890", "1.0", "1.5"]
SCALARS += ["0.1", "-0.0", "1e3", "1e20", "1e400", "1E-7", "123456789.123456789", "99999999999999999999999999999999.5"]
SCALARS += [
    "true",
    "false",
    "null",
    '"1"',
    '"1.5"',
    '"x"',
    '""',
    '" 1 "',
    '"true"',
    '"1e3"',
    '"2024-01-02"',
    '"Infinity"',
]
SCALARS += ['"2024-01-02 03:04:05"', '"NaN"', "[1]", "[]", "{}", '{"b":1}', '"é"', '"2024"']
DOCUMENTS = [f'{{"a":{scalar},"z":[{scalar},2]}}' for scalar in SCALARS] + SCALARS + ['{"z":1}', '{"a b":{"c":7}}']
CASTS = ["1", "1.5D", "CAST(1.50 AS DECIMAL(10,2))", "CAST(1.1 AS FLOAT)", "true", "'1'", "DATE'2024-01-02'"]
CASTS += ["TIMESTAMP'2024-01-02 03:04:05'", "TIMESTAMP_NTZ'2024-01-02 03:04:05'", "X'31'", "double('NaN')"]
"""Values that JSON lacks, or has otherwise, as Spark's CAST makes VARIANT of them."""
PATHS = ["$", "$.a", "$.z[0]", "$['a b'].c", "$.none"]
TYPES = {
    "int": ["= 1", "> 0", "IN (0, 127)", "IS NULL"],
    "bigint": ["= 1", "< 0", "= 2147483648"],
    "tinyint": ["= 127", "<> 1"],
    "double": ["= 1.5D", "> 100", "<=> 1000.0D", "= double('Infinity')"],
    "decimal(10,1)": ["= 1.5BD", "< 1BD"],
    "string": ["= '1'", "= 'x'", "LIKE '1%'", "= '2024-01-02'", "IN ('true', '1.5')", "IS NOT NULL"],
    "boolean": ["= true", "= false", "IS NULL"],
    "date": ["= DATE'2024-01-02'", "> DATE'2000-01-01'"],
    "timestamp": ["= TIMESTAMP'2024-01-02 03:04:05'", "< TIMESTAMP'1970-01-02 00:00:00'"],
}
QUESTIONS = [
    f"try_variant_get(v, \"{path}\", '{kind}') {question}"
    for path, (kind, questions) in itertools.product(PATHS, TYPES.items())
    for question in questions
]
SOME = some_of(QUESTIONS)
"""By default each question once, of one path after the other."""


def world(spark: SparkSession) -> DataFrame:
    texts = spark.createDataFrame([(number, text) for number, text in enumerate(DOCUMENTS)], "id BIGINT, t STRING")
    rows = texts.selectExpr("id", "parse_json(t) v")
    for number, cast in enumerate(CASTS, len(DOCUMENTS)):
        rows = rows.union(spark.sql(f"SELECT {number}L id, CAST({cast} AS VARIANT) v"))
        structure = f"to_variant_object(named_struct('a', {cast}, 'z', array({cast})))"
        rows = rows.union(spark.sql(f"SELECT {number + 100}L id, {structure} v"))
    return rows.union(spark.sql("SELECT 1000L id, CAST(NULL AS VARIANT) v"))


PATHS_OF_INDEXES = ["auto", ";".join(PATHS)]


@pytest.fixture(scope="module", params=["auto", pytest.param(PATHS_OF_INDEXES[1], marks=pytest.mark.any_spark)])
def url(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    fuse_spark.install(spark)
    url = str(tmp_path_factory.mktemp("tables") / "variants")
    table = fuse.create_table(url, "id BIGINT, v VARIANT", properties={"block_rows": 1})
    table.create_index("by_path", "json_path", ["v"], paths=request.param)
    fuse_spark.write(world(spark).coalesce(1), url)
    return url


@pytest.fixture
def some(request: pytest.FixtureRequest) -> list[str]:
    """Questions to a table: each to that with one index or with the other."""
    return in_turn(SOME, PATHS_OF_INDEXES.index(request.node.callspec.params["url"]))


@pytest.fixture(scope="module")
def plain(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    path = str(tmp_path_factory.mktemp("plain") / "variants")
    world(spark).coalesce(1).write.parquet(path)
    return spark.read.parquet(path).cache()


def answers(rows: DataFrame, questions: list[str]) -> list[list[int]]:
    """The ids on which each question is true, of one job."""
    told = rows.selectExpr("id", *(f"coalesce({question}, false) q{n}" for n, question in enumerate(questions)))
    found = told.collect()
    return [sorted(row.id for row in found if row[f"q{n}"]) for n in range(len(questions))]


@pytest.fixture(scope="module")
def right(plain: DataFrame) -> dict[str, list[int]]:
    """The ids on which each question is true."""
    return dict(zip(QUESTIONS, answers(plain, QUESTIONS), strict=True))


def test_rows_are_those_that_spark_finds(
    spark: SparkSession, url: str, plain: DataFrame, right: dict[str, list[int]], some: list[str]
) -> None:
    ours = fuse_spark.read(spark, url)
    assert sorted(ours.selectExpr("id", "to_json(v)").collect()) == sorted(
        plain.selectExpr("id", "to_json(v)").collect()
    )
    wrong = {}
    for question in some:
        found = sorted(row.id for row in ours.where(question).select("id").collect())
        if found != right[question]:
            wrong[question] = (found, right[question])
    assert not wrong


def check_locally_found_rows(url: str, right: dict[str, list[int]], indexes: bool) -> None:
    table, wrong, opaque = fuse.open_table(url), {}, 0
    for question, ids in ((each, right[each]) for each in SOME):
        try:
            found = sorted(table.scan(question, ["id"], indexes=indexes).to_arrow().column("id").to_pylist())
        except OpaqueError:
            opaque += 1
            continue
        if found != ids:
            wrong[question] = (found, ids)
    assert not wrong
    assert opaque <= 0.35 * len(SOME)  # floats as text, and as instants, are left to Java


@pytest.mark.any_spark
def test_locally_found_rows_are_those_that_spark_finds(url: str, right: dict[str, list[int]]) -> None:
    check_locally_found_rows(url, right, indexes=True)


@pytest.mark.any_spark
@pytest.mark.parametrize("url", ["auto"], indirect=True)  # the tables differ in their index alone
def test_rows_found_locally_without_an_index_are_those_that_spark_finds(url: str, right: dict[str, list[int]]) -> None:
    check_locally_found_rows(url, right, indexes=False)


@pytest.mark.any_spark
def test_what_votes_leave_has_every_row_that_spark_finds(url: str, right: dict[str, list[int]]) -> None:
    table = fuse.open_table(url)
    rows = table.scan(columns=["id"], indexes=False).to_arrow().column("id").to_pylist()
    ids_by_block, skipped = dict(zip(table.stored.blocks().ids, rows, strict=True)), 0
    for question, ids in right.items():
        left = {ids_by_block[block] for block in table.scan(question, ["id"]).plan.blocks.ids}
        assert left >= set(ids), question
        skipped += len(rows) - len(left)
    assert skipped > len(QUESTIONS)


def test_json_text_is_what_spark_writes(spark: SparkSession, url: str, plain: DataFrame) -> None:
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        told = {row.id: row.t for row in plain.selectExpr("id", "to_json(v) t").collect()}
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    ours = fuse.open_table(url).scan().to_arrow()
    assert ours.schema.field("v").type == pa.string()
    assert dict(zip(ours.column("id").to_pylist(), ours.column("v").to_pylist(), strict=True)) == told


def test_spark_reads_what_python_wrote(spark: SparkSession, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    texts = [text for text in DOCUMENTS if text != "1e400"]
    table = fuse.create_table(url, "id BIGINT, v VARIANT")
    table.append(pa.table({"id": range(len(texts)), "v": texts}))
    fuse_spark.install(spark)
    parsed = spark.createDataFrame(list(enumerate(texts)), "id BIGINT, t STRING").selectExpr(
        "id", "to_json(parse_json(t)) j", "schema_of_variant(parse_json(t)) s"
    )
    ours = fuse_spark.read(spark, url).selectExpr("id", "to_json(v) j", "schema_of_variant(v) s")
    assert sorted(ours.collect()) == sorted(parsed.collect())
    assert table.schema.field("v").type == VARIANT


@pytest.mark.any_spark
def test_names_beyond_the_first_plane_are_found_among_many(spark: SparkSession, tmp_path: Path) -> None:
    """Spark looks a name up by halves among 32 or more, in the order of UTF-16."""
    names = [*(f"n{number}" for number in range(40)), "\uffee", "😀"]
    table = fuse.create_table(str(tmp_path / "t"), "id BIGINT, v VARIANT")
    table.append([{"id": 1, "v": json.dumps({name: number for number, name in enumerate(names)}, ensure_ascii=False)}])
    fuse_spark.install(spark)
    wanted = [f"variant_get(v, \"$['{name}']\", 'int')" for name in names]
    assert list(fuse_spark.read(spark, table.stored.store.url).selectExpr(*wanted).first()) == list(range(len(names)))
