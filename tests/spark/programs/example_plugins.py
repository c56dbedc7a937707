"""Indexes of example plugins, in Spark SQL, where they are installed. Argument: a folder for the warehouse.

Prints, as JSON, by condition: how many rows match, how many blocks and rows are read, and how many rows there are;
and by order: the first rows, how many blocks are read, and what the index says.
"""

import json
import sys

import shapely
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
SHAPES = [
    "st_intersects(shape, 'POLYGON ((3 12, 7 12, 7 14, 3 14, 3 12))')",
    "st_intersects(shape, 'POINT (77 7)') OR id = 5",
    "NOT st_intersects(shape, 'POINT (3 12)')",
]
NEAR = "l2_distance(v, array(50.2D, 31.1D))"
NEARBY = [f"{NEAR} < 1.5", f"NOT ({NEAR} >= 1.5) AND id > 3150", f"{NEAR} > 60 OR v IS NULL"]
NEARBY += [f"58 < {NEAR} AND v IS NOT NULL", f"{NEAR} IN (-1, 1000)"]
ORDERS = [
    f"SELECT id FROM fuse.logs.docs ORDER BY {NEAR} NULLS LAST LIMIT 3",
    f"SELECT id, {NEAR} AS d FROM fuse.logs.docs WHERE v IS NOT NULL AND id <> 3150 ORDER BY d LIMIT 2",
    f"SELECT id FROM fuse.logs.docs ORDER BY {NEAR} LIMIT 2",
    f"SELECT id FROM fuse.logs.docs ORDER BY {NEAR} DESC LIMIT 1",
    f"SELECT id FROM fuse.logs.docs ORDER BY {NEAR} NULLS LAST, id LIMIT 1",
    "SELECT id FROM fuse.logs.docs ORDER BY l2_distance(v, array(50.2, 31.1), 0.9) NULLS LAST LIMIT 3",
    f"SELECT id FROM fuse.logs.docs ORDER BY -{NEAR} NULLS LAST LIMIT 1",
    f"SELECT id FROM fuse.logs.docs WHERE {NEAR} > 1 AND id < 3200 ORDER BY {NEAR} NULLS LAST LIMIT 1",
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
    spark.sql("CREATE TABLE fuse.logs.docs (id BIGINT, v ARRAY<FLOAT>) TBLPROPERTIES (block_rows = '1000')")
    spark.sql("CREATE INDEX by_meaning ON fuse.logs.docs USING vector (v) OPTIONS (dimensions = '2')")
    spark.sql("""
        INSERT INTO fuse.logs.docs
        SELECT id, if(id = 5, NULL, array(CAST(id % 100 AS FLOAT), CAST(id div 100 AS FLOAT))) FROM range(0, 4000, 1, 1)
    """)
    spark.sql("CREATE TABLE fuse.logs.shops (id BIGINT, shape BINARY) TBLPROPERTIES (block_rows = '1000')")
    spark.sql("CREATE INDEX by_place ON fuse.logs.shops USING spatial (shape)")
    points = shapely.to_wkb(shapely.points([(number % 100, number // 100) for number in range(4000)]))
    shops = [(number, None if number == 777 else bytearray(each)) for number, each in enumerate(points)]
    spark.createDataFrame(shops, "id BIGINT, shape BINARY").coalesce(1).writeTo("fuse.logs.shops").append()
    told = {}
    tables = dict.fromkeys(CONDITIONS, "lines") | dict.fromkeys(SHAPES, "shops") | dict.fromkeys(NEARBY, "docs")
    for where, table in tables.items():
        found = spark.sql(f"SELECT id FROM fuse.logs.{table} WHERE {where}")
        explained = fuse_spark.explain(found).to_dict()
        told[where.replace(NEAR, "near")] = [
            found.count(),
            explained["blocks"]["kept"],
            explained["rows"]["kept"],
            explained["rows"]["total"],
        ]
    for order in ORDERS:
        found = spark.sql(order)
        explained = fuse_spark.explain(found).to_dict()
        said = [vote["detail"] for vote in explained["predicates"] if vote["index"] == "by_meaning"]
        told[order.replace(NEAR, "near")] = [[row.id for row in found.collect()], explained["blocks"]["kept"], *said]
    print(json.dumps(told))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
