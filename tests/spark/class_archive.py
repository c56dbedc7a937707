"""Writes the classes that Spark's JVM loads to an archive, from which the JVMs of tests take them parsed and verified:
5 s of CPU until the first query in place of 10. ``make`` runs it once for each environment.

A JVM passes over an archive of another Java, or of jars that changed since, and of another class path.
"""

import os
import sys
from pathlib import Path

OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:MetaspaceSize=256m -XX:NewRatio=1 -XX:ReservedCodeCacheSize=256m"
)
"""JVMs of tests live for a minute and mostly warm up: the plain compiler and collector halve their CPU time, and room
for classes and new objects saves a third of what collecting them takes. The plain compiler alone has 48 MB for what it
made, of which the longer suites need more: a tenth of their time was looking for code to drop, and making it anew."""

ARCHIVE = Path(sys.prefix) / "spark-classes.jsa"

# The launcher has another class path than Spark, and would say on its output that the archive is not for it.
QUIET = "-Xlog:disable -Xlog:all=error:stderr"

QUERIES = [
    "CREATE NAMESPACE fuse.a",
    "CREATE TABLE fuse.a.t (id BIGINT, s STRING, d DECIMAL(10, 2)) TBLPROPERTIES (block_rows = '20')",
    "CREATE INDEX i ON fuse.a.t USING bloom (s)",
    "INSERT INTO fuse.a.t SELECT id, string(id), id FROM range(100)",
    "SELECT s, count(*), sum(d) FROM fuse.a.t WHERE id > 7 GROUP BY s ORDER BY s LIMIT 3",
    "SELECT a.id FROM fuse.a.t a JOIN fuse.a.t b ON a.id = b.id WHERE b.s = '7'",
    "UPDATE fuse.a.t SET s = 'x' WHERE id % 9 = 1",
    "MERGE INTO fuse.a.t USING (SELECT id + 50 AS id FROM range(70)) n ON t.id = n.id"
    " WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (n.id)",
]


def jvm_options() -> str:
    """What JVMs of tests are started with (``JDK_JAVA_OPTIONS``)."""
    return f'{OPTIONS} "-XX:SharedArchiveFile={ARCHIVE}" {QUIET}' if ARCHIVE.exists() else OPTIONS


def write_archive(folder: Path) -> None:
    """Run a Spark that leaves an archive when it ends; ``folder`` is for its tables."""
    unfinished = ARCHIVE.with_suffix(".unfinished")
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["JDK_JAVA_OPTIONS"] = f'{OPTIONS} "-XX:ArchiveClassesAtExit={unfinished}" {QUIET}'
    from pyspark.sql import SparkSession

    from fuse_index import spark as fuse_spark

    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    fuse_spark.install(spark, warehouse=str(folder / "warehouse"))
    for query in QUERIES:
        spark.sql(query).collect()
    spark.range(9).write.format("fuse").mode("append").save(str(folder / "table"))
    spark.read.format("fuse").load(str(folder / "table")).collect()
    jvm = spark.sparkContext._gateway.proc
    spark.stop()
    jvm.stdin.close()  # which it takes for the end of Python
    jvm.wait()
    unfinished.replace(ARCHIVE)


if __name__ == "__main__":
    write_archive(Path(sys.argv[1]))
