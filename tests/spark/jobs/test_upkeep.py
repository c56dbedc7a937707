"""Upkeep that is due, done by executors: the same as in one process, and on record."""

from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_index.spark.jobs.upkeep import spark_steps
from fuse_index.table.upkeep.maintainer import STEPS, KeptTable, Maintainer, RunLimits


def test_executors_do_what_is_due(spark: SparkSession, tmp_path: Path) -> None:
    properties = {"block_rows": 10, "maintain_tail_age": "0s", "maintain_target_depth": 1}
    table = fuse.create_table(str(tmp_path / "t"), "n BIGINT", cluster_by=["n"], properties=properties)
    table.create_index("by_n", "bloom", ["n"])
    for number in range(3):
        table.append(pa.table({"n": range(number, 30, 3)}))
    table.append([{"n": 100}], hot=True)
    kept = KeptTable("t", lambda: fuse.open_table(str(tmp_path / "t")), asked=True)

    done = Maintainer([kept], RunLimits(), steps={**STEPS, **spark_steps(spark)}).run()
    assert {each.outcome for each in done} == {"done"}
    assert {"tier", "recluster"} <= {each.task for each in done}
    assert table.refresh().inspect.due().num_rows == 0
    assert table.to_arrow().sort_by("n").column("n").to_pylist() == [*range(30), 100]
    assert {"tier", "recluster"} <= set(table.inspect.maintenance().column("task").to_pylist())
