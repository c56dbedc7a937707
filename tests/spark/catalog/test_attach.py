"""Tables over files of others by statements: attached, synced and converted."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import fuse_index as fuse

pytestmark = pytest.mark.any_spark


def test_procedures_attach_sync_and_convert(sql_spark: SparkSession, tmp_path: Path) -> None:
    lake, place = str(tmp_path / "lake"), str(tmp_path / "table")
    sql_spark.range(100).selectExpr("id", "id % 7 AS k").write.parquet(lake)
    (made,) = sql_spark.sql(f"CALL fuse.system.attach('{lake}', '{place}')").collect()
    sql_spark.range(100, 120).selectExpr("id", "id % 7 AS k").write.mode("append").parquet(lake)
    (synced,) = sql_spark.sql(f"CALL fuse.system.sync('{place}')").collect()

    assert made.location == place
    assert synced.rows == 120
    assert synced.removed_files == 0
    assert sql_spark.sql(f"SELECT count(*) FROM fuse.`{place}` WHERE k = 3").head()[0] == 17
    (converted,) = sql_spark.sql(f"CALL fuse.system.convert('{place}')").collect()
    assert converted.rows == 120
    sql_spark.sql(f"DELETE FROM fuse.`{place}` WHERE id >= 100")
    assert fuse.open_table(place).count() == 100
