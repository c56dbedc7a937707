"""Blocks written before and after their columns changed are read together: natively, through the data source, and
locally.
"""

from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Row, SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from tests.spark.executed import files_read

pytestmark = pytest.mark.every_spark

STRUCT = pa.struct([("a", pa.int32()), ("b", pa.string())])
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("tiny", pa.int8()),
        ("small", pa.int16()),
        ("whole", pa.int32()),
        ("count", pa.int32()),
        ("price", pa.int32()),
        ("ratio", pa.float32()),
        ("sum", pa.decimal128(10, 2)),
        ("day", pa.date32()),
        ("left", pa.string()),
        ("right", pa.string()),
        ("gone", pa.string()),
        ("s", STRUCT),
        ("items", pa.list_(STRUCT)),
        ("more", pa.list_(pa.list_(STRUCT))),
        ("named", pa.map_(pa.string(), STRUCT)),
        ("keyed", pa.map_(pa.int32(), pa.int32())),
        ("t", STRUCT),
        ("list", pa.list_(STRUCT)),
    ]
)
WIDER = {
    "tiny": "smallint",
    "small": "int",
    "whole": "bigint",
    "count": "double",
    "price": "decimal(12,2)",
    "ratio": "double",
    "sum": "decimal(20,4)",
    "day": "timestamp_ntz",
    "s.a": "bigint",
    "items.element.a": "bigint",
    "named.value.a": "double",
    "keyed.key": "bigint",
    "keyed.value": "decimal(12,2)",
}


def old(n: int) -> dict:
    struct = {"a": n, "b": f"b{n}"}
    items = [[struct, None, struct], [], None, [struct]][n - 1]
    return {
        "id": n,
        "tiny": n,
        "small": n,
        "whole": n,
        "count": n,
        "price": n,
        "ratio": n / 2,
        "sum": Decimal(n).scaleb(-2),
        "day": date(2026, 1, n),
        "left": f"l{n}",
        "right": f"r{n}",
        "gone": "old",
        "s": struct if n % 2 else None,
        "items": items,
        "more": [items, None],
        "named": {"x": struct, "y": None} if n < 4 else None,
        "keyed": {n: n},
        "t": struct,
        "list": items,
    }


@pytest.fixture(scope="module")
def evolved(tmp_path_factory: pytest.TempPathFactory) -> fuse.Table:
    """Two blocks of two rows as they were, and one as they are after everything that can happen to a column."""
    folder: Path = tmp_path_factory.mktemp("evolved")
    table = fuse.create_table(str(folder / "t"), SCHEMA, properties={"block_rows": 2})
    table.append(pa.Table.from_pylist([listed(old(n)) for n in (1, 2, 3, 4)], SCHEMA))
    table.tag("before")
    for path, data_type in WIDER.items():
        table.change_type(path, data_type)
    for path, to in (("left", "l"), ("right", "left"), ("l", "right"), ("s.b", "text"), ("items.element.b", "text")):
        table.rename_column(path, to)
    table.drop_column("gone")
    table.add_column("gone", "string")
    for struct in ("s", "items.element", "more.element.element", "named.value"):
        table.add_column(f"{struct}.c", "double")
    table.add_column("t.late", "int")
    table.add_column("list.element.later", "int")
    table.drop_column("named.value.b")
    table.add_column("named.value.b", "struct<d: int>", first=True)
    table.add_column("city", "string", default="Bonn", nullable=False, after="id")
    table.add_column("height", "decimal(5,2)", default=Decimal("1.75"))
    table.add_column("since", "date", default=date(2020, 2, 29))
    table.move_column("sum", first=True)
    wide = table.scan("id = 4").to_arrow().to_pylist()[0]
    struct = {"a": 1 << 40, "text": "t5", "c": 0.5}
    more = {"id": 5, "whole": 1 << 40, "city": "Oslo", "gone": "new", "s": struct, "height": Decimal("1.80")}
    inner = [struct, {"a": None, "text": None, "c": None}, None]
    more |= {
        "items": inner,
        "more": [[{"a": 1, "b": "b", "c": 0.5}]],
        "named": [("z", {"b": {"d": 1}, "a": 0.5, "c": 0.5})],
    }
    table.append(pa.Table.from_pylist([wide | more], table.schema))
    return table


def listed(row: dict) -> dict:
    """Maps as Arrow takes them."""
    return {name: list(value.items()) if name in ("named", "keyed") and value else value for name, value in row.items()}


def plainly(row: Row) -> dict:
    """As Arrow gives it."""
    return listed(row.asDict(recursive=True))


@pytest.fixture(scope="module")
def both(spark: SparkSession, evolved: fuse.Table) -> tuple[DataFrame, DataFrame]:
    """The table as Spark reads it, and the same rows as Spark's own local relation."""
    fuse_spark.install(spark)
    df = fuse_spark.read(spark, evolved.stored.store.url)
    return df, spark.createDataFrame(df.collect(), df.schema).coalesce(1).cache()


def test_all_ways_of_reading_give_the_same_rows(spark: SparkSession, evolved: fuse.Table) -> None:
    fuse_spark.install(spark)
    url = evolved.stored.store.url
    local = sorted(evolved.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    native, source = fuse_spark.read(spark, url), spark.read.format("fuse").load(url)

    for df in (native, source):
        assert [plainly(row) for row in df.orderBy("id").collect()] == local
    assert (local[0]["left"], local[0]["right"], local[0]["gone"]) == ("r1", "l1", None)
    then = fuse_spark.read(spark, url, at="before").orderBy("id").collect()
    assert [row.asDict(recursive=True) for row in then] == [old(n) for n in (1, 2, 3, 4)]
    assert local[0]["items"] == [{"a": 1, "text": "b1", "c": None}, None, {"a": 1, "text": "b1", "c": None}]
    assert (local[0]["named"][0], local[0]["more"][0][0]) == (
        ("x", {"b": None, "a": 1.0, "c": None}),
        {"a": 1, "b": "b1", "c": None},
    )


@pytest.mark.alike
@pytest.mark.parametrize(
    "where",
    [
        "tiny = 2",
        "small > 3",
        "whole = 1099511627776 OR whole = 1",
        "count >= 2.5",
        "price = 3.00",
        "ratio = 1.5",
        "sum < 0.02",
        "day = TIMESTAMP_NTZ '2026-01-03 00:00:00'",
        "left = 'r2'",
        "right = 'l2'",
        "gone IS NULL",
        "gone = 'old'",
        "gone = 'new'",
        "city = 'Bonn'",
        "city <> 'Bonn'",
        "height > 1.75",
        "since = DATE '2020-02-29'",
        "s.a = 3",
        "s.a > 4",
        "s.text = 'b2'",
        "s.c IS NULL",
        "s.c = 0.5",
        "s IS NOT NULL AND s.c IS NULL",
    ],
)
def test_filters_find_rows_of_old_and_new_blocks(
    both: tuple[DataFrame, DataFrame], evolved: fuse.Table, where: str
) -> None:
    native, plain = both

    found = sorted(row.id for row in native.where(where).select("id").collect())
    assert found == sorted(row.id for row in plain.where(where).select("id").collect())
    assert found == sorted(evolved.scan(where, columns=["id"]).to_arrow().column("id").to_pylist())


@pytest.mark.parametrize(
    ("columns", "where"),
    [
        ("t.late", "t IS NOT NULL"),
        ("size(list.later)", "id > 0"),
        ("s.c", "s IS NOT NULL"),
        ("items.c", "id > 0"),
        ("size(more[0].c)", "id > 0"),
        ("map_values(named).b.d", "id > 0"),
        ("explode(more[0]) AS e", "id > 0"),
        ("inline_outer(items)", "id > 0"),
        ("map_values(keyed)", "map_contains_key(keyed, 3L)"),
        ("id", "exists(more[0], i -> i.c IS NULL)"),
        ("id", "named['x'].c IS NULL AND named IS NOT NULL"),
    ],
)
def test_what_old_rows_hold_is_there_where_little_is_asked_for(
    both: tuple[DataFrame, DataFrame], columns: str, where: str
) -> None:
    """Spark reads no more of a struct than it is asked for, and of what is asked for old blocks may have nothing."""
    here, there = (df.where(where).selectExpr("id", columns).orderBy("id").collect() for df in both)
    assert here == there


@pytest.mark.filterwarnings("ignore::fuse_index.spark.FallbackWarning")  # of Spark 4.0
def test_structs_of_which_old_blocks_have_no_field_any_more_are_not_null(spark: SparkSession, tmp_path: Path) -> None:
    table = fuse.create_table(
        str(tmp_path / "t"), pa.schema([("id", pa.int64()), ("s", STRUCT), ("list", pa.list_(STRUCT))])
    )
    table.append(
        [{"id": 1, "s": {"a": 1, "b": "b"}, "list": [{"a": 1, "b": "b"}, None]}, {"id": 2, "s": None, "list": None}]
    )
    for path in ("s", "list.element"):
        table.add_column(f"{path}.c", "int")
        table.drop_column(f"{path}.a")
        table.drop_column(f"{path}.b")
    fuse_spark.install(spark)

    found = [row.asDict(recursive=True) for row in fuse_spark.read(spark, str(tmp_path / "t")).orderBy("id").collect()]
    assert found == [{"id": 1, "s": {"c": None}, "list": [{"c": None}, None]}, {"id": 2, "s": None, "list": None}]
    assert found == table.scan().to_arrow().to_pylist()


@pytest.mark.any_spark
def test_a_clone_is_read_from_the_files_of_its_source(spark: SparkSession, evolved: fuse.Table, tmp_path: Path) -> None:
    url = str(tmp_path / "clone")
    evolved.clone(url).append(evolved.scan("id = 5").to_arrow())
    fuse_spark.install(spark)

    native, source = fuse_spark.read(spark, url), spark.read.format("fuse").load(url)
    assert (
        sorted(row.id for row in native.collect()) == sorted(row.id for row in source.collect()) == [1, 2, 3, 4, 5, 5]
    )
    found = native.where("id = 5")
    assert len(found.collect()) == 2
    assert files_read(found) == 2
