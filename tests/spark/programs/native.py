"""Native reads on a standalone cluster, whose executors have never heard of our Java classes.

Arguments: master, folder. Prints, as JSON, per way of executing, the ids that each question finds natively and in
memory; and of a partitioned table the groups of a query that shuffles nothing, with its plan.
"""

import json
import sys

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.functions import expr

from fuse_index import create_table
from fuse_index import spark as fuse_spark
from tests.effort import some_of
from tests.spark.questions import BLOCKS, QUESTIONS, ROWS, numbers

WAYS = {
    "as it is": {},
    "no generated code": {"spark.sql.codegen.wholeStage": "false"},
    "row by row": {"spark.sql.parquet.enableVectorizedReader": "false"},
}


def main(master: str, folder: str) -> None:
    spark = (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.executor.memory", "512m")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    table = create_table(folder, numbers(0).schema, properties={"block_rows": ROWS})
    for block in range(BLOCKS):
        table.append(numbers(block))
    native = fuse_spark.read(spark, folder)
    plain = spark.createDataFrame(pa.concat_tables([numbers(block) for block in range(BLOCKS)]))
    answers = plain.select("id", *map(expr, QUESTIONS)).collect()
    expected = {where: sorted(row[0] for row in answers if row[n + 1]) for n, where in enumerate(QUESTIONS)}
    told = {}
    for way, settings in WAYS.items():
        for key, value in settings.items():
            spark.conf.set(key, value)
        told[way] = {
            where: [sorted(row.id for row in native.filter(where).collect()), expected[where]]
            for where in (some_of(QUESTIONS) if settings else QUESTIONS)
        }
        for key in settings:
            spark.conf.unset(key)
    print(json.dumps({"ways": told, "partitioned": _group(spark, f"{folder}-partitioned")}))
    spark.stop()


def _group(spark: SparkSession, folder: str) -> tuple[list[list[str | int]], str]:
    spark.conf.set("spark.sql.sources.v2.bucketing.enabled", "true")
    spark.conf.set("spark.sql.shuffle.partitions", "8")
    rows = pa.concat_tables([numbers(block) for block in range(BLOCKS)])
    create_table(folder, rows.schema, partition_by=["kind"]).append(rows)
    groups = fuse_spark.read(spark, folder).groupBy("kind", "half").count().groupBy("kind").count()
    found = [[row["kind"], row["count"]] for row in groups.collect()]
    return sorted(found), str(groups._jdf.queryExecution().executedPlan().toString())


if __name__ == "__main__":
    main(*sys.argv[1:])
