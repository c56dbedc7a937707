"""A Connect client that lacks our package: what SQL and DataFrames by name give it.

Arguments: the server, a step, and what that needs. Prints, as JSON, what came of the step. Without arguments each line
that comes is such a list, and each has a session of its own.
"""

import importlib.util
import itertools
import json
import shutil
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

CATALOG = Path(__file__).parents[1] / "catalog"
PATIENCE = 15.0
"""Seconds that are waited for the end of a statement that was interrupted."""


SESSIONS: list[SparkSession] = []
"""All of this client. PySpark 4.0 shuts down the threads that let go of answers when a session is collected as garbage,
and these are of all sessions: an answer that another reads at that moment is lost."""


def new_session() -> SparkSession:
    SESSIONS.append(SparkSession.builder.remote(sys.argv[1]).create())
    return SESSIONS[-1]


def rows(df: DataFrame) -> list[list[Any]]:
    return [list(row) for row in df.collect()]


def statements(spark: SparkSession, folder: str) -> dict[str, Any]:
    told: dict[str, Any] = {"has our package": importlib.util.find_spec("fuse_index") is not None}
    for text in (
        "CREATE NAMESPACE lake.served",
        "CREATE TABLE lake.served.t (id BIGINT, name STRING) TBLPROPERTIES ('block_rows' = '100')",
        "INSERT INTO lake.served.t SELECT id, concat('n', id) FROM range(0, 1000, 1, 1)",
        "CREATE INDEX by_name ON lake.served.t USING bloom (name)",
        "DELETE FROM lake.served.t WHERE id < 10",
        "MERGE INTO lake.served.t t USING (SELECT 11 AS id, 'eleven' AS name) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET name = s.name",
    ):
        spark.sql(text).collect()
    lookup = spark.sql("SELECT id FROM lake.served.t WHERE name = 'n471'")
    told["lookup"] = rows(lookup)
    told["plan"] = lookup._explain_string()
    told["explained"] = rows(
        spark.sql("CALL lake.system.explain('SELECT id FROM lake.served.t WHERE name = \"n471\"')")
    )
    told["by name"] = [spark.read.table("lake.served.t").count(), rows(spark.table("lake.served.t").where("id = 11"))]
    spark.range(2000, 2002).selectExpr("id", "'new' AS name").writeTo("lake.served.t").append()
    told["written"] = spark.table("lake.served.t").where("name = 'new'").count()
    told["match"] = rows(spark.sql("SELECT id FROM lake.served.t WHERE match(name, 'n20')"))
    spark.sql("USE lake")
    told["catalog"] = [spark.catalog.currentCatalog(), [each.name for each in spark.catalog.listDatabases()]]
    stream = spark.readStream.table("lake.served.t").writeStream.option("checkpointLocation", f"{folder}/checkpoint")
    stream.trigger(availableNow=True).toTable("lake.served.copied").awaitTermination(120)
    told["streamed"] = spark.table("lake.served.copied").count()
    return told


def use_by_api(spark: SparkSession) -> list[Any]:
    spark.catalog.setCurrentCatalog("lake")
    return [spark.catalog.currentCatalog(), spark.table("served.t").count()]


def first_calls(spark: SparkSession, place: str) -> dict[str, Any]:
    """What a session is asked first, each time in a new one: no text of SQL may come before."""
    told: dict[str, Any] = {}
    sessions = []
    calls: dict[str, Callable[[SparkSession], Any]] = {
        "by place": lambda each: each.read.format("fuse").load(place).count(),
        "by name": lambda each: each.table("lake.served.t").count(),
        "exists": lambda each: each.catalog.tableExists("lake.served.t"),
        "current catalogue": use_by_api,
        "habit": lambda each: each.sql("DESCRIBE HISTORY lake.served.t LIMIT 2").count(),
    }
    for name, call in calls.items():
        sessions.append(new_session())
        told[name] = call(sessions[-1])
    if hasattr(spark, "cloneSession"):
        spark.range(3).createOrReplaceTempView("three")
        sessions.append(spark.cloneSession())
        told["clone"] = [sessions[-1].table(name).count() for name in ("three", "lake.served.t")]
    for each in sessions:
        each.stop()
    return told


def churn(spark: SparkSession, count: str) -> int:
    """Sessions that begin, ask and end."""
    for _ in range(int(count)):
        session = new_session()
        session.sql("SHOW NAMESPACES IN lake").collect()
        session.stop()
    return int(count)


def collect_garbage(spark: SparkSession, _: str) -> None:
    """Have the server's JVM collect what nobody holds."""
    spark.sql("SELECT reflect('java.lang.System', 'gc')").collect()


def refused(spark: SparkSession, statement: str) -> str:
    try:
        spark.sql(statement).collect()
    except Exception as refusal:
        return str(refusal)
    return ""


def command(spark: SparkSession, statement: str) -> str:
    """A statement in one call of the server: to collect what it gave would be another."""
    spark.sql(statement)
    return "done"


def insert_forever(spark: SparkSession, first: str) -> None:
    """Prints the number of each row once the server has said that it is in."""
    for number in itertools.count(int(first)):
        spark.sql(f"INSERT INTO lake.served.k VALUES ({number}, 'n{number}')")
        print(number, flush=True)


def cancelled(spark: SparkSession, way: str) -> list[Any]:
    """Statements that were interrupted, by their tag or with all others, and what the session does then.

    Each would take all slots for longer than this test may: the first is interrupted while it runs, others as soon as
    they begin.
    """
    slow = "INSERT INTO lake.served.slow SELECT id, java_method('java.lang.Thread', 'sleep', 20000L) FROM range(40)"
    told: list[Any] = []

    def run() -> None:
        spark.addTag("slow")  # tags are of threads
        told.append(refused(spark, slow))

    spark.sql("CREATE TABLE IF NOT EXISTS lake.served.slow (id BIGINT, text STRING)").collect()
    stopped: list[str] = []
    for seconds in (2.0, 0.0, 0.01, 0.03, 0.1, 0.3):
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(seconds)
        # Of one that is interrupted before it began Spark's server tells nothing for long (SPARK-53339).
        deadline = time.monotonic() + PATIENCE
        while thread.is_alive() and time.monotonic() < deadline:  # what is interrupted first may be the one before
            stopped += spark.interruptTag("slow") if way == "tag" else spark.interruptAll()
            thread.join(0.5)
    rows_of_tasks = spark.range(0, 10, 1, 2).selectExpr("sum(id)").collect()[0][0]
    return [
        len(stopped) >= len(told) > 0,
        all("CANCELED" in each.upper() or "cancelled" in each for each in told),
        rows_of_tasks,
        spark.table("lake.served.slow").count(),
    ]


def interrupted(spark: SparkSession, statement: str, seconds: float) -> str:
    """How a statement ended that was interrupted after so many seconds; nothing where it was done before."""
    told: list[str] = []

    def run() -> None:
        spark.addTag("cut")
        told.append(refused(spark, statement))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    spark.interruptTag("cut")
    thread.join(PATIENCE)  # as above
    return told[0] if told else ""


def told_of_in_time(spark: SparkSession, _: str) -> list[str]:
    """What a table had become after its statement was told as cancelled, where that was not so when it was told."""
    table, late = "lake.served.cut", list[str]()
    statements = {
        "DELETE": f"DELETE FROM {table} WHERE id < 500",
        "CREATE INDEX": f"CREATE INDEX by_text ON {table} USING bloom (text)",
        "CALL": "CALL lake.system.compact('served.cut')",
    }
    state = f"SELECT (SELECT count(*) FROM {table}), array_agg(name) FROM {table}.indexes"
    for name, text in statements.items():
        spark.sql(f"CREATE OR REPLACE TABLE {table} (id BIGINT, text STRING)")
        for part in range(4):
            spark.sql(f"INSERT INTO {table} SELECT id, concat('n', id) FROM range({part * 500}, {part * 500 + 500})")
        for seconds in (0.05, 0.15):
            told = interrupted(spark, text, seconds)
            first = rows(spark.sql(state))
            time.sleep(0.3)
            if told and rows(spark.sql(state)) != first:
                late.append(f"{name}, cancelled after {seconds} s: {first} became {rows(spark.sql(state))}")
    return late


def own_code(spark: SparkSession, folder: str) -> dict[str, Any]:
    """UDFs and files of a client's own, beside what the server has."""
    from pyspark.sql.functions import udf

    module = Path(folder) / "clients_own.py"
    module.write_text("def shout(text):\n    return text.upper() + '!'\n")
    spark.addArtifact(str(module), pyfile=True)

    @udf("string")
    def shout(text: str) -> str:
        import clients_own

        return str(clients_own.shout(text))

    spark.udf.register("shout", shout)
    found = spark.sql("SELECT shout(name) FROM lake.served.t WHERE name = 'n471'")
    spark.sql("CREATE TEMPORARY FUNCTION twice(n BIGINT) RETURNS BIGINT RETURN n * 2").collect()
    spark.sql(
        "CREATE TABLE IF NOT EXISTS lake.served.own AS SELECT id, name FROM lake.served.t WHERE id < 20"
    ).collect()
    spark.sql("UPDATE lake.served.own SET name = shout(name) WHERE twice(id) = 24").collect()
    return {"read": rows(found), "updated": rows(spark.sql("SELECT name FROM lake.served.own WHERE id = 12"))}


def late(spark: SparkSession, _: str) -> list[Any]:
    """A session that is not made ready in time, and then is."""
    spark.conf.set("spark.fuse.index.install.deadline", "0ms")
    told = refused(spark, "SHOW NAMESPACES IN lake")
    spark.conf.set("spark.fuse.index.install.deadline", "60s")
    return [told, rows(spark.sql("SHOW NAMESPACES IN lake"))]


def files(_: SparkSession, argument: str) -> list[str]:
    """What differs from files of statements, each followed in a session of its own and in an empty warehouse."""
    module = importlib.util.spec_from_file_location("slt", CATALOG / "slt.py")
    assert module is not None
    assert module.loader is not None
    slt = importlib.util.module_from_spec(module)
    sys.modules["slt"] = slt  # dataclasses look their module up
    module.loader.exec_module(slt)
    asked = json.loads(argument)
    folder, differences = Path(asked["folder"]), []
    kept = set(folder.iterdir())
    for name in asked["names"]:
        shutil.copytree(folder / "made" / "filled", folder / "filled")
        spark = new_session()
        differences += slt.follow(spark, CATALOG / f"{name}.slt", folder)
        for (table,) in spark.sql("SHOW TABLES IN fuse").select("tableName").collect():
            spark.sql(f"DROP TABLE fuse.`{table}`")
        for (namespace,) in spark.sql("SHOW NAMESPACES IN fuse").collect():
            spark.sql(f"DROP NAMESPACE fuse.`{namespace}` CASCADE")
        spark.stop()
        for made in set(folder.iterdir()) - kept:
            shutil.rmtree(made)
    return differences


def do(step: str, argument: str) -> None:
    client = new_session()
    print(json.dumps(globals()[step](client, argument)), flush=True)  # stop asks a server that has ended for minutes
    client.stop()


if __name__ == "__main__":
    if sys.argv[1:]:
        do(*sys.argv[2:])
    else:
        for line in sys.stdin:
            server, *asked = json.loads(line)
            sys.argv[1:] = [server]
            do(*asked)
