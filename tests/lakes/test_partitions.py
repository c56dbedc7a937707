"""Delta and Iceberg tables that are partitioned by a column of each type."""

from pathlib import Path
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

from tests.effort import effort, everything
from tests.lakes.tables import SMALL_ROW_GROUPS, use_index
from tests.spark.foreign.partitions import VALUES, ZONES, fill, same_on_partitions
from tests.spark.foreign.ways import Ways

OFTEN = {"delta": ["STRING", "TIMESTAMP"], "iceberg": ["DATE", "DECIMAL(10,2)"]}
"""Types that each run of the tests tries; all are tried by EFFORT."""
CASES = [
    pytest.param(format_, kind, marks=[] if kind in often else [pytest.mark.thorough])
    for format_, often in OFTEN.items()
    for kind in VALUES
]


@pytest.mark.parametrize(("format_", "kind"), CASES)
def test_a_partition_column(ways: Ways, spark: SparkSession, home: Path, format_: str, kind: str) -> None:
    as_they_come = {"write.distribution-mode": "none", "write.spark.fanout.enabled": "true"}
    properties = {"delta.columnMapping.mode": "name"} if format_ == "delta" else SMALL_ROW_GROUPS | as_they_come
    told = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    name = f"delta.`{home}/delta-{uuid4().hex[:8]}`" if format_ == "delta" else f"ice.db.t{uuid4().hex[:8]}"
    columns = f"id BIGINT, a STRING, p {kind}"
    spark.sql(f"CREATE TABLE {name} ({columns}) USING {format_} PARTITIONED BY (p) TBLPROPERTIES ({told})")
    fill(spark, name, kind)
    use_index(spark, home, name, "id", "a")

    zones = ZONES if everything() or kind in ("DATE", "TIMESTAMP") else ZONES[:1]
    same_on_partitions(ways, name, kind, effort(10), zones)
