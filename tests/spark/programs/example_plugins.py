"""Indexes of example plugins, in Spark SQL, where they are installed. Argument: a folder for the warehouse.

Prints, as JSON, by condition: how many rows match, how many blocks and rows are read, and how many rows there are.
"""

import json
import sys

from pyspark.sql import SparkSession

from fuse_index import spark as fuse_spark

CONDITIONS = [
    "line LIKE '%timeout%'",
    "contains(line, 'no such thing')",
    "line RLIKE 'by a time(out|less)'",
    "line RLIKE 'ended by .* time'",
    "NOT (line RLIKE 'ended')",
    "line ILIKE '%A TIMEOUT%'",
    "substring(line, 1, 3) = 'req' AND line RLIKE 'no such'",
    "city = 'Lima'",
    "city NOT IN ('Lima', 'Oslo')",
]


def main(folder: str) -> None:
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    fuse_spark.install(spark, warehouse=folder)
    spark.sql("CREATE NAMESPACE fuse.logs")
    spark.sql("CREATE TABLE fuse.logs.lines (id BIGINT, city STRING, line STRING) TBLPROPERTIES (block_rows = '1000')")
    spark.sql("CREATE INDEX by_substring ON fuse.logs.lines USING trigram (line)")
    spark.sql("CREATE INDEX by_city ON fuse.logs.lines USING roaring (city)")
    spark.sql("""
        INSERT INTO fuse.logs.lines
        SELECT id, element_at(array('Lima', 'Bonn', 'Oslo', 'Cork'), cast(id % 4 + 1 AS INT)),
               if(id = 5, NULL, concat('request ', id, if(id = 2500, ' ended by a timeout', ' served')))
        FROM range(0, 4000, 1, 1)
    """)
    told = {}
    for where in CONDITIONS:
        found = spark.sql(f"SELECT id FROM fuse.logs.lines WHERE {where}")
        explained = fuse_spark.explain(found).to_dict()
        told[where] = [
            found.count(),
            explained["blocks"]["kept"],
            explained["rows"]["kept"],
            explained["rows"]["total"],
        ]
    print(json.dumps(told))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
