"""A driver that never gets to its commit. Arguments: the table, and a file that it makes once rows are on their way."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from fuse_index import spark as fuse_spark


def main(url: str, begun: str) -> None:
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    fuse_spark.install(spark)

    def dawdle(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch
            Path(begun).touch()
            time.sleep(600)

    spark.range(10, 30, 1, 2).mapInArrow(dawdle, "id long").write.format("fuse").mode("append").save(url)


if __name__ == "__main__":
    main(*sys.argv[1:])
