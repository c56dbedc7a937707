"""Rows for other tools: each gets what a scan gives, and what it pushes down opens fewer blocks, never loses a row."""

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fuse_index as fuse
from fuse_index.query.arrow_dataset import arrow_predicate
from fuse_index.query.polars_source import polars_predicate

START = datetime(2026, 1, 1, tzinfo=UTC)
FLOATS = [0.5, None, math.nan, -1.0, math.inf]


def row(n: int) -> dict[str, Any]:
    return {
        "id": n,
        "odd name": None if n % 10 == 3 else f"k{n % 7}",
        "f": FLOATS[n % 5],
        "on": date(2026, 1, 1) + timedelta(days=n),
        "at": START + timedelta(hours=n),
        "price": Decimal(n) / 4,
        "flag": [True, False, None][n % 3],
        "s": None if n % 9 == 5 else {"a": n // 8, "b": "x"},
        "data": bytes([n]),
        "list": [n, None],
    }


SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("odd name", pa.string()),
        ("f", pa.float64()),
        ("on", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("price", pa.decimal128(10, 2)),
        ("flag", pa.bool_()),
        ("s", pa.struct([("a", pa.int64()), ("b", pa.string())])),
        ("data", pa.binary()),
        ("list", pa.list_(pa.int32())),
    ]
)


@pytest.fixture(scope="module")
def table() -> fuse.Table:
    """Eight blocks of eight rows."""
    made = fuse.create_table(f"memory://out-{uuid4().hex}", SCHEMA, properties={"block_rows": 8})
    made.create_index("by_name", "bloom", ["odd name"])
    made.append(pa.Table.from_pylist([row(n) for n in range(64)], SCHEMA))
    return made


@pytest.fixture
def opened(table: fuse.Table, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The blocks that are read, by their numbers."""
    read: list[int] = []
    real = type(table.stored).read_block

    def read_block(stored: Any, frame: Any, block: int, *arguments: Any, **named: Any) -> pa.Table:
        read.append(int(frame.ordinals[block]))
        return real(stored, frame, block, *arguments, **named)

    monkeypatch.setattr(type(table.stored), "read_block", read_block)
    return read


# --- everything at once


def test_whoever_takes_a_stream_takes_a_scan(table):
    scan = table.scan("id < 20", columns=["id", "s"])

    expected = scan.to_arrow()
    assert pa.table(scan).equals(expected)
    assert pa.RecordBatchReader.from_stream(scan).read_all().equals(expected)
    assert scan.to_reader().read_all().equals(expected)
    assert scan.to_polars().to_dicts() == expected.to_pylist()
    assert scan.to_duckdb().fetchall() == [tuple(each.values()) for each in expected.to_pylist()]
    assert duckdb.sql("SELECT count(*) FROM scan").fetchall() == [(20,)]
    assert scan.to_dataset().to_table().equals(expected)
    target = fuse.create_table(f"memory://in-{uuid4().hex}", scan.schema)
    target.append(scan)
    assert target.to_arrow().equals(expected)


def test_a_table_has_short_ways_to_its_rows(table, opened):
    assert table.head(3).column("id").to_pylist() == [0, 1, 2]
    assert set(opened) == {0}
    assert table.head(columns=["on"]).shape == (10, 1)
    assert table.count() == 64
    assert table.count("`odd name` IS NULL") == 7
    assert table.to_arrow().num_rows == len(table.to_pandas()) == table.to_polars().height == 64
    assert table.to_arrow("id = 5", ["id"]).to_pylist() == [{"id": 5}]


def test_files_are_those_of_the_snapshot(tmp_path):
    table = fuse.create_table(tmp_path / "t", "id BIGINT", properties={"block_rows": 2})
    table.append([{"id": n} for n in range(5)])
    then = table.snapshot.id
    files = table.inspect.files()

    assert [name.startswith(str(tmp_path)) for name in files] == [True] * 3
    assert duckdb.sql(f"SELECT sum(id) FROM read_parquet({files!r})").fetchall() == [(10,)]
    table.delete("id < 4")
    assert table.inspect.files() == files[2:]
    assert fuse.open_table(tmp_path / "t", at=then).inspect.files() == files


# --- conditions

POLARS = [
    (pl.col("id") == 20, [2]),
    ((pl.col("id") > 20) & (pl.col("id") <= 30), [2, 3]),
    (pl.col("id") < 20, [0, 1, 2]),
    (pl.col("id").is_in([1, 60]), [0, 7]),
    (pl.col("id").is_between(8, 15), [1]),
    (pl.col("id").is_between(8, 15, closed="none"), [1]),
    (pl.col("on") >= date(2026, 3, 1), [7]),
    (pl.col("at") < datetime(2026, 1, 1, 8, tzinfo=UTC), [0]),
    ((pl.col("id") == 1) | (pl.col("id") == 63), [0, 7]),
    (~(pl.col("id") < 60), [7]),
    ((pl.col("id") < 4) & (pl.col("id") % 2 == 1), [0]),
    (pl.col("odd name") == "nowhere", []),
    (pl.col("s").struct.field("a") == 3, [3]),
    (pl.col("f") > 1e300, range(8)),
    (pl.col("odd name").str.starts_with("k"), range(8)),
    (pl.col("odd name").is_null() & (pl.col("id") < 8), [0]),
    (pl.col("flag") & (pl.col("id") < 8), [0]),
    (pl.col("id") > 60.5, range(8)),
    (pl.col("id").cast(pl.Int64) > 60, range(8)),
    ((pl.col("id") < 4) | (pl.col("id") % 2 == 1), range(8)),
    (pl.col("price") == Decimal("2.50"), range(8)),
]


@pytest.mark.parametrize(("condition", "blocks"), POLARS, ids=range(len(POLARS)))
def test_polars_gets_the_rows_of_its_own_condition_from_few_blocks(table, opened, condition, blocks):
    expected = table.to_polars().filter(condition)
    opened.clear()

    found = fuse.scan_polars(table).filter(condition).collect()
    assert found.equals(expected, null_equal=True)
    assert set(opened) <= set(blocks)


def test_polars_reads_the_columns_and_rows_that_it_asks_for(table, opened):
    assert fuse.scan_polars(table).select("id").head(3).collect()["id"].to_list() == [0, 1, 2]
    assert set(opened) == {0}
    lazy = fuse.scan_polars(table)
    assert lazy.filter(pl.col("id") > 9).head(2).select("on").collect().height == 2
    assert lazy.head(10).filter(pl.col("id") > 7).select(pl.col("id")).collect()["id"].to_list() == [8, 9]
    assert lazy.select(pl.len()).collect().item() == 64
    assert lazy.collect_schema().names() == table.schema.names
    assert lazy.join(lazy.select("id"), on="id").filter(pl.col("id") == 3).collect().height == 1
    assert lazy.tail(2).collect()["id"].to_list() == [62, 63]
    limited = fuse.scan_polars(table.scan("id >= 4", limit=6))
    assert limited.filter(pl.col("id") > 7).collect()["id"].to_list() == [8, 9]


ARROW = [
    (pc.field("id") == 20, [2]),
    ((pc.field("id") > 20) & (pc.field("id") <= pa.scalar(30, pa.int64())), [2, 3]),
    (pc.scalar(20) > pc.field("id"), [0, 1, 2]),
    (pc.field("id").isin([1, 60]), [0, 7]),
    (~(pc.field("id") < 60), [7]),
    (
        ~((pc.field("id") < 60) | (pc.field("id") % 2 == 1))
        if hasattr(pc.field("id"), "__mod__")
        else pc.field("id") > 59,
        [7],
    ),
    (pc.field("odd name") == "nowhere", []),
    (pc.field("s", "a") == 3, [3]),
    (pc.field("odd name").is_null() & (pc.field("id") < 8), [0]),
    (pc.field("s").is_valid() & (pc.field("id") < 8), [0]),
    (pc.starts_with(pc.field("odd name"), "k"), range(8)),
    (pc.is_nan(pc.field("f")), range(8)),
    (~(pc.field("f") < 3.0), range(8)),
    (pc.field("f").is_null(nan_is_null=True), range(8)),
    (pc.field("id").isin(pa.array([1, None], pa.int32())), range(8)),
    ((pc.field("id") < 4) & (pc.bit_wise_and(pc.field("id"), 1) == 1), [0]),
    ((pc.field("id") < 4) | (pc.bit_wise_and(pc.field("id"), 1) == 1), range(8)),
    (pc.field("flag"), range(8)),
    (pc.if_else(pc.field("id").is_valid(), pc.field("id") == 3, pa.scalar(None, pa.bool_())), [0]),
    (pc.if_else(pc.field("id") > 3, pc.field("id") == 3, pa.scalar(True)), range(8)),
]


@pytest.mark.parametrize(("condition", "blocks"), ARROW, ids=range(len(ARROW)))
def test_a_dataset_gives_the_rows_of_a_filter_from_few_blocks(table, opened, condition, blocks):
    expected = table.to_arrow().filter(condition)
    opened.clear()

    dataset = table.scan().to_dataset()
    found = dataset.to_table(filter=condition)
    assert repr(found.to_pylist()) == repr(expected.to_pylist())  # NaN equals nothing
    assert set(opened) <= set(blocks)
    assert dataset.count_rows(filter=condition) == expected.num_rows
    assert dataset.to_table(columns=["on"], filter=condition).column("on").equals(expected.column("on"))


def test_a_dataset_gives_columns_and_first_rows(table, opened):
    dataset = table.scan().to_dataset()

    assert dataset.head(2, columns=["on", "id"]).to_pylist() == [{"on": row(n)["on"], "id": n} for n in range(2)]
    assert set(opened) == {0}
    assert dataset.to_table(columns={"twice": pc.field("id") * 2}).column("twice").to_pylist()[:3] == [0, 2, 4]
    assert sum(len(batch) for batch in dataset.to_batches()) == 64
    assert dataset.head(2, filter=pc.field("id") > 60).num_rows == 2
    assert dataset.to_table(columns=[]).num_columns == 0
    assert pl.scan_pyarrow_dataset(dataset).filter(pl.col("id") == 9).collect().height == 1
    with pytest.raises(NotImplementedError, match="filter the scan itself"):
        dataset.filter(pc.field("id") > 3)
    with pytest.raises(pa.ArrowInvalid, match="nowhere"):
        dataset.to_table(filter=pc.field("nowhere") > 3)


DUCKDB = [
    ("id = 20", [2]),
    ("id > 20 AND id <= 30", [2, 3]),
    ("id IN (1, 60)", [0, 7]),
    ("\"on\" >= DATE '2026-03-01'", [7]),
    ("\"at\" < TIMESTAMPTZ '2026-01-01 08:00:00Z'", [0]),
    ("id < 8 OR id > 60", [0, 7]),
    ("\"odd name\" = 'nowhere'", []),
    ("s.a = 3", [3]),
    ("f > 0.4", range(8)),
    ("NOT (f < 0.6)", range(8)),
    ("price BETWEEN 2.5 AND 3", range(8)),
    ("flag AND id < 8", [0]),
    ('"odd name" IS NULL AND id < 8', [0]),
    ("id % 2 = 0 AND id < 4", [0]),
]


@pytest.mark.parametrize(("condition", "blocks"), DUCKDB, ids=[condition for condition, _ in DUCKDB])
def test_duckdb_gets_the_rows_of_its_own_condition_from_few_blocks(table, opened, condition, blocks):
    rows = duckdb.from_arrow(table.to_arrow())
    expected = rows.filter(condition).select("id").fetchall()
    opened.clear()

    with duckdb.connect() as connection:
        connection.sql("SET TimeZone = 'UTC'")
        relation = table.scan().to_duckdb(connection)
        assert relation.filter(condition).select("id").fetchall() == expected
    assert set(opened) <= set(blocks)
    dataset = table.scan().to_dataset()
    assert duckdb.sql(f"SELECT id FROM dataset WHERE {condition}").fetchall() == expected
    assert dataset.schema == table.schema


# --- drawn conditions: whatever is asked, no row is lost

VALUES = st.one_of(st.integers(-3, 70), st.sampled_from([2**31, -(2**40)]))
LEAVES = st.one_of(
    st.tuples(st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), st.just("id"), VALUES),
    st.tuples(
        st.sampled_from(["==", "!=", "<", "<=", ">", ">="]),
        st.just("f"),
        st.sampled_from([0.5, -1.0, math.inf, math.nan]),
    ),
    st.tuples(st.just("null"), st.sampled_from(["odd name", "f", "flag"]), st.none()),
    st.tuples(st.just("in"), st.just("id"), st.lists(st.integers(0, 70), min_size=1, max_size=3)),
    st.tuples(
        st.sampled_from(["in", "in or null"]), st.just("odd name"), st.lists(st.sampled_from(["k1", "k9"]), min_size=1)
    ),
    st.tuples(st.just("=="), st.just("odd name"), st.sampled_from(["k1", "k9"])),
)
CONDITIONS = st.recursive(
    LEAVES,
    lambda part: st.one_of(
        st.tuples(st.sampled_from(["and", "or"]), part, part), st.tuples(st.just("not"), part, st.none())
    ),
    max_leaves=6,
)


def built(node: Any, column: Any) -> Any:
    """A condition in the words of a library, whose columns are ``column(name)``."""
    word, left, right = node
    match word:
        case "and":
            return built(left, column) & built(right, column)
        case "or":
            return built(left, column) | built(right, column)
        case "not":
            return ~built(left, column)
        case "null":
            return column(left).is_null()
        case "in":
            return column(left).isin(right) if column is pc.field else column(left).is_in(right)
        case "in or null":
            return (
                column(left).isin([*right, None]) if column is pc.field else column(left).is_in(right, nulls_equal=True)
            )
    return getattr(
        column(left),
        {"==": "__eq__", "!=": "__ne__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}[word],
    )(right)


@given(node=CONDITIONS)
def test_no_condition_loses_a_row(table, node):
    in_arrow, in_polars = built(node, pc.field), built(node, pl.col)
    names = ["id", "odd name", "f", "flag"]
    rows = table.to_arrow(columns=names)

    expected = rows.filter(in_arrow).column("id").to_pylist()
    assert table.scan(columns=names).to_dataset().to_table(filter=in_arrow).column("id").to_pylist() == expected
    expected = pl.DataFrame(rows).filter(in_polars)["id"].to_list()
    assert fuse.scan_polars(table).filter(in_polars).collect()["id"].to_list() == expected


def test_what_is_unknown_asks_no_index(table):
    assert arrow_predicate(pc.field(0) == 1, table.schema) == (None, None)
    assert arrow_predicate(pc.field("nowhere") == 1, table.schema) == (None, ["nowhere"])
    assert polars_predicate(pl.col("nowhere") == 1, table.schema) is None
    assert polars_predicate(pl.col("id").map_batches(lambda values: values > 3), table.schema) is None
    with pytest.raises(fuse.InputError, match="give a table or a scan"):
        fuse.scan_polars(7)
