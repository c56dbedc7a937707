"""``match`` in plain Spark SQL: the rows that Python finds, from the blocks that may have them."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from fuse_index.reasons import Reason
from fuse_index.spark.functions import match
from tests.spark.executed import files_read

BLOCKS, ROWS = 4, 50


def rows(block: int) -> pa.Table:
    bodies: list[str | None] = [
        f"line {i} of block{block}, {'Late-refund' if i == 7 else 'ünremarkable İ'}" for i in range(ROWS)
    ]
    bodies[3] = None
    bodies[4] = ""
    return pa.table({"id": [block * ROWS + i for i in range(ROWS)], "body": bodies})


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = str(tmp_path_factory.mktemp("texts") / "texts")
    table = fuse.create_table(url, rows(0).schema)
    table.create_index("words", "full_text", ["body"])
    table.create_index("raw", "full_text", ["body"], tokenizer="whitespace")
    for block in range(BLOCKS):
        table.append(rows(block))
    return url


@pytest.fixture
def view(spark: SparkSession, url: str) -> Iterator[str]:
    fuse_spark.install(spark)
    fuse_spark.read(spark, url).createOrReplaceTempView("texts")
    yield "texts"
    spark.catalog.dropTempView("texts")


@pytest.mark.parametrize(
    ("where", "files"),
    [
        ("match(body, 'block2')", 1),
        ("match(body, 'BLOCK2 block1', 'operator=or')", 2),
        ("match(body, '\"late refund\" AND block3')", 1),
        ("match(body, 'bloc* -block0')", 3),
        ("match(body, 'nowhere')", 0),
        ("match(body, 'block1') OR match(body, 'blokc2~1 AND late')", 2),
        ("NOT match(body, 'line')", 4),
        ("match(body, 'ünremarkable') AND id < 10", 1),
        ("match(body, 'block2, -line', 'tokenizer=whitespace')", 0),
        ("match(body, 'block2,', 'tokenizer=whitespace')", 1),
        ("match(body, 'Late*', 'tokenizer=whitespace') AND id > 150", 1),
    ],
)
def test_rows_and_blocks(spark: SparkSession, url: str, view: str, where: str, files: int) -> None:
    found = spark.sql(f"SELECT id FROM {view} WHERE {where}")
    ids = sorted(row.id for row in found.collect())

    assert ids == fuse.open_table(url).scan(where, ["id"], indexes=False).to_arrow().column("id").to_pylist()
    assert files_read(found) == files


def test_what_spark_is_given_beside_a_call_is_marked_and_no_failure(spark: SparkSession, view: str) -> None:
    def told(where: str) -> dict[str, tuple[bool, str]]:
        votes = fuse_spark.explain(spark.sql(f"SELECT * FROM {view} WHERE {where}")).votes
        return {vote.leaf: (vote.added, vote.reason.value) for vote in votes if vote.index == "words"}

    asked, contains = "match(body, 'block2')", "contains(lower(body), 'block2')"
    letters = "EqualTo(OctetLength(body), Length(body))"
    looked = told(asked)

    assert looked == {asked: (False, "USED"), contains: (True, "NOT_NEEDED"), letters: (True, "NOT_NEEDED")}
    assert told(f"{asked} AND {contains}") == looked | {contains: (False, "LEAF_UNSUPPORTED")}
    assert told(contains) == {contains: (False, "LEAF_UNSUPPORTED")}
    assert told(f"NOT {contains}") == {contains: (False, "LEAF_UNSUPPORTED")}


def test_a_call_that_spark_keeps_to_itself_is_named_as_it_was_written(spark: SparkSession, view: str) -> None:
    explained = fuse_spark.explain(spark.sql(f"SELECT * FROM {view} WHERE NOT match(body, 'late AND +it')"))

    kept = [vote.leaf for vote in explained.votes if vote.reason is Reason.NOT_PUSHED]
    assert kept == ["a condition with match(…, 'late AND +it')"]


@pytest.mark.parametrize("where", ["match(body, 'a*', 'tokenizer=raw')", "match(body, 'b* -a*', 'tokenizer=raw')"])
def test_a_term_longer_than_tantivy_keeps_has_no_beginning(spark: SparkSession, tmp_path: Path, where: str) -> None:
    url = str(tmp_path / "long")
    table = fuse.create_table(url, "body STRING", properties={"block_rows": 1})
    table.append(pa.table({"body": ["a" * 65_530, "a" * 65_531, "b" * 65_530, "b" * 65_531, "b"]}))
    fuse_spark.install(spark)
    for index in (None, "raw"):
        if index:
            table.create_index(index, "full_text", ["body"], tokenizer="raw")
        found = fuse_spark.read(spark, url).where(where).collect()
        assert sorted(row.body for row in found) == sorted(
            table.scan(where, indexes=False).to_arrow().column("body").to_pylist()
        )
        assert found


def test_on_rows_of_others_and_of_columns(spark: SparkSession, view: str) -> None:
    df = spark.createDataFrame([("a late refund",), (None,), ("fine",)], "body string")

    assert df.where(match("body", '"late refund"')).count() == 1
    assert df.where(~match(df.body, "late")).count() == 1
    assert df.select(match("body", "late").alias("m")).where("m IS NULL").count() == 1


def test_a_query_that_cannot_be_read_is_an_error_of_analysis_that_shows_the_place(
    spark: SparkSession, view: str
) -> None:
    with pytest.raises(AnalysisException, match=r"'\(late' cannot be read at 6: a '\)' is missing at the end"):
        spark.sql(f"SELECT * FROM {view} WHERE match(body, '(late')")


def test_ranked_search_gives_a_data_frame(spark: SparkSession, url: str) -> None:
    found = fuse_spark.search(spark, url, "body", "late block2", limit=3, where="id > 20", select=["id"])
    ours = fuse.open_table(url).search("body", "late block2", 3, "id > 20", ["id"])

    assert found.columns == ["id", "_score"]
    assert [tuple(row) for row in found.collect()] == [tuple(row.values()) for row in ours.to_pylist()]
