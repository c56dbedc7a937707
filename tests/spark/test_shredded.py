"""VARIANT columns that Spark shreds: shown as its own reader shows them, natively and locally, indexed or not."""

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from fuse_index.errors import OpaqueError
from fuse_index.expressions.variant.columns import encode_values, variant_texts
from fuse_index.expressions.variant.decode import Float32
from tests.effort import effort, in_turn
from tests.index.sources.test_variants import Log
from tests.spark.foreign.ways import conf
from tests.spark.test_variant import SOME, answers, world

pytestmark = pytest.mark.every_spark

SWITCH = "spark.sql.variant.allowReadingShredded"
WAYS = {
    "plain": None,
    "objects": "a bigint, b string, `c.d` struct<a: decimal(12,2), e: array<bigint>>, z array<variant>",
    "narrow": "a tinyint, b boolean, `c.d` float, z smallint",
    "times": "a date, b timestamp, `c.d` timestamp_ntz, z binary",
    "wide": "a decimal(38,10), b double, `c.d` array<struct<a: int, b: string>>, z decimal(18,3)",
    "text": "string",
    "arrays": "array<array<double>>",
}
"""How Spark is told to shred, by names."""
NAMES = ["a", "b", "c.d", "z", "e", "é", "A"]
QUESTIONS_OF_DRAWN = [
    "try_variant_get(v, '$.a', 'bigint') = 7",
    "try_variant_get(v, '$.a', 'string') = 'x'",
    "try_variant_get(v, '$.b', 'boolean')",
    "try_variant_get(v, \"$['c.d'].a\", 'decimal(12,2)') > 5",
    "try_variant_get(v, '$.z[0]', 'double') < 0",
    "try_variant_get(v, '$.a', 'date') > DATE'2000-01-01'",
    "variant_get(v, '$.e') IS NOT NULL",
    "v IS NULL",
]


def drawn(chance: random.Random, depth: int = 3) -> Any:
    """A value of any type that Spark has, objects and arrays more often than others."""
    if depth and chance.random() < 0.7:
        if chance.random() < 0.75:
            return {name: drawn(chance, depth - 1) for name in NAMES if chance.random() < 0.5}
        return [drawn(chance, depth - 1) for _ in range(chance.randrange(4))]
    moment = datetime(1900, 1, 1) + timedelta(microseconds=chance.randrange(200 * 365 * 86_400_000_000))
    return chance.choice(
        [
            *(None, True, False, 7, chance.randrange(-128, 128), chance.randrange(-(1 << 63), 1 << 63)),
            *(10**20 + 1, chance.choice([1.5, -0.0, 1e300, 0.1]), Float32(chance.choice([0.5, -2.25]))),
            *(Decimal(chance.randrange(-(10**6), 10**6)).scaleb(-2), Decimal("1.50"), Decimal("0.00001")),
            *("x", "", "é😀", "y" * 70, b"\x00\xff", b"", moment.date(), date(1, 1, 1)),
            *(moment, moment.replace(tzinfo=UTC)),
        ]
    )


@contextmanager
def shredding(spark: SparkSession, way: str | None) -> Iterator[None]:
    """Whatever is written is shredded so; ``None``: it is not."""
    words = "spark.sql.variant."
    settings = {f"{words}writeShredding.enabled": str(way is not None).lower()}
    if way is not None:
        settings[f"{words}forceShreddingSchemaForTest"] = way
    with conf(spark, **settings):
        yield


@pytest.fixture(autouse=True)
def reads_shredded(spark: SparkSession) -> Iterator[None]:
    """Shredded columns are read natively, as sessions read them from 4.1 on."""
    with conf(spark, **{SWITCH: "true"}):
        yield


@pytest.fixture(scope="module")
def world_rows(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    path = str(tmp_path_factory.mktemp("world") / "plain")
    with shredding(spark, None):
        world(spark).coalesce(1).write.parquet(path)
    return spark.read.schema("id BIGINT, v VARIANT").parquet(path)


@pytest.fixture(scope="module")
def drawn_rows(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[DataFrame, list[str | None]]:
    """Drawn values, in plain files; and what their text is."""
    chance = random.Random(44)
    trees = [drawn(chance) if number % 50 else ... for number in range(1, effort(500) + 1)]
    told = [json.dumps(tree) if isinstance(tree, str | None) else tree for tree in trees]  # texts are taken for JSON
    values = encode_values([None if tree is ... else tree for tree in told], "v")
    url = str(tmp_path_factory.mktemp("drawn") / "t")
    table = fuse.create_table(url, "id BIGINT, v VARIANT")
    table.append(pa.table({"id": pa.array(range(len(values)), pa.int64()), "v": values}))
    fuse_spark.install(spark)
    path = str(tmp_path_factory.mktemp("drawn") / "plain")
    with shredding(spark, None):
        fuse_spark.read(spark, url).coalesce(1).write.parquet(path)
    texts: list[str | None] = variant_texts(values, "v").to_pylist()
    return spark.read.schema("id BIGINT, v VARIANT").parquet(path), texts


def shredded_lake(rows: DataFrame, place: Path, way: str | None) -> Log:
    """A Delta table of two files, shredded so, and as it is by default."""
    log = Log(place, {"id": "long", "v": "variant"})
    with shredding(rows.sparkSession, way):
        rows.where("id % 3 <> 0").coalesce(1).write.mode("append").parquet(str(place))
    rows.where("id % 3 = 0").coalesce(1).write.mode("append").parquet(str(place))
    for file in sorted(log.place.glob("*.parquet")):
        log.add_file(file.name)
    return log


def theirs(spark: SparkSession, place: Path) -> DataFrame:
    """The files by Spark's own reader: as it shreds, it makes 1.0 a whole number where a column is of those."""
    return spark.read.schema("id BIGINT, v VARIANT").parquet(str(place))


def assert_same(spark: SparkSession, url: str, plain: DataFrame) -> None:
    """By the reader of batches, and by that of rows."""
    shown = ["id", "to_json(v)", "schema_of_variant(v)"]
    wanted = sorted(plain.selectExpr(*shown).collect())
    for batches in ("true", "false"):
        with conf(spark, **{"spark.sql.parquet.enableVectorizedReader": batches}):
            assert sorted(fuse_spark.read(spark, url).selectExpr(*shown).collect()) == wanted


@pytest.mark.parametrize("way", WAYS)
def test_drawn_values_are_those_that_were_shredded(
    spark: SparkSession, drawn_rows: tuple[DataFrame, list[str | None]], tmp_path: Path, way: str
) -> None:
    plain, texts = drawn_rows
    log = shredded_lake(plain, tmp_path / "lake", WAYS[way])
    table = fuse.attach(log.place, tmp_path / "table", format="delta")
    url = table.stored.store.url
    found = table.to_arrow().sort_by("id").column("v").to_pylist()
    assert found == texts
    assert_same(spark, url, theirs(spark, log.place))
    table.create_index("by_path", "json_path", ["v"])
    right, asked, answered = answers(theirs(spark, log.place), QUESTIONS_OF_DRAWN), 0, 0
    for number, (question, ids) in enumerate(zip(QUESTIONS_OF_DRAWN, right, strict=True), [*WAYS].index(way)):
        ours = fuse_spark.read(spark, url).where(question).select("id").collect()
        assert sorted(row.id for row in ours) == ids, question
        for indexes in in_turn([True, False], number):
            asked += 1
            with suppress(OpaqueError):  # some casts of what was drawn are Java's alone
                local = table.scan(question, ["id"], indexes=indexes).to_arrow().column("id").to_pylist()
                answered += 1
                assert sorted(local) == ids, (question, indexes)
    assert answered >= asked / 2


QUESTIONED = ["plain", "objects", "text"]


@pytest.mark.parametrize("way", QUESTIONED)
def test_questions_on_shredded_files_find_the_same_rows(
    spark: SparkSession, world_rows: DataFrame, tmp_path: Path, way: str
) -> None:
    log = shredded_lake(world_rows, tmp_path / "lake", WAYS[way])
    table = fuse.attach(log.place, tmp_path / "table", format="delta")
    fuse_spark.install(spark)
    url, plain = table.stored.store.url, theirs(spark, log.place)
    assert fuse_spark.read(spark, url).schema == plain.schema
    assert_same(spark, url, plain)
    table.create_index("by_path", "json_path", ["v"])
    some = SOME[QUESTIONED.index(way) :: len(QUESTIONED)]
    right = answers(plain, some)
    assert answers(fuse_spark.read(spark, url), some) == right
    for question, ids in zip(some, right, strict=True):
        ours = fuse_spark.read(spark, url).where(question).select("id").collect()
        assert sorted(row.id for row in ours) == ids, question


def test_a_folder_of_shredded_files_is_attached(spark: SparkSession, world_rows: DataFrame, tmp_path: Path) -> None:
    """Files of Spark say themselves which columns are VARIANT, whether they are shredded or not."""
    for number, way in enumerate(("objects", "plain")):
        with shredding(spark, WAYS[way]):
            rows = world_rows.where(f"id % 2 = {number}").coalesce(1)
            rows.write.mode("append").parquet(str(tmp_path / "lake"))
    table = fuse.attach(tmp_path / "lake", tmp_path / "table")
    fuse_spark.install(spark)
    assert_same(spark, table.stored.store.url, theirs(spark, tmp_path / "lake"))
    assert len(table.to_arrow()) == world_rows.count()


def test_a_session_that_reads_no_shredded_files_reads_them_through_python(
    spark: SparkSession, drawn_rows: tuple[DataFrame, list[str | None]], tmp_path: Path
) -> None:
    plain, _ = drawn_rows
    log = shredded_lake(plain, tmp_path / "lake", WAYS["objects"])
    url = fuse.attach(log.place, tmp_path / "table", format="delta").stored.store.url
    fuse_spark.install(spark)
    shown = ["id", "to_json(v)", "schema_of_variant(v)"]
    with conf(spark, **{SWITCH: "false"}):
        with pytest.warns(fuse_spark.FallbackWarning, match=f"shredded the VARIANT 'v'.*{SWITCH}"):
            ours = fuse_spark.read(spark, url)
        found = sorted(ours.selectExpr(*shown).collect())
    assert found == sorted(theirs(spark, log.place).selectExpr(*shown).collect())
