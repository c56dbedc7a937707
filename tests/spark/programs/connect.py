"""A Connect client: asks, writes, clusters and indexes through the server alone. Arguments: server, folder of the
tables.

Prints, as JSON, what came back of each step.
"""

import json
import sys
import warnings
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from fuse_index import spark as fuse_spark
from fuse_index.spark.placement import is_connect, run_where_reachable
from tests.spark.questions import BLOCKS, FEW, ROWS, numbers


def main(server: str, folder: str) -> None:
    spark = SparkSession.builder.remote(server).getOrCreate()
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    fuse_spark.install(spark)
    steps = (
        kind,
        questions,
        sql,
        functions,
        clustered,
        looked_into,
        overwritten,
        refused,
        indexed,
        streamed,
        changed,
        hot,
        keyed,
    )
    unpickled: list[str] = []
    sys.addaudithook(
        lambda event, arguments: unpickled.append(str(arguments)) if event == "pickle.find_class" else None
    )
    told = {step.__name__: step(spark, folder) for step in steps}
    print(json.dumps(told | {"unpickled": unpickled}))


def load(spark: SparkSession, url: str, **options: str) -> DataFrame:
    return spark.read.format("fuse").options(**options).load(url)


def rows(df: DataFrame) -> list[str]:
    return sorted(repr(tuple(row)) for row in df.collect())


def kind(spark: SparkSession, folder: str) -> bool:
    return is_connect(spark)


def questions(spark: SparkSession, folder: str) -> dict[str, Any]:
    """What the table answers, and what the same rows in memory answer without us."""
    with warnings.catch_warnings(record=True):  # that this is not the native scan
        table = fuse_spark.read(spark, f"{folder}/numbers")
    plain = spark.createDataFrame(pa.concat_tables([numbers(block) for block in range(BLOCKS)]))
    return {question: [rows(table.where(question)), rows(plain.where(question))] for question in FEW}


def sql(spark: SparkSession, folder: str) -> list[Any]:
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW numbers USING fuse OPTIONS (path '{folder}/numbers', where 'id < 300')"
    )
    query = "SELECT kind, count(*) n FROM numbers WHERE id >= 250 GROUP BY kind ORDER BY kind"
    return [list(row) for row in spark.sql(query).collect()]


def functions(spark: SparkSession, folder: str) -> list[list[int]]:
    """The same call in SQL, of columns, and in the text of an option."""
    from fuse_index.spark.functions import match

    found = load(spark, f"{folder}/numbers")
    found.createOrReplaceTempView("words")
    in_sql = spark.sql("SELECT id FROM words WHERE match(kind, 'k3') AND id < 30")
    of_columns = found.where(match("kind", "k3")).where("id < 30")
    in_text = load(spark, f"{folder}/numbers", where="match(kind, 'k3') AND id < 30")
    return [sorted(row.id for row in df.collect()) for df in (in_sql, of_columns, in_text)]


def clustered(spark: SparkSession, folder: str) -> list[int]:
    fuse_spark.write(
        spark.range(ROWS * BLOCKS).selectExpr("(id * 37) % 800 AS id", "concat('s', id) AS s"), f"{folder}/clustered"
    )
    return sorted(row.id for row in load(spark, f"{folder}/clustered", where="id < 5").collect())


def looked_into(spark: SparkSession, folder: str) -> list[Any]:
    fuse_spark.introspect(spark, f"{folder}/clustered", "c", ["blocks", "clustering"])
    return [
        list(spark.sql("SELECT sum(rows), max(level) FROM c_blocks").first()),
        spark.table("c_clustering").first().key,
    ]


def overwritten(spark: SparkSession, folder: str) -> list[int]:
    for start, mode in ((0, "append"), (10, "append"), (20, "overwrite"), (30, "append")):
        spark.range(start, start + 3).write.format("fuse").mode(mode).save(f"{folder}/overwritten")
    return sorted(row.id for row in load(spark, f"{folder}/overwritten").collect())


def refused(spark: SparkSession, folder: str) -> list[str]:
    told = []
    for wrong in ({"where": "nobody = 1"}, {"wher": "id = 1"}, {"at": "never"}):
        try:
            load(spark, f"{folder}/numbers", **wrong).collect()
        except Exception as refusal:
            told.append(str(refusal))
    return told


def indexed(spark: SparkSession, folder: str) -> Any:
    """The index is defined by the test; built by the server's tasks."""
    fuse_spark.build_index(spark, f"{folder}/numbers", "by_kind")

    def coverage() -> Any:
        from fuse_index import open_table

        return open_table(f"{folder}/numbers").inspect.indexes().to_pylist()

    return [row for row in run_where_reachable(spark, coverage) if row["name"] == "by_kind"]


def streamed(spark: SparkSession, folder: str) -> int:
    """Rows of a table that a stream copies."""
    followed = spark.readStream.format("fuse").load(f"{folder}/numbers")
    copying = (
        followed.writeStream.format("fuse")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
    )
    copying.start(f"{folder}/copied").awaitTermination(120)
    return load(spark, f"{folder}/copied").count()


def changed(spark: SparkSession, folder: str) -> list[Any]:
    """Rows deleted, updated and merged by tasks; what is left."""
    url = f"{folder}/changed"
    spark.range(0, 20, 1, 2).selectExpr("id", "concat('n', id) AS name").write.format("fuse").mode("append").save(url)
    fuse_spark.delete(spark, url, "id < 10")
    fuse_spark.update(spark, url, "id = 10", {"name": "'ten'", "id": lambda found: found["id"]})
    fuse_spark.merge(
        spark, url, spark.createDataFrame([(11, "eleven"), (30, "thirty")], "id BIGINT, name STRING"), ["id"]
    )
    fuse_spark.overwrite(spark, url, spark.createDataFrame([(19, "last")], "id BIGINT, name STRING"), "id = 19")
    fuse_spark.compact(spark, url)
    return [tuple(row) for row in load(spark, url).where("name NOT LIKE 'n%' OR id < 10").orderBy("id").collect()]


def hot(spark: SparkSession, folder: str) -> Any:
    """Rows of a table with a tail, written, read, followed and tiered; how many there are each time."""
    url, copied = f"{folder}/hot", f"{folder}/copied_hot"
    for start, count, option in ((100, 3, {}), (200, 20, {"hot": "true"}), (300, 2, {"hot": "false"})):
        spark.range(start, start + count).write.format("fuse").mode("append").options(**option).save(url)
    followed = spark.readStream.format("fuse").load(url).writeStream.format("fuse").option("hot", "true")
    followed = followed.option("checkpointLocation", f"{folder}/checkpoint_hot").trigger(availableNow=True)
    followed.start(copied).awaitTermination(120)

    def count() -> list[int]:
        found = [load(spark, url), load(spark, url, tail="false"), load(spark, url, where="id = 101")]
        return [frame.count() for frame in [*found, fuse_spark.read(spark, url, tail=False), load(spark, copied)]]

    def tails() -> list[int]:
        from fuse_index import open_table

        return [open_table(each).tail.rows for each in (url, copied)]

    with warnings.catch_warnings(record=True):  # that this is not the native scan
        before = count()
        waiting = run_where_reachable(spark, tails)
        fuse_spark.tier(spark, url)
        return [before, waiting, count(), run_where_reachable(spark, tails)]


def keyed(spark: SparkSession, folder: str) -> list[Any]:
    """Rows that were put into a table with a primary key, of each key the latest."""
    late = spark.createDataFrame([(1, 4, 7), (1, 5, 8), (30, 1, 1), (1, 6, 2)], "id BIGINT, n INT, at INT")
    fuse_spark.upsert(late.repartition(3), f"{folder}/keyed", order_by="at", application=("job", 1))
    return [tuple(row) for row in load(spark, f"{folder}/keyed").where("n <> 0").orderBy("id").collect()]


if __name__ == "__main__":
    main(*sys.argv[1:])
