"""Attached tables whose files call columns otherwise, or by the name of another: Spark finds them by their ids."""

from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from tests.index.sources.one_table import OneTable

SETTINGS = {
    "as it is": {},
    "row by row": {"spark.sql.parquet.enableVectorizedReader": "false"},
    "nested row by row": {"spark.sql.parquet.enableNestedColumnVectorizedReader": "false"},
    "interpreted": {"spark.sql.codegen.wholeStage": "false"},
    "many columns": {"spark.sql.codegen.maxFields": "3"},
}
PAIRS = {
    "texts": (pa.string(), pa.string(), lambda n: (f"a{n}", f"b{n}")),
    "bytes": (pa.string(), pa.binary(), lambda n: (f"a{n}", f"b{n}".encode())),
    "numbers": (pa.int32(), pa.int64(), lambda n: (n, n * 7)),
    "texts and numbers": (pa.string(), pa.int64(), lambda n: (f"a{n}", n)),
    "decimals": (pa.decimal128(8, 2), pa.decimal128(9, 4), lambda n: (Decimal(n) / 4, Decimal(n) / 16)),
    "times": (pa.date32(), pa.timestamp("us"), lambda n: (date(2026, 1, n % 28 + 1), datetime(2026, 2, n % 28 + 1))),
}


@pytest.fixture(
    params=[*list(SETTINGS)[:3], *(pytest.param(each, marks=pytest.mark.thorough) for each in list(SETTINGS)[3:])]
)
def reads(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[SparkSession]:
    for key, value in SETTINGS[request.param].items():
        spark.conf.set(key, value)
    yield spark
    for key in SETTINGS[request.param]:
        spark.conf.unset(key)


@pytest.fixture
def catalog(monkeypatch: pytest.MonkeyPatch) -> OneTable:
    made = OneTable("test")
    monkeypatch.setattr("pyiceberg.catalog.load_catalog", lambda name: made)
    return made


@pytest.mark.every_spark
@pytest.mark.parametrize("pair", PAIRS)
def test_columns_that_exchanged_names_keep_their_values(
    reads: SparkSession, tmp_path: Path, catalog: OneTable, pair: str
) -> None:
    one, other, values = PAIRS[pair]
    part = pa.struct([("p", one), ("q", other)])
    schema = pa.schema([("id", pa.int64()), ("p", one), ("q", other), ("s", part), ("l", pa.list_(part))])

    def rows(first: int, p: str, q: str) -> pa.Table:
        """Some, in which the columns are called so."""
        made = [dict(zip((p, q), values(n), strict=True)) for n in range(first, first + 5)]
        kind = pa.struct([(p, one), (q, other)])
        nested, lists = pa.array(made, kind), pa.array([[each] for each in made], pa.list_(kind))
        return pa.table(
            {"id": range(first, first + 5), p: nested.field(0), q: nested.field(1), "s": nested, "l": lists}
        )

    source = catalog.create(tmp_path / "lake", schema)
    source.append(rows(0, "p", "q"))
    table = fuse.attach("iceberg://test/db.t", tmp_path / "table", "iceberg")
    for old, new in (("p", "r"), ("q", "p"), ("r", "q")):
        with source.update_schema() as update:
            for path in ((), ("s",), ("l",)):
                update.rename_column((*path, old), new)
    source.append(rows(5, "q", "p"))
    table.sync()

    read = fuse_spark.read(reads, str(tmp_path / "table"))
    assert "BatchScan" in read._jdf.queryExecution().executedPlan().toString()  # it is not left to Python
    found = read.collect()
    assert sorted(row.id for row in found) == list(range(10))
    for row in found:
        assert (row.q, row.p) == values(row.id)
        assert (row.q, row.p) == (row.s.q, row.s.p) == (row.l[0].q, row.l[0].p)
