"""Spark reads the zones that votes kept, and no others of their blocks."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import spark_partition_id

import fuse_index as fuse
import fuse_index.spark as fuse_spark
from fuse_storage import StoredTable
from tests.spark.executed import rows_scanned
from tests.storage.tampering import forget_zone_sizes

ZONE, ZONES, BLOCKS = 40_000, 8, 2
"""Rows of a zone: wide enough that two of them are not read as one because the third between them is small."""
ROWS = ZONE * ZONES * BLOCKS
KEYS = np.random.default_rng(7).permutation(ROWS)
NOISE = np.random.default_rng(8).random(ROWS)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = str(tmp_path_factory.mktemp("zones") / "t")
    rows = pa.table({"id": np.arange(ROWS), "k": KEYS, "noise": NOISE})
    table = fuse.create_table(folder, rows.schema, properties={"block_rows": ZONE * ZONES, "zone_rows": ZONE})
    table.append(rows)
    table.create_index("by_k", "bloom", ["k"])
    return folder


@pytest.mark.every_spark
@pytest.mark.parametrize("zones", [[0], [15], [3, 4], [2, 5], [0, 7, 8, 15], list(range(16))])
def test_a_lookup_reads_its_zones(spark: SparkSession, url: str, zones: list[int]) -> None:
    places = [zone * ZONE + 17 for zone in zones]
    keys = ", ".join(str(KEYS[place]) for place in places)
    found = fuse_spark.read(spark, url).filter(f"k IN ({keys})").select("id", "noise", "_metadata.row_index")

    expected = [(place, NOISE[place], place % (ZONE * ZONES)) for place in places]
    assert sorted(map(tuple, found.collect())) == expected
    explained = fuse_spark.explain(found)
    assert rows_scanned(found) == explained.zones.kept * ZONE
    assert explained.zones.kept <= len(zones) + 1  # a bloom filter may err


def test_short_splits_read_each_zone_once(spark: SparkSession, url: str) -> None:
    spark.conf.set("spark.sql.files.maxPartitionBytes", "100000")
    try:
        places = [100, 3 * ZONE + 5, 9 * ZONE]
        found = fuse_spark.read(spark, url).filter(f"k IN ({', '.join(str(KEYS[place]) for place in places)})")
        assert sorted(row.id for row in found.collect()) == places
        assert rows_scanned(found) <= 4 * ZONE
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")


@pytest.mark.parametrize(
    ("open_cost", "at_once", "large", "small", "expected"),
    [
        (120_000, 2, 4, 2, [8_400, 8_400]),  # Spark's own partitions: 3 large blocks, and 1 with the small ones
        (0, 2, 5, 1, [12_000, 8_400]),  # 2, 2, and 1 with the small one: one task runs alone at the end
        (0, 4, 4, 1, [4_400, 4_000, 4_000, 4_000]),  # the small one alone
        (100 << 20, 2, 4, 2, [8_400, 8_400]),  # two fill a partition by what opening is taken for
    ],
)
def test_tasks_have_equally_much_to_read(
    spark: SparkSession, tmp_path: Path, open_cost: int, at_once: int, large: int, small: int, expected: list[int]
) -> None:
    rows = pa.table({"id": np.arange(4_000), "noise": NOISE[:4_000]})
    table = fuse.create_table(str(tmp_path / "t"), rows.schema, properties={"compression": "uncompressed"})
    for count in [4_000] * large + [400] * small:
        table.append(rows[:count])
    settings = {"openCostInBytes": open_cost, "minPartitionNum": at_once}
    for name, value in settings.items():
        spark.conf.set(f"spark.sql.files.{name}", str(value))
    try:
        found = fuse_spark.read(spark, str(tmp_path / "t"))
        counts = found.groupBy(spark_partition_id()).count().collect()
        assert sorted((each["count"] for each in counts), reverse=True) == expected
        assert found.agg({"id": "sum"}).first()[0] == sum(range(4_000)) * large + sum(range(400)) * small
    finally:
        for name in settings:
            spark.conf.unset(f"spark.sql.files.{name}")


@pytest.mark.every_spark
def test_spark_s_own_explanation_counts_zones(spark: SparkSession, url: str) -> None:
    found = fuse_spark.read(spark, url).filter(f"k = {KEYS[5]}")

    assert "1 of 2 blocks, 1 of 16 zones" in found._jdf.queryExecution().toString()


@pytest.mark.every_spark
def test_sizes_decide_joins_by_the_zones_that_are_left(spark: SparkSession, url: str) -> None:
    everything = fuse_spark.read(spark, url)
    one_zone = everything.filter(f"k = {KEYS[5]}")

    def size(df) -> int:
        return int(df._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())

    assert size(one_zone) < size(everything) / 10


def test_of_blocks_whose_zones_have_no_known_sizes_all_is_read(spark: SparkSession, tmp_path: Path) -> None:
    rows = pa.table({"id": np.arange(1000), "k": KEYS[:1000] % 1000 * 2})
    folder = str(tmp_path / "old")
    table = fuse.create_table(folder, rows.schema, properties={"block_rows": 500, "zone_rows": 100})
    table.append(rows)
    forget_zone_sizes(StoredTable.open(folder))
    found = fuse_spark.read(spark, folder).filter("id = 777")

    assert [row.id for row in found.collect()] == [777]
    assert fuse_spark.explain(found).zones.kept == 1
    assert "1 of 2 blocks" in found._jdf.queryExecution().toString()


def metric_texts(spark: SparkSession) -> tuple[str, dict[str, str]]:
    """The plan of the query that ran last, and its metrics, as Spark's UI shows them."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    store = spark._jsparkSession.sharedState().statusStore()
    queries = store.executionsList()
    last = queries.apply(queries.length() - 1)
    values, metrics = store.executionMetrics(last.executionId()), last.metrics()
    listed = [metrics.apply(number) for number in range(metrics.length())]
    found = [(each.name(), values.get(each.accumulatorId())) for each in listed if "zones" in each.name()]
    return last.physicalPlanDescription(), {name: value.get() for name, value in found if value.isDefined()}


@pytest.mark.every_spark
@pytest.mark.parametrize("reader", ["driver", "executors"])
def test_the_ui_says_what_is_read_and_left_out_by_what_a_join_found_out(
    spark: SparkSession, url: str, reader: str
) -> None:
    fuse_spark.read(spark, url).createOrReplaceTempView("zoned")
    keys = f"VALUES ({KEYS[5]}L), ({KEYS[9]}L) AS small(key)"
    spark.conf.set("spark.fuse.index.rows.maxBytes", "0" if reader == "executors" else "1m")
    try:
        assert len(spark.sql(f"SELECT id, noise FROM zoned JOIN {keys} ON k = key").collect()) == 2
    finally:
        spark.conf.unset("spark.fuse.index.rows.maxBytes")

    plan, texts = metric_texts(spark)
    assert ("FuseRows" in plan) == (reader == "driver")
    read, skipped = (
        _sizes(texts[name]) for name in ("size of zones to read", f"size of zones that {SKIPPERS} left out")
    )
    whole = sum(Path(path).stat().st_size for path in fuse.open_table(url).stored.block_files()[0]) / 2**20
    assert re.search(r"[12] of 2 blocks, [0-9]+ of 16 zones, ", plan)  # as it was planned, or as the join left it
    assert max(skipped) == pytest.approx(whole * 15 / 16, rel=0.05)
    assert max(read) == pytest.approx(whole / 16 * 2**10, rel=0.2)


SKIPPERS = "indexes and statistics"


def _sizes(text: str) -> list[float]:
    """The numbers in a metric's text, before units such as MiB."""
    return [float(word.strip("(")) for word in text.split() if word.strip("(").replace(".", "", 1).isdigit()]


def test_of_zones_that_are_parts_of_row_groups_the_row_groups_are_read(spark: SparkSession, tmp_path: Path) -> None:
    rows, group = pa.table({"id": np.arange(3 * 60_000), "k": KEYS[: 3 * 60_000], "noise": NOISE[: 3 * 60_000]}), 60_000
    (tmp_path / "lake").mkdir()
    pq.write_table(rows, tmp_path / "lake" / "a.parquet", row_group_size=group, write_page_index=True)
    table = fuse.attach(tmp_path / "lake", tmp_path / "t")
    table.create_index("by_k", "bloom", ["k"])
    for places in ([group + 50_000], [5, 59_000, 2 * group + 1], [0, group, 2 * group]):
        condition = f"k IN ({', '.join(str(KEYS[place]) for place in places)})"
        assert table.explain(condition).to_dict()["zones"]["total"] > 6
        found = fuse_spark.read(spark, str(tmp_path / "t")).filter(condition)
        assert sorted(row.id for row in found.collect()) == places
        assert rows_scanned(found) == group * len({place // group for place in places})
