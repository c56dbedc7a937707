"""``fuse-index serve``: one process, and clients of Spark Connect and JDBC that lack our package."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fuse_index as fuse
from tests.effort import everything
from tests.spark import servers
from tests.spark.catalog import slt
from tests.spark.server.served import SLEEP, TOKEN, Served, start

FILES = sorted(path.stem for path in (Path(slt.__file__).parent).glob("*.slt"))
FEW_FILES = ["hot", "indexes", "namespaces"]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    yield from start(tmp_path_factory.mktemp("served"), "--jdbc", "{jdbc}")


@pytest.fixture(scope="module")
def statements(served: Served) -> dict[str, Any]:
    told: dict[str, Any] = served.told("statements", str(served.lake.parent))
    return told


@pytest.mark.every_spark
def test_a_client_that_lacks_us_creates_indexes_and_skips_blocks(statements):
    assert statements["has our package"] is False
    assert statements["lookup"] == [[471]]
    assert "FuseRows" in statements["plan"]
    assert "1 of 10 blocks" in statements["plan"]
    assert ["blocks   1 of 10 to read"] in statements["explained"]


@pytest.mark.every_spark
def test_a_client_that_lacks_us_has_dataframes_functions_and_streams_by_name(statements):
    assert statements["by name"] == [990, [[11, "eleven"]]]
    assert statements["written"] == 2
    assert statements["match"] == [[20]]
    assert statements["catalog"] == ["lake", ["served"]]
    assert statements["streamed"] == 992


@pytest.mark.every_spark
def test_a_session_has_us_whatever_it_is_asked_first(served, statements):
    told = served.told("first_calls", fuse.catalog(served.lake).table_url("served.t"))

    assert told.pop("clone", None) in ([3, 992], None)  # Spark 4.0 has no clones for clients
    assert told == {"by place": 992, "by name": 992, "exists": True, "current catalogue": ["lake", 992], "habit": 2}


@pytest.mark.every_spark
@pytest.mark.parametrize("way", ["tag", "all"])
def test_a_statement_that_is_cancelled_ends_with_its_jobs_and_leaves_nothing(served, statements, way):
    assert served.told_by_another("cancelled", way) == [True, True, 45, 0]


def test_a_statement_that_was_told_as_cancelled_changes_nothing_any_more(served, statements):
    assert served.told_by_another("told_of_in_time", seconds=240) == []


def test_a_client_s_own_functions_and_files_work_beside_ours(served, statements, tmp_path):
    assert served.told("own_code", str(tmp_path)) == {"read": [["N471!"]], "updated": [["N12!"]]}


def test_files_of_statements_give_the_same_through_connect(served):
    folder, names = served.lake.parent, FILES if everything() else FEW_FILES
    slt.make_filled_table(folder / "made")

    told = served.told("files", json.dumps({"folder": str(folder), "names": names}), seconds=100 + 30 * len(names))
    assert not told, "\n\n".join(told)


def test_a_session_that_is_not_made_ready_fails_its_statement_and_the_next_one_tries_again(served, statements):
    refused, names = served.told("late")

    assert "[FUSE_EXTERNAL_ERROR] the session was not made ready within 0 ms SQLSTATE: 58000" in refused.split("\n")
    assert names == [["served"]]


def test_what_sparks_parser_throws_comes_as_it_is(served):
    told = served.told("refused", "BEGIN SELECT 1; DECLARE x INT; END")

    assert "[INVALID_VARIABLE_DECLARATION.ONLY_AT_BEGINNING]" in told.split("JVM stacktrace")[0]


@pytest.mark.every_spark
def test_sessions_that_end_are_let_go_of(served):
    before = served.check()["sessions"]
    assert served.told("churn", "24") == 24
    assert served.check()["sessions"] > 0
    most = before + 8  # threads of Spark's keep those that they worked for last
    for _ in range(20):
        served.told("collect_garbage")
        if served.check()["sessions"] <= most:
            break
        time.sleep(0.5)
    assert served.check()["sessions"] <= most


def test_a_wrong_token_is_refused(served):
    wrong = served.connect.replace(TOKEN, "wrong")

    assert "Invalid authentication token" in served.told("refused", "SELECT 1", wrong)


@pytest.mark.every_spark
def test_statements_are_logged_where_that_is_asked_for(served, statements):
    assert re.search(r"INFO statements: [0-9a-f-]{36} CREATE INDEX by_name ON lake\.served\.t", served.log.read_text())


READS = """
import json, sys, warnings
from pyspark.sql import SparkSession
from fuse_index import spark as fuse_spark
warnings.simplefilter("error")
spark = SparkSession.builder.remote(sys.argv[1]).create()
fuse_spark.install(spark)
found = fuse_spark.read(spark, sys.argv[2]).where("match(name, 'n471')")
warnings.simplefilter("ignore")
state = fuse_spark.read(spark, sys.argv[2], at=sys.argv[3])
print(json.dumps([[row.id for row in found.collect()], found._explain_string(), state.count()]))
"""


@pytest.mark.every_spark
def test_our_own_client_reads_natively_on_the_server_and_says_nothing(served, statements):
    table = fuse.catalog(served.lake).load_table("served.t")
    command = [sys.executable, "-c", READS, served.connect, table.stored.store.url, table.snapshot.id]
    done = subprocess.run(command, capture_output=True, text=True, env=servers.environment(), timeout=100, check=False)

    assert done.returncode == 0, done.stderr[-3000:]
    found, plan, count = json.loads(done.stdout)
    assert (found, count) == ([471], 992)
    assert "BatchScan fuse" in plan


@pytest.mark.every_spark
def test_jdbc_has_the_same(served, statements):
    beeline = [str(servers.SPARK_HOME / "bin" / "beeline"), "-u", served.jdbc, "--outputformat=csv2", "--silent=true"]
    beeline += ["-n", "ann", "-p", TOKEN]
    texts = (
        "CREATE TABLE lake.served.j (id BIGINT, name STRING)",
        "INSERT INTO lake.served.j VALUES (1, 'a'), (2, 'b')",
        "CREATE INDEX j_name ON lake.served.j USING bloom (name)",
        "UPDATE lake.served.j SET name = 'c' WHERE id = 2",
        "SELECT id FROM lake.served.j WHERE name = 'c'",
        "SHOW TABLES IN lake.served",
        "CALL lake.system.history('served.j')",
    )
    command = [*beeline, *(part for text in texts for part in ("-e", text))]
    done = subprocess.run(command, capture_output=True, text=True, env=servers.environment(), timeout=200, check=False)

    assert done.returncode == 0, done.stderr[-3000:]
    assert "id\n2\n" in done.stdout
    assert "served,j,false" in done.stdout
    assert "build index" in done.stdout or "create index" in done.stdout


def test_a_client_that_is_killed_leaves_the_server_well(served, statements):
    slow = f"SELECT {SLEEP.format(20_000)}"
    with served.client("refused", slow) as client:
        servers.said(served.running, served.log, re.escape(slow))
        client.kill()

    assert served.check()["healthy"]
    assert served.told("refused", "SELECT * FROM lake.served.t LIMIT 1") == ""


def test_a_server_that_is_asked_to_end_waits_for_a_statement_that_writes(served, statements):
    slow = f"INSERT INTO lake.served.t SELECT 5000, {SLEEP.format(4000)} FROM range(0, 1, 1, 1)"
    with served.client("command", slow) as client:
        servers.said(served.running, served.log, re.escape(slow))
        served.running.send_signal(signal.SIGTERM)
        assert client.stdout is not None
        told = client.stdout.readline()
        assert served.running.wait(60) == 0
        client.kill()  # or it asks a server that has ended for minutes

    assert json.loads(told) == "done"
    assert fuse.catalog(served.lake).load_table("served.t").count("id = 5000") == 1


def test_a_server_that_is_killed_while_it_writes_leaves_the_table_as_it_was(tmp_path):
    for server in start(tmp_path):
        assert server.told("refused", "CREATE NAMESPACE lake.served") == ""
        assert server.told("refused", "CREATE TABLE lake.served.t (id BIGINT, name STRING)") == ""
        slow = f"INSERT INTO lake.served.t SELECT id, {SLEEP.format(2000)} FROM range(0, 2, 1, 1)"
        with server.client("refused", slow) as client:
            servers.said(server.running, server.log, re.escape(slow))
            os.kill(server.running.pid, signal.SIGKILL)
            client.kill()

        table = fuse.catalog(server.lake).load_table("served.t")
        assert table.count() == 0
        table.append([{"id": 1, "name": "a"}])
        assert fuse.catalog(server.lake).load_table("served.t").count() == 1
