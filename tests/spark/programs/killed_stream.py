"""A streaming query of which nothing is left once its first batch is committed, before Spark could note that down.

Arguments: the table that is followed, the table that is written, and the checkpoint.
"""

import os
import signal
import sys
from collections.abc import Sequence
from typing import Any, ClassVar

from pyspark.sql import SparkSession
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from fuse_index.spark.source import data_source
from fuse_index.spark.source.stream_writer import StreamWriter


def main(followed: str, written: str, checkpoint: str) -> None:
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
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
    rows = spark.readStream.format("fuse").option("max_blocks_per_trigger", "3").load(followed)
    query = rows.writeStream.format("fuse").option("checkpointLocation", checkpoint).start(written)
    query.awaitTermination(120)


if __name__ == "__main__":
    main(*sys.argv[1:])
