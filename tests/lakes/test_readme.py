"""The README's second example, done as it stands there: a Delta table, one CALL, and a query as it was."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fuse_index import spark as fuse_spark
from tests.docs.pages import ROOT, blocks

SAID = "delta reads 1 of 8 files"


@pytest.mark.parametrize("deletion_vectors", [pytest.param("false", marks=pytest.mark.thorough), "true"])
def test_a_delta_table_that_somebody_has_is_read_as_the_readme_says(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], deletion_vectors: str
) -> None:
    [block] = [each for each in blocks(ROOT / "README.md") if "tests/lakes does as it says" in each.note]
    users = "concat('u', id * 7919 % 100003) AS user_id"
    told = f"TBLPROPERTIES ('delta.enableDeletionVectors' = '{deletion_vectors}')"
    spark.sql(
        f"CREATE TABLE events USING delta {told} AS SELECT /*+ REPARTITION(8, id) */ id, {users} FROM range(20000)"
    )
    try:
        if deletion_vectors == "true":
            spark.sql("DELETE FROM events WHERE id % 1000 = 412")  # rows of each file
        fuse_spark.install(spark, warehouse=tmp_path / "warehouse")
        names = {"spark": spark, "fuse_spark": fuse_spark}

        exec(compile(block.text, block.where, "exec"), names)

        assert capsys.readouterr().out.strip() == SAID
        assert SAID in block.text
        assert [row.id for row in names["found"].collect()] == [8411]
    finally:
        spark.sql("DROP TABLE events")
