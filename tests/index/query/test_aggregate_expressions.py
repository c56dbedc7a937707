"""Aggregates of what is computed of columns, without Spark: kept, matched, and left alone where they may overflow."""

from decimal import Decimal

import pyarrow as pa
import pytest

import fuse_index as fuse
from fuse_index.errors import TermError
from fuse_index.expressions.serialize import decode_term
from fuse_index.predicate import Context

SCHEMA = "k INT, price DECIMAL(15,2), disc DECIMAL(15,2), n INT, big BIGINT, wide DECIMAL(38,2)"
CHARGE = "sum(price * (1 - disc) * (1 + disc))"


def rows(*numbers, price="100.00", big=1):
    count = len(numbers)
    return pa.table(
        {
            "k": pa.array([number % 2 for number in numbers], pa.int32()),
            "price": pa.array([Decimal(price)] * count, pa.decimal128(15, 2)),
            "disc": pa.array([Decimal("0.10"), None] * count, pa.decimal128(15, 2))[:count],
            "n": pa.array(numbers, pa.int32()),
            "big": pa.array([big] * count, pa.int64()),
            "wide": pa.array([Decimal("9" * 36)] * count, pa.decimal128(38, 2)),
        }
    )


@pytest.fixture
def table(tmp_path):
    return fuse.create_table(str(tmp_path / "t"), SCHEMA, properties={"block_rows": 4})


def read(table, aggregate, groups=("k",), where=None):
    """The blocks that are read, after the answer was compared with that of a scan."""
    found, expected = (table.aggregate(groups, [aggregate], where, indexes=each) for each in (True, False))
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, expected.to_pylist()))
    return table.explain(where, groups, [aggregate]).blocks.kept


def test_what_is_kept_is_read_from_states_however_it_is_written(table):
    table.create_index("x", "aggregate", ["k"], aggregates=[CHARGE, "sum(CASE WHEN n > 2 THEN big ELSE 0 END)"])
    table.append(rows(*range(8)))

    assert read(table, CHARGE) == 0
    assert read(table, "sum((disc + 1) * ((1 - disc) * price))") == 0
    assert read(table, "avg(price * (1 - disc) * (1 + disc))") == 2
    assert read(table, "sum(if(n <= 2, 0, big))") == 2
    assert read(table, "sum(CASE WHEN NOT n <= 2 THEN big ELSE 0L END)", groups=()) == 0
    assert read(table, CHARGE, where="k = 1") == 0
    assert read(table, CHARGE, where="n >= 2") == 1
    table.delete("n = 6")
    assert read(table, CHARGE) == 0, "the block is written anew, and its state"


@pytest.mark.parametrize("ansi", [True, False])
def test_values_say_whether_a_sum_of_a_wide_term_may_overflow(tmp_path, ansi):
    table = fuse.create_table(str(tmp_path / "t"), SCHEMA, properties={"block_rows": 4}, context=Context(ansi=ansi))
    table.create_index("x", "aggregate", ["k"], build=False, aggregates=["sum(big * n)", CHARGE])
    table.append(rows(*range(4)))
    assert read(table, "sum(big * n)") == read(table, CHARGE) == 0
    table.append(rows(0, 1, 1, 0, big=2**62))

    with pytest.raises(fuse.OpaqueError, match=r"a sum of \(.*\) may overflow"):
        table.aggregate(["k"], ["sum(big * n)"])
    assert read(table, CHARGE) == 0


def test_of_38_digits_nothing_is_answered_that_may_overflow(table):
    table.create_index("x", "aggregate", ["k"], aggregates=["sum(wide - 1)", "max(wide - 1)"])
    table.append(rows(*range(8)))

    with pytest.raises(fuse.OpaqueError, match="may overflow"):
        table.aggregate([], ["sum(wide - 1)"])
    assert read(table, "max(wide - 1)") == 0


@pytest.mark.parametrize(
    ("aggregate", "says"),
    [
        ("stddev(n)", "known are"),
        ("sum(CASE WHEN rand() > 0.5 THEN 1 END)", "rand"),
        ("sum(1 + 1)", "constant"),
        ("sum(price * prize)", "prize"),
        ("sum(CASE WHEN k = 1 THEN 'a' END)", "no sum of string"),
    ],
)
def test_what_spark_would_compute_otherwise_is_refused_by_name(table, aggregate, says):
    with pytest.raises((fuse.WhereError, fuse.DefinitionError), match=says):
        table.create_index("x", "aggregate", ["k"], aggregates=[aggregate])


def test_a_definition_follows_its_columns(table):
    table.create_index("x", "aggregate", ["k"], aggregates=[CHARGE])
    table.append(rows(*range(8)))
    table.rename_column("price", "cost")
    assert read(table, CHARGE.replace("price", "cost")) == 0
    table.add_column("price", "DECIMAL(15,2)")
    assert read(table, CHARGE) == 2

    with pytest.raises(fuse.DefinitionError, match="has index 'x' on it"):
        table.drop_column("disc")


@pytest.mark.parametrize("aggregate", ["sum(n + k)", "sum(CASE WHEN n = 1 THEN 1 END)", "sum(-n)"])
def test_a_column_of_an_expression_is_not_widened_under_it(table, aggregate):
    table.create_index("x", "aggregate", ["k"], aggregates=[aggregate])
    table.append(rows(*range(8)))

    with pytest.raises(fuse.DefinitionError, match="has index 'x' on it"):
        table.change_type("n", "BIGINT")
    with pytest.raises(fuse.DefinitionError, match=r"'x' cannot be rebuilt.*other types by now: drop the index"):
        table.change_type("n", "BIGINT", indexes="rebuild")
    assert read(table, aggregate) == 0
    table.change_type("n", "BIGINT", indexes="drop")
    assert read(table, aggregate) == 2


def test_a_definition_whose_types_no_longer_agree_is_not_used(table):
    table.create_index("x", "aggregate", ["k"], aggregates=["sum(n + k)"])
    encoded = table.snapshot.definitions["x"]["inputs"][1]

    with pytest.raises(TermError, match="other types by now"):
        decode_term({**encoded, "type": "bigint"}, table.snapshot.schema)
