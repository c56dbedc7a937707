"""The first rows of an order, of Delta and Iceberg tables: those of the rows that are left where some were deleted."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.effort import some_of
from tests.lakes.tables import create_delta, create_iceberg, use_index
from tests.spark.foreign.sources import FILES, ROWS
from tests.spark.foreign.ways import Ways

LAST = FILES * ROWS - 1


@pytest.fixture(scope="module", params=["delta", "iceberg"])
def source(request: pytest.FixtureRequest, spark: SparkSession, home: Path) -> str:
    """A table of which the last file has lost rows, and says by vectors or positions which."""
    if request.param == "delta":
        name = create_delta(spark, home, **{"delta.enableDeletionVectors": "true"})
    else:
        name = create_iceberg(spark, **{"format-version": "2", "write.delete.mode": "merge-on-read"})
    use_index(spark, home, name)
    return name


def test_rows_that_were_deleted_are_none_of_the_first(ways: Ways, source: str) -> None:
    last = f"SELECT id, a FROM {source} ORDER BY id DESC LIMIT 5"
    assert ways.left_out(last) == [FILES - 1]
    assert ways.left_out(f"SELECT id FROM {source} ORDER BY id LIMIT 5") == [FILES - 1]

    ways.spark.sql(f"DELETE FROM {source} WHERE id > {LAST - 60} AND id % 10 <> 3")

    assert [row.id for row in ways.spark.sql(last).collect()] == [LAST - 6 - 10 * each for each in range(5)]
    assert ways.left_out(last) == [FILES - 2]  # the file before it is the last of which all rows count
    assert ways.left_out(f"SELECT id FROM {source} ORDER BY id LIMIT 5") == [FILES - 1]
    for order in some_of(["a", "n DESC NULLS LAST", "b NULLS FIRST", "b DESC NULLS FIRST"]):
        ways.same(f"SELECT id FROM {source} ORDER BY {order}, id LIMIT 7")
    ways.spark.sql(f"INSERT INTO {source} VALUES ({LAST + 100}, 'x', 'y', 1)")
    (use,) = ways.same(last)
    assert use.unknown == 1
    assert [row.id for row in ways.spark.sql(last).collect()][:2] == [LAST + 100, LAST - 6]
    ways.same(f"SELECT id FROM {source} VERSION AS OF 1 ORDER BY id DESC LIMIT 5" if "delta" in source else last)
