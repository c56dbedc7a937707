"""A driver of which nothing is left once the first batch of a query is committed, before Spark could note that down.

Beside the query a write and a statement are on their way, and never get to their commits. Arguments: a folder, in
which are tables ``added`` and ``updated``, and ``stream/followed``.
"""

import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from fuse_index import spark as fuse_spark
from fuse_index.spark.placement import active_session
from fuse_index.spark.source import data_source
from fuse_index.spark.source.stream_writer import StreamWriter


def add_rows(spark: SparkSession, folder: Path) -> None:
    def dawdle(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch
            Path(folder, "adds").touch()
            time.sleep(600)

    rows = spark.range(10, 30, 1, 2).mapInArrow(dawdle, "id long")
    with active_session(spark):  # in this thread
        rows.write.format("fuse").mode("append").save(f"{folder}/added")


def update_rows(spark: SparkSession, folder: Path) -> None:
    def dawdle(row: int) -> bool:
        Path(folder, "updates").touch()
        if row == 19:
            time.sleep(600)
        return True

    spark.udf.register("dawdle", dawdle, "boolean")
    spark.sql(f"UPDATE fuse.`{folder}/updated` SET kind = 'b' WHERE dawdle(id)")


def commit_and_die(spark: SparkSession, folder: Path) -> None:
    registered = data_source.register_source(spark)
    jvm: Any = spark.sparkContext._jvm

    class Deadly(StreamWriter):
        victims: ClassVar[Sequence[int]] = (jvm.java.lang.ProcessHandle.current().pid(), os.getpid())

        def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
            super().commit(messages, batchId)
            for victim in self.victims:
                os.kill(victim, signal.SIGKILL)

    class DeadlySource(registered):  # type: ignore[misc, valid-type]
        def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: N802
            made = super().streamWriter(schema, overwrite)
            return Deadly(made.target, made.host, made.complete)

    spark.dataSource.register(DeadlySource)
    rows = spark.readStream.format("fuse").option("max_blocks_per_trigger", "3").load(f"{folder}/stream/followed")
    query = rows.writeStream.format("fuse").option("checkpointLocation", f"{folder}/stream/checkpoint")
    query.start(f"{folder}/stream/written").awaitTermination(120)


def main(folder: Path) -> None:
    spark = SparkSession.builder.master("local[6]").config("spark.ui.enabled", "false").getOrCreate()
    fuse_spark.install(spark)
    others = [Thread(target=change, args=(spark, folder), daemon=True) for change in (add_rows, update_rows)]
    for other in others:
        other.start()
    while not (folder / "adds").exists() or not (folder / "updates").exists():
        if not all(other.is_alive() for other in others):
            sys.exit("a change ended that was to be on its way")
        time.sleep(0.1)
    commit_and_die(spark, folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
