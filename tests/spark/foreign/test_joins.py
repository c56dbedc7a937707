"""Joins of a folder of Parquet files with a small side, whose keys may tell which files are read."""

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.effort import in_turn, some_of
from tests.spark.foreign.sources import FILES, a_of, use_index, write_folder
from tests.spark.foreign.ways import Ways, conf

FEW = f"""VALUES ('{a_of(5)}', 5L, 5.0BD, 31), ('{a_of(777)}', 777L, 1501.0BD, 62), ('none', -1L, 0.5BD, -9),
    (NULL, NULL, NULL, NULL) AS few(k, i, d, n)"""


@pytest.fixture(scope="module")
def source(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = tmp_path_factory.mktemp("joins")
    use_index(spark, write_folder(home / "lake"), home / "index")
    spark.sql(f"CREATE OR REPLACE TEMP VIEW few AS SELECT * FROM {FEW}")
    spark.read.parquet(f"{home}/lake").createOrReplaceTempView("lake")  # whose files are listed once
    yield "lake"
    for name in ("few", "lake"):
        spark.catalog.dropTempView(name)


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    """Answers without votes, which are the same with adaptive execution and without."""
    return {}


QUERIES = [
    ("SELECT t.id, f.k FROM {t} t JOIN few f ON t.a = f.k", FILES - 2),
    ("SELECT t.id, f.k FROM {t} t JOIN few f ON t.a = f.k AND t.n >= 0 WHERE f.i > 5", FILES - 1),
    ("SELECT t.id FROM {t} t LEFT SEMI JOIN few f ON t.a = f.k", FILES - 2),
    ("SELECT t.id, f.i FROM few f LEFT JOIN {t} t ON t.a = f.k", FILES - 2),
    ("SELECT count(*), sum(t.id) FROM {t} t LEFT ANTI JOIN few f ON t.a = f.k", 0),
    ("SELECT count(*), count(f.k) FROM {t} t LEFT JOIN few f ON t.a = f.k", 0),
    ("SELECT count(*), count(f.k), count(t.a) FROM {t} t FULL JOIN few f ON t.a = f.k", 0),
    ("SELECT count(*), count(f.i) FROM {t} t JOIN few f ON t.b <=> f.k", 0),
    ("SELECT t.id FROM {t} t WHERE t.a NOT IN (SELECT k FROM few WHERE k IS NOT NULL) AND t.id < 9", FILES - 1),
    ("SELECT t.id FROM {t} t WHERE t.a NOT IN (SELECT k FROM few) AND t.id < 9", FILES - 1),
    ("SELECT t.id FROM {t} t WHERE t.a IN (SELECT k FROM few WHERE i = 5)", FILES - 1),
    ("SELECT t.id, f.d FROM {t} t JOIN few f ON t.id = f.d", None),
    ("SELECT t.id, f.d FROM {t} t JOIN few f ON CAST(t.n AS DOUBLE) = CAST(f.n AS DOUBLE)", None),
    ("SELECT t.id, f.n FROM {t} t JOIN few f ON t.n = CAST(f.n AS BIGINT) AND t.a >= f.k", None),
    ("SELECT t.id FROM {t} t JOIN few f ON upper(t.a) = upper(f.k)", None),
    ("SELECT t.id FROM {t} t JOIN few f ON t.a COLLATE UTF8_LCASE = upper(f.k)", None),
    ("SELECT t.id FROM {t} t JOIN (SELECT k FROM few WHERE i > 10000) f ON t.a = f.k", None),
    ("SELECT t.id, u.id FROM {t} t JOIN {t} u ON t.a = u.a JOIN few f ON u.a = f.k", None),
    ("SELECT t.id FROM {t} t JOIN few f ON t.a = f.k UNION ALL SELECT id FROM {t} WHERE n = 7", None),
]


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_joins(ways: Ways, source: str, plain: dict[str, Any], adaptive: str) -> None:
    with conf(ways.spark, spark_sql_adaptive_enabled=adaptive):
        for query, most in in_turn(QUERIES, adaptive == "true"):
            told = ways.same(query.format(t=source), plain)
            if most is not None:
                assert all(use.left_out <= most for use in told), query


KEEPING = [
    ("SELECT f.k, t.id, t.n FROM few f LEFT JOIN {t} t ON t.a = f.k", FILES - 2),
    (
        "SELECT f.k, u.id FROM few f LEFT JOIN (SELECT id, a c FROM {t} WHERE n >= 0) u ON u.c = f.k AND u.id <> 5",
        FILES - 2,
    ),
    ("SELECT f.k, t.id FROM {t} t RIGHT JOIN few f ON t.a = f.k AND t.id = f.i", FILES - 2),
    ("SELECT k FROM few f WHERE EXISTS (SELECT 1 FROM {t} t WHERE t.a = f.k)", FILES - 2),
    ("SELECT k FROM few f WHERE NOT EXISTS (SELECT 1 FROM {t} t WHERE t.a = f.k AND t.n > f.n)", FILES - 2),
    ("SELECT k FROM few f WHERE k NOT IN (SELECT a FROM {t} t)", None),
    ("SELECT f.k, t.id, u.id FROM few f LEFT JOIN {t} t ON t.a = f.k LEFT JOIN {t} u ON u.a = f.k", None),
    ("SELECT f.k, t.id FROM few f LEFT JOIN {t} t ON t.a <=> f.k", None),
    ("SELECT f.k, t.id FROM few f FULL JOIN {t} t ON t.a = f.k", None),
    ("SELECT k, r > 2, t.id FROM (SELECT CAST(id AS STRING) k, rand() r FROM range(3)) LEFT JOIN {t} t ON a = k", 0),
    ("SELECT f.k, t.id FROM (SELECT CAST(id AS STRING) k FROM range(9) LIMIT 9) f LEFT JOIN {t} t ON t.a = f.k", 0),
    ("SELECT f.a, t.id FROM (SELECT a FROM {t} WHERE id < 5) f LEFT JOIN {t} t ON t.a = f.a", None),
]


@pytest.mark.every_spark
@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_joins_that_keep_all_rows_of_their_small_side(
    ways: Ways, source: str, plain: dict[str, Any], adaptive: str
) -> None:
    settings = {
        "spark.sql.adaptive.enabled": adaptive,
        "spark.sql.autoBroadcastJoinThreshold": "3000",  # below the size of the folder
        "spark.fuse.index.subquery.minScanBytes": "1",
    }
    with conf(ways.spark, **settings):
        for query, least in KEEPING if adaptive == "true" else some_of(KEEPING):
            told = ways.same(query.format(t=source), plain)
            if least is not None and adaptive == "true":
                assert told or not least, query
                assert all(use.left_out >= least for use in told) if least else not any(use.left_out for use in told), (
                    query
                )
