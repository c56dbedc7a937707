"""A driver on a standalone cluster: executors are other processes on (as if) other machines.

Arguments: master, folder of the tables. Prints, as JSON, what came back of each step.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from fuse_index import attach, open_table
from fuse_index import spark as fuse_spark
from tests.spark.questions import BLOCKS, FEW, numbers


def main(master: str, folder: str) -> None:
    spark = (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.executor.memory", "512m")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.speculation", "true")
        .config("spark.speculation.interval", "100ms")
        .config("spark.speculation.multiplier", "1.2")
        .config("spark.speculation.quantile", "0.5")
        .config("spark.speculation.minTaskRuntime", "500ms")
        .config("spark.sql.python.filterPushdown.enabled", "true")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    fuse_spark.install(spark)
    steps = (processes, written, questions, indexed, voted, retried, speculated, failed)
    print(json.dumps({step.__name__: step(spark, folder) for step in steps}))
    spark.stop()


def load(spark: SparkSession, url: str, **options: str) -> DataFrame:
    return spark.read.format("fuse").options(**options).load(url)


def ids(spark: SparkSession, url: str) -> list[int]:
    return sorted(row.id for row in load(spark, url).collect())


def processes(spark: SparkSession, folder: str) -> dict[str, Any]:
    """Who works: executors' processes, and this one."""

    def who(_: int) -> tuple[str, int]:
        return os.environ.get("SPARK_EXECUTOR_DIRS", ""), os.getppid()

    workers = spark.sparkContext.parallelize(range(16), 16).map(who).collect()
    return {
        "executors": len({place for place, _ in workers}),
        "driver_is_one": os.getpid() in {parent for _, parent in workers},
    }


def written(spark: SparkSession, folder: str) -> list[int]:
    fuse_spark.write(
        spark.createDataFrame(pa.concat_tables([numbers(block) for block in range(BLOCKS)])), f"{folder}/numbers"
    )
    return open_table(f"{folder}/numbers").inspect.blocks().column("rows").to_pylist()


def questions(spark: SparkSession, folder: str) -> dict[str, Any]:
    """What the table answers, through the source and natively, and what the same rows in memory answer without us."""
    frames = [
        load(spark, f"{folder}/numbers"),
        fuse_spark.read(spark, f"{folder}/numbers"),
        spark.createDataFrame(pa.concat_tables([numbers(block) for block in range(BLOCKS)])),
    ]
    return {
        question: [sorted(repr(tuple(row)) for row in df.where(question).collect()) for df in frames]
        for question in FEW
    }


def indexed(spark: SparkSession, folder: str) -> Any:
    table = open_table(f"{folder}/numbers")
    table.create_index("by_kind", "bloom", ["kind"], build=False)
    fuse_spark.build_index(spark, f"{folder}/numbers", "by_kind")
    (index,) = [
        row for row in open_table(f"{folder}/numbers").inspect.indexes().to_pylist() if row["name"] == "by_kind"
    ]
    asked = fuse_spark.read(spark, f"{folder}/numbers").where("kind = 'nobody'")
    return {"rows": asked.count(), "blocks": index["blocks"], "indexed": index["blocks_indexed"], "kept": kept(asked)}


def voted(spark: SparkSession, folder: str) -> dict[str, Any]:
    """A folder that Spark's own scan reads, over which there is a node of ours that executors do not know."""
    place = f"{folder}/lake"
    spark.range(400).selectExpr("id", "concat('k', id) k").repartitionByRange(4, "id").write.parquet(place)
    attach(place, f"{folder}/votes").create_index("by_k", "bloom", ["k"])
    fuse_spark.use(spark, f"{folder}/votes")
    asked = spark.read.parquet(place).where("k = 'k7'")
    found = [row.id for row in asked.collect()]
    return {"ids": found, "left_out": fuse_spark.explain(asked).to_dict()["source"]["left_out"]}


def kept(df: DataFrame) -> int:
    return int(fuse_spark.explain(df).to_dict()["blocks"]["kept"])


def retried(spark: SparkSession, folder: str) -> list[int]:
    """One task fails once, after all its rows."""

    def fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        context = TaskContext.get()
        if context.partitionId() == 1 and context.attemptNumber() == 0:
            raise ValueError("a broken task")

    spark.range(0, 1000, 1, 2).mapInArrow(fail, "id long").write.format("fuse").mode("append").save(f"{folder}/retried")
    return ids(spark, f"{folder}/retried")


def speculated(spark: SparkSession, folder: str) -> dict[str, Any]:
    """One task's first attempt is slow, so that a second one overtakes it; each leaves a note that it ran."""
    notes = Path(folder) / "notes"
    notes.mkdir()

    def dawdle(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        (notes / f"{context.partitionId()}-{context.attemptNumber()}").touch()
        yield from batches
        if context.partitionId() == 1 and context.attemptNumber() == 0:
            time.sleep(20)

    spark.range(0, 1000, 1, 4).mapInArrow(dawdle, "id long").write.format("fuse").mode("append").save(
        f"{folder}/speculated"
    )
    return {"attempts": sorted(note.name for note in notes.iterdir()), "ids": ids(spark, f"{folder}/speculated")}


def failed(spark: SparkSession, folder: str) -> dict[str, Any]:
    """One task fails as often as it is tried."""

    def fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        if TaskContext.get().partitionId() == 1:
            raise ValueError("a broken task")

    before = open_table(f"{folder}/numbers").snapshot.id
    try:
        df = spark.range(0, 1000, 1, 2).mapInArrow(fail, "id long").selectExpr("id", "'x' kind", "1.5D half")
        df.write.format("fuse").mode("overwrite").save(f"{folder}/numbers")
    except Exception as refusal:
        told = str(refusal)
    return {
        "told": told,
        "unchanged": open_table(f"{folder}/numbers").snapshot.id == before,
        "rows": len(ids(spark, f"{folder}/numbers")),
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
