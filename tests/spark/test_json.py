"""JSON in plain Spark SQL: what Spark finds is what Spark finds without an index, and blocks that hold nothing of it
are not opened.
"""

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from fuse_index.expressions.json import path as json_paths
from tests.effort import effort
from tests.spark.executed import files_read

BLOCKS, ROWS = 6, 50
ODD = [None, "no json", '{"id":1,"id":2}', "{'id':7}", '{"id":null}', '{"id":"7"}', '{"id":7.0}', "[7]", '{"user":"x"}']
"""In the last block only."""


def documents(block: int) -> list[str | None]:
    plain: list[str | None] = [
        json.dumps(
            {
                "id": i,
                "user": {"name": f"u{i}", "tier": f"t{block}"},
                "at": f"2024-03-{block + 1:02}T10:{i % 60:02}:00Z",
                "ok": block < 2,
                "price": i / 4,
                "tags": [f"x{i}", "all"],
                **({"error": "timeout"} if i == 120 else {}),
            }
        )
        for i in range(block * ROWS, (block + 1) * ROWS)
    ]
    return plain + (ODD if block == BLOCKS - 1 else [])


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = str(tmp_path_factory.mktemp("tables") / "documents")
    table = fuse.create_table(url, pa.schema([("c", pa.string())]), properties={"zone_rows": 20})
    paths = ["$.id", "$.user.name", "$.user.tier", "$.at", "$.ok", "$.price", "$.error", "$.tags[*]"]
    table.create_index("by_path", "json_path", ["c"], paths=paths)
    for block in range(BLOCKS):
        table.append(pa.table({"c": documents(block)}))
    return url


@pytest.fixture
def view(spark: SparkSession, url: str) -> Iterator[str]:
    fuse_spark.install(spark)
    fuse_spark.read(spark, url).createOrReplaceTempView("documents")
    yield "documents"
    spark.catalog.dropTempView("documents")


@pytest.fixture(scope="module")
def plain(spark: SparkSession) -> DataFrame:
    fuse_spark.install(spark)  # json_contains is evaluated on these rows, too
    return spark.createDataFrame(pa.table({"c": [text for block in range(BLOCKS) for text in documents(block)]}))


ID, AT = "get_json_object(c, '$.id')", "get_json_object(c, '$.at')"
QUESTIONS = {
    f"{ID} = '77'": 1,
    f"{ID} IN ('77', '120', '9999')": 2,
    f"try_cast({ID} AS BIGINT) = 77": 2,  # one block holds text as well: its numbers may be written in other ways
    f"try_cast({ID} AS INT) BETWEEN 60 AND 110": 3,
    f"try_cast({ID} AS DOUBLE) < 3.5D": 2,
    f"{ID} IS NULL": 1,
    f"{ID} IS NOT NULL": 6,
    "get_json_object(c, '$.error') IS NOT NULL": 1,
    "get_json_object(c, '$.user.name') LIKE 'u12%'": 2,
    "get_json_object(c, '$.user.tier') LIKE 't3%'": 1,
    "NOT (get_json_object(c, '$.user.tier') >= 't1')": 1,
    "get_json_object(c, '$.user') = 'x'": 6,  # not indexed
    f"try_cast({AT} AS DATE) = DATE'2024-03-02'": 1,
    f"try_cast({AT} AS TIMESTAMP) < TIMESTAMP'2024-03-01 10:02:00Z'": 3,
    f"{AT} > '2024-03-06'": 1,
    "try_cast(get_json_object(c, '$.ok') AS BOOLEAN)": 2,
    "get_json_object(c, '$.*') = 'x'": 0,
    "from_json(c, 'id BIGINT, price DOUBLE').id = 77": 2,
    "from_json(c, 'user STRUCT<name: STRING>').user.name = 'u77'": 2,
    "from_json(c, 'price DOUBLE').price > 70D": 1,
    "from_json(c, 'ok BOOLEAN').ok": 3,
    "json_contains(c, '$.tags[*]', 'x77')": 1,
    "json_contains(c, '$.tags[*]', 'x7') OR json_contains(c, concat('$.', 'tags[*]'), 'x207')": 2,
    "json_contains(c, '$.id', 277) AND json_contains(c, '$..name', 'u277')": 1,
    "NOT json_contains(c, '$.tags[*]', 'all')": 6,
    "json_contains(c, '$.tags[?(@ == \"x77\")]', 'x77')": 6,  # not indexed
    "try_variant_get(try_parse_json(c), '$.id', 'int') = 77": 2,
    "try_variant_get(try_parse_json(c), '$.user.name', 'string') = 'u77'": 2,
    "try_variant_get(try_parse_json(c), '$.price', 'double') BETWEEN 1D AND 2D": 2,
}


@pytest.mark.alike
@pytest.mark.parametrize("where", QUESTIONS)
def test_rows_are_those_of_spark_and_blocks_are_skipped(
    spark: SparkSession, view: str, plain: DataFrame, where: str
) -> None:
    found = spark.sql(f"SELECT c FROM {view} WHERE {where}")

    key = str
    assert sorted(found.collect(), key=key) == sorted(plain.filter(where).collect(), key=key)
    assert files_read(found) == QUESTIONS[where]


def test_in_an_ansi_session_a_number_is_looked_for_in_the_filters(spark: SparkSession, tmp_path: Path) -> None:
    fuse_spark.install(spark)
    table = fuse.create_table(str(tmp_path / "t"), pa.schema([("c", pa.string())]))
    table.create_index("by_id", "json_path", ["c"], paths=["$.id"])
    for block in range(4):
        table.append(pa.table({"c": [f'{{"id":{i}}}' for i in range(block, 400, 4)]}))
    found = fuse_spark.read(spark, str(tmp_path / "t")).filter("get_json_object(c, '$.id') = 202")

    assert found.count() == 1
    assert found.collect() == [('{"id":202}',)]
    assert files_read(found) == 1


def test_columns_may_be_asked_for_a_member_and_a_bad_path_is_named(
    spark: SparkSession, view: str, plain: DataFrame
) -> None:
    from fuse_index.spark.functions import json_contains

    found = spark.table(view).filter(json_contains("c", "$.tags[*]", "x207"))

    assert found.collect() == plain.filter("c LIKE '%x207%'").collect()
    assert files_read(found) == 1
    with pytest.raises(AnalysisException, match="is no JSON path"):
        spark.sql(f"SELECT * FROM {view} WHERE json_contains(c, '$.tags[', 'x')")


def test_a_bloom_index_on_a_path_is_used(spark: SparkSession, tmp_path: Path) -> None:
    table = fuse.create_table(str(tmp_path / "t"), pa.schema([("c", pa.string())]))
    table.create_index("by_name", "bloom", ["get_json_object(c, '$.user.name')"])
    for block in range(3):
        table.append(pa.table({"c": documents(block)}))
    found = fuse_spark.read(spark, str(tmp_path / "t")).filter("get_json_object(c, '$.user.name') = 'u77'")

    assert len(found.collect()) == 1
    assert files_read(found) == 1


def test_paths_find_in_drawn_documents_what_spark_finds(spark: SparkSession) -> None:
    pick = random.Random(7)
    texts = [drawn(pick) for _ in range(2000)]
    paths = [
        "$",
        "$.a",
        "$.a.b",
        "$['b']",
        "$.a[0]",
        "$.a[*]",
        "$.a[*].b",
        "$[0]",
        "$[*]",
        "$[*].a",
        "$.a[*][*]",
        "$.a[1][*].b",
    ]
    columns = [f"""get_json_object(c, "{path}") AS p{number}""" for number, path in enumerate(paths)]
    rows = spark.createDataFrame(pa.table({"c": texts})).selectExpr("c", *columns).collect()

    for row in rows:
        for number, path in enumerate(paths):
            steps = json_paths.parse(path)
            assert steps is not None
            text, doubt = json_paths.find(row[0], steps)
            if doubt == json_paths.SURE:
                assert (row[0], path, text) == (row[0], path, row[number + 1])
            elif doubt == json_paths.SPELLING:
                assert row[number + 1] is not None


ASKED = [
    *(
        f"from_json(c, 'a {kind}').a {rest}"
        for kind, rest in [
            ("BIGINT", "= 1"),
            ("INT", "> 1"),
            ("TINYINT", "IN (0, 1)"),
            ("DOUBLE", "= 1.5D"),
            ("FLOAT", "= 1"),
            ("STRING", "= 'x'"),
            ("STRING", "= '1'"),
            ("BOOLEAN", ""),
            ("DOUBLE", ">= 1000D"),
            ("STRUCT<b: BIGINT>", ".b = 1"),
            ("STRUCT<b: STRING>", ".b >= 'q'"),
            ("DOUBLE", "= double('nan')"),
        ]
    ),
    *(
        f"try_variant_get(try_parse_json(c), '{path}', '{kind}') {rest}"
        for path, kind, rest in [
            ("$.a", "int", "= 1"),
            ("$.a", "bigint", "> 1"),
            ("$.a", "double", "= 1.5D"),
            ("$.a", "string", "= '1'"),
            ("$.a", "string", "= 'x'"),
            ("$.a", "boolean", ""),
            ("$.a.b", "int", "= 1"),
            ("$.a[0]", "int", "<= 1"),
            ("$.a", "decimal(10,2)", "= 1.5"),
            ("$.a", "date", "= DATE'2024-03-10'"),
            ("$.a", "timestamp", "> TIMESTAMP'1970-01-01 00:00:00Z'"),
        ]
    ),
    *(
        f"try_cast(get_json_object(c, '$.a') AS {kind}) {rest}"
        for kind, rest in [
            ("INT", "= 1"),
            ("DOUBLE", "= 1.5D"),
            ("BOOLEAN", ""),
            ("DATE", "= DATE'2024-03-10'"),
            ("DECIMAL(10,2)", "= 1.5"),
        ]
    ),
    "get_json_object(c, '$.a') = '1'",
    "get_json_object(c, '$.a.b') IS NULL",
    "get_json_object(c, '$.a') >= 'q'",
    "json_contains(c, '$.a', '1')",
]


def test_whatever_documents_hold_no_function_of_spark_loses_a_row(spark: SparkSession, tmp_path: Path) -> None:
    fuse_spark.install(spark)
    pick, count = random.Random(3), effort(225)
    table = fuse.create_table(
        str(tmp_path / "t"), pa.schema([("row", pa.int32()), ("c", pa.string())]), properties={"block_rows": 3}
    )
    table.create_index("by_path", "json_path", ["c"], paths=["$.a", "$.a.b", "$.a[0]"])
    table.append(pa.table({"row": pa.array(range(count), pa.int32()), "c": [member(pick) for _ in range(count)]}))
    with_index, without = (fuse_spark.read(spark, str(tmp_path / "t"), indexes=indexes) for indexes in (True, False))
    expected = without.selectExpr(
        "row", *(f"coalesce({where}, false) AS q{number}" for number, where in enumerate(ASKED))
    ).collect()
    opened = 0
    for number, where in enumerate(ASKED):
        found = with_index.filter(where).select("row")

        assert sorted(row[0] for row in found.collect()) == sorted(row[0] for row in expected if row[number + 1]), where
        opened += files_read(found)
    assert opened < len(ASKED) * (count // 3) * 0.8


def member(pick: random.Random) -> str:
    """A document with something at ``a``, mostly plain."""
    value = pick.choice(
        [
            "1",
            "1",
            "1.5",
            "1.0",
            "2",
            "1e3",
            "300",
            "true",
            "false",
            "null",
            '"x"',
            '"1"',
            '"1.5"',
            '"NaN"',
            '"yes"',
            '"2024-03-10"',
            "99999999999",
            '{"b":1}',
            '{"b":"x"}',
            '{"b":"1","b":1}',
            "[1]",
            '[null,"x"]',
            "-0",
            "1.50",
            '"1,5"',
            "86400",
        ]
    )
    return (
        f'{{"a":{value}}}'
        if pick.random() < 0.9
        else pick.choice(
            [f'{{"a":{value},"a":1}}', f"{{'a':{value}}}", f'[{{"a":{value}}}]', f'{{"a":{value}}} x', f'{{"a":{value}']
        )
    )


def drawn(pick: random.Random, depth: int = 0) -> str:
    """Some JSON, now and then with a slip of the pen."""
    kind = pick.random()
    if kind < 0.35 and depth < 4:
        members = (
            f'"{pick.choice("aabbc")}"{pick.choice(["", " "])}:{drawn(pick, depth + 1)}'
            for _ in range(pick.randrange(4))
        )
        text = "{" + ",".join(members) + "}"
    elif kind < 0.65 and depth < 4:
        text = "[" + ", ".join(drawn(pick, depth + 1) for _ in range(pick.randrange(4))) + "]"
    else:
        numbers = ["1", "-0", "1.50", "1e3", "12345678901234567890", "1e300"]
        text = pick.choice([*numbers, '"x"', '"\\u00e9\\n"', "'q'", "null", "true", '""', '"1"', '"\t"'])
    slip = pick.random()
    if slip > 0.02:
        return text
    return pick.choice(
        [text + pick.choice("}],x "), text[:-1], text.replace('"', "'"), text.replace(":", "="), " " + text]
    )
