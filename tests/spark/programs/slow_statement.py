"""A driver that never gets to its commit. Arguments: the table, and a file that it makes once rows are read."""

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

from fuse_index import spark as fuse_spark


def main(url: str, begun: str) -> None:
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    fuse_spark.install(spark)

    def dawdle(row: int) -> bool:
        Path(begun).touch()
        if row == 19:
            time.sleep(600)
        return True

    spark.udf.register("dawdle", dawdle, "boolean")
    spark.sql(f"UPDATE fuse.`{url}` SET kind = 'b' WHERE dawdle(id)")


if __name__ == "__main__":
    main(*sys.argv[1:])
