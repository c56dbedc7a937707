"""Aggregates of what is computed, answered from an index however the query writes them; and never wrongly."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from tests.spark.native.test_aggregates import answered, told

SCHEMA = (
    "flag STRING, price DECIMAL(15,2), disc DECIMAL(15,2), tax DECIMAL(15,2), n INT, m BIGINT, d DOUBLE, e DOUBLE, "
    "day DATE, id INT"
)
EXACT = ["price * (1 - disc)", "price * (1 - disc) * (1 + tax)"]
"""Of decimals, as TPC-H's first query has them; the second may overflow by its type, but not by its values."""
KEPT = {
    "n * m": ["m * n"],
    "n + 1": ["1 + n", "n + (3 - 2)"],
    "-n": ["- n"],
    "d * e - 1": ["e * d - 1"],
    "m * disc": ["disc * m"],
    "n / 2": ["n / 2.0D"],
    "price * 0.5": ["0.5 * price"],
    "CASE WHEN flag = 'A' OR n > 3 THEN 1 ELSE 0 END": ["if(3 < n OR 'A' = flag, 1, 0)"],
    "CASE WHEN flag <> 'A' AND n <= 3 THEN price * (1 - disc) ELSE 0 END": [
        "CASE WHEN NOT (flag = 'A' OR n > 3) THEN (1 - disc) * price ELSE 0.00 END"
    ],
    "CASE WHEN flag LIKE 'A%' THEN d END": ["CASE WHEN flag LIKE 'A%' THEN d ELSE NULL END"],
    "CASE flag WHEN 'A' THEN n WHEN 'R' THEN m END": ["CASE WHEN flag = 'A' THEN n WHEN 'R' = flag THEN m END"],
    "CASE WHEN n BETWEEN 1 AND 4 THEN 1 END": ["CASE WHEN n >= 1 AND n <= 4 THEN 1 END"],
    "CASE WHEN day >= DATE'2024-01-03' THEN 1.5 ELSE 2 END": ["CASE WHEN '2024-01-03' <= day THEN 1.5 ELSE 2 END"],
    "coalesce(disc, 0) * price": ["price * nvl(disc, 0)"],
    "nullif(n, 3)": ["if(n = 3, NULL, n)"],
    "CASE WHEN n <> 0 THEN 1 / n END": ["if(NOT n = 0, 1 / n, NULL)"],
}
VALUES: dict[str, list[Any]] = {
    "flag": ["A", "AB", "R", "a"],
    "price": [Decimal("901.00"), Decimal("104949.50"), Decimal("-0.01")],
    "disc": [Decimal("0.00"), Decimal("0.10"), Decimal("0.07")],
    "tax": [Decimal("0.00"), Decimal("0.08")],
    "n": [0, 1, 3, -4, 2**20],
    "m": [7, -1, 2**30],
    "d": [0.5, -0.0, math.nan, 2.25],
    "e": [1.5, -3.0],
    "day": [19723 + i for i in range(5)],
}


def made(schema: pa.Schema, seed: int) -> pa.Table:
    pick = random.Random(seed)
    columns = []
    for field in schema:
        if field.name != "id":
            values = [None if pick.random() < 0.1 else pick.choice(VALUES[field.name]) for _ in range(60)]
            columns.append(pa.array(values, pa.int32() if field.name == "day" else field.type).cast(field.type))
    ids = pa.array(range(60 * seed, 60 * seed + 60), pa.int32())
    return pa.table([*columns, ids], schema=schema)


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Views ``whole``, and ``part``, of which a block is not indexed and rows of others are gone or changed."""
    fuse_spark.install(spark)
    for name in ("whole", "part"):
        url = str(tmp_path_factory.mktemp("expressions") / name)
        table = fuse.create_table(url, SCHEMA, properties={"block_rows": 30})
        if name == "part":
            table.append(made(table.schema, 9))
        sums = [f"{function}({text})" for text in EXACT for function in ("sum", "avg", "min", "count")]
        table.create_index("exact", "aggregate", ["flag"], build=False, aggregates=sums)
        others = [f"{function}({text})" for text in KEPT for function in ("sum", "max")]
        table.create_index("others", "aggregate", ["flag"], build=False, aggregates=others)
        for seed in range(4):
            table.append(made(table.schema, seed))
        if name == "part":
            table.delete("id = 3")
            table.update("id = 70", {"price": "price + 1"})
        fuse_spark.read(spark, url).createOrReplaceTempView(name)
        fuse_spark.read(spark, url, indexes=False).createOrReplaceTempView(f"{name}_plain")
    yield spark
    for name in ("whole", "part"):
        spark.catalog.dropTempView(name)
        spark.catalog.dropTempView(f"{name}_plain")


def compared(spark: SparkSession, query: str, name: str = "whole") -> DataFrame:
    df = spark.sql(query.format(t=name))
    assert told(df.collect()) == told(spark.sql(query.format(t=f"{name}_plain")).collect()), query
    return df


@pytest.mark.alike
@pytest.mark.parametrize("name", ["whole", "part"])
@pytest.mark.parametrize("forms", [[*EXACT], [form for text, others in KEPT.items() for form in (text, *others)]])
def test_what_is_kept_is_answered_however_it_is_written(tables: SparkSession, forms: list[str], name: str) -> None:
    columns = ", ".join(f"sum({form}) AS s{number}" for number, form in enumerate(forms))

    grouped = compared(tables, f"SELECT flag, {columns} FROM {{t}} GROUP BY flag", name)
    assert answered(grouped) == ("whole" if name == "whole" else "partly"), str(fuse_spark.explain(grouped))
    assert answered(compared(tables, f"SELECT {columns} FROM {{t}} WHERE flag > 'A'", name))


@pytest.mark.every_spark
@pytest.mark.alike
@pytest.mark.parametrize(
    "query",
    [
        "SELECT flag, avg(price * (1 - disc)), min((1 - disc) * price), count(price * (1 - disc)) FROM {t} GROUP BY 1",
        "SELECT sum(net) FROM (SELECT price * (1 - disc) AS net, flag AS f FROM {t}) WHERE f = 'A'",
        "SELECT sum(price * (1 - disc)) / count(price * (1 - disc)) AS mean FROM {t} GROUP BY flag HAVING mean > 1",
        "SELECT sum(price * (1 - disc)) FROM {t} WHERE id >= 30",
    ],
)
@pytest.mark.parametrize("name", ["whole", "part"])
def test_in_any_query_of_the_shape(tables: SparkSession, query: str, name: str) -> None:
    assert answered(compared(tables, query, name))


LOOK_ALIKE = [
    "price * (1.00 - disc)",
    "price - price * disc",
    "try_add(n, 1)",
    "n + 2",
    "1 - n",
    "CASE WHEN flag LIKE 'A_' THEN d END",
    "CASE WHEN flag = 'A' THEN n WHEN 'R' = flag THEN n END",
    "CASE WHEN day < DATE'2024-01-03' THEN 2 ELSE 1.5 END",  # on NULL it is another
    "coalesce(disc, 1) * price",
    "round(price * (1 - disc), 1)",
    "CAST(price * (1 - disc) AS DOUBLE)",
]


def test_what_only_looks_alike_is_left_to_spark(tables: SparkSession) -> None:
    for text in LOOK_ALIKE:
        assert not answered(tables.sql(f"SELECT flag, sum({text}) FROM whole GROUP BY flag")), text
    compared(tables, f"SELECT flag, {', '.join(f'sum({text})' for text in LOOK_ALIKE)} FROM {{t}} GROUP BY flag")


@pytest.mark.every_spark
def test_on_overflow_sessions_differ_and_exact_decimals_do_not(tables: SparkSession) -> None:
    tables.conf.set("spark.sql.ansi.enabled", "false")
    try:
        charge = compared(tables, "SELECT flag, sum(price * (1 - disc) * (1 + tax)) FROM {t} GROUP BY flag")
        others = compared(tables, "SELECT flag, sum(n * m) FROM {t} GROUP BY flag")

        assert not answered(charge), "by its type it may overflow"
        assert not answered(others)
        assert "SESSION_SEMANTICS" in str(fuse_spark.explain(others))
    finally:
        tables.conf.set("spark.sql.ansi.enabled", "true")


def test_sums_that_cannot_overflow_answer_every_session(spark: SparkSession, tmp_path: Any) -> None:
    url = str(tmp_path / "t")
    table = fuse.create_table(url, SCHEMA)
    table.create_index("net", "aggregate", ["flag"], aggregates=["sum(price * (1 - disc))", "sum(d * e)"])
    table.append(made(table.schema, 0))
    fuse_spark.install(spark)
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        for ansi, session_zone in (("true", "UTC"), ("false", "Europe/Zurich")):
            spark.conf.set("spark.sql.ansi.enabled", ansi)
            spark.conf.set("spark.sql.session.timeZone", session_zone)
            fuse_spark.read(spark, url).createOrReplaceTempView("net")
            found = spark.sql("SELECT flag, sum(price * (1 - disc)), sum(d * e) FROM net GROUP BY flag")
            assert answered(found) == "whole"
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "true")
        spark.conf.set("spark.sql.session.timeZone", zone)


def test_a_block_on_which_spark_raises_keeps_no_state(spark: SparkSession, tmp_path: Any) -> None:
    url = str(tmp_path / "t")
    table = fuse.create_table(url, "n INT, k INT", properties={"block_rows": 2})
    table.create_index("products", "aggregate", ["k"], build=False, aggregates=["sum(n * n)"])
    fuse_spark.install(spark)
    with pytest.warns(UserWarning, match="Spark raises on"):
        table.append(pa.table({"n": pa.array([2, 3, 2**20, 1], pa.int32()), "k": pa.array([1, 1, 2, 2], pa.int32())}))
    fuse_spark.read(spark, url).createOrReplaceTempView("products")

    with pytest.raises(PySparkException, match="OVERFLOW"):
        spark.sql("SELECT sum(n * n) FROM products").collect()
    assert spark.sql("SELECT sum(n * n) AS s FROM products WHERE k = 1").collect()[0].s == 13
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        assert spark.sql("SELECT sum(n * n) AS s FROM products").collect()[0].s == 14  # 2^40 wraps to 0
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "true")


def test_columns_may_be_renamed_and_not_dropped(spark: SparkSession, tmp_path: Any) -> None:
    url = str(tmp_path / "t")
    table = fuse.create_table(url, SCHEMA)
    table.create_index("net", "aggregate", ["flag"], aggregates=["sum(price * (1 - disc))"])
    table.append(made(table.schema, 1))
    fuse_spark.install(spark)
    table.rename_column("disc", "rebate")
    fuse_spark.read(spark, url).createOrReplaceTempView("renamed")
    before = spark.sql("SELECT sum(price * (1 - rebate)) AS s FROM renamed")
    assert answered(before) == "whole"

    table.rename_column("tax", "disc")
    fuse_spark.read(spark, url).createOrReplaceTempView("renamed")
    assert not answered(spark.sql("SELECT sum(price * (1 - disc)) AS s FROM renamed"))
