"""Who can ask Python what the JVM asks it: nobody else."""

import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from fuse_index.spark import session as session_module
from fuse_index.spark.functions import FunctionCallback
from fuse_index.spark.native.java_compiler import jvm_bridge
from fuse_index.spark.native.planner_callback import PlannerCallback
from fuse_index.spark.native.request_server import RequestServer


@pytest.fixture
def url(tmp_path: Path) -> str:
    table = fuse.create_table(str(tmp_path / "private"), "id BIGINT", properties={"block_rows": 10})
    table.append(pa.table({"id": list(range(50))}))
    return str(tmp_path / "private")


@pytest.fixture
def callback_port(spark: SparkSession) -> Iterator[int]:
    """The port of PySpark's own callback server, which ``foreachBatch`` starts, without a token."""
    gateway = spark.sparkContext._gateway
    ensure_callback_server_started(gateway)
    yield gateway._callback_server.port
    gateway.shutdown_callback_server()
    gateway._callback_server = None


def blocks_read(spark: SparkSession, url: str) -> int:
    df = fuse_spark.read(spark, url).where("id = 7")
    assert df.collect() == [(7,)]
    return int(fuse_spark.explain(df).to_dict()["blocks"]["kept"])


def test_nothing_listens_for_the_jvm(spark: SparkSession, url: str) -> None:
    fuse_spark.install(spark)
    assert blocks_read(spark, url) == 1

    assert spark.sparkContext._gateway.__dict__.get("_callback_server") is None


def test_a_stranger_at_pysparks_own_callback_server_finds_nothing_of_ours(
    spark: SparkSession, url: str, callback_port: int
) -> None:
    fuse_spark.install(spark)  # while it listens
    assert blocks_read(spark, url) == 1

    pool = spark.sparkContext._gateway.gateway_property.pool
    assert not [each for each in pool.dict.values() if isinstance(each, PlannerCallback | FunctionCallback)]
    request = json.dumps({"question": "refresh", "url": url, "snapshot": "x", "branch": "main"})
    for number in range(pool.next_id + 1):
        with socket.create_connection(("127.0.0.1", callback_port), timeout=10) as stranger:
            stranger.sendall(f"c\np{number}\napply\ns{request}\ne\n".encode())
            assert b"unknown" in stranger.recv(1000)


def test_a_table_that_the_session_was_not_given_is_refused(spark: SparkSession, url: str, tmp_path: Path) -> None:
    fuse_spark.read(spark, url)
    given = {"mode": "indexes", "snapshot": fuse.open_table(url).snapshot.id, "filters": []}
    context = {"time_zone": "UTC", "ansi": True, "case_sensitive": False}
    other = str(tmp_path / "other")
    fuse.create_table(other, "id BIGINT").append(pa.table({"id": [1]}))
    snapshot = fuse.open_table(other).snapshot.id
    [callback] = {s.callback for s in session_module._sessions.values() if url in s.planner._locations}

    def ask(question: str, **members: Any) -> bytes:
        return callback.apply(json.dumps({"question": question, **members}))

    strange = {**given, "url": other, "snapshot": snapshot, "context": context}
    rows = {"columns": ["id"], "exact": True, "max_bytes": 1, "seconds": 1.0}
    assert ask("prune", url=url, **given, context=context)[:1] == b"\1"
    assert b"was not given the table" in ask("prune", **strange)
    assert b"was not given the table" in ask("read rows", **strange, **rows)
    assert b"was not given the table" in ask("estimate columns", **strange, columns=["id"])
    assert b"was not given the table" in ask("join keys", **strange, keys=[])
    assert b"was not given the table" in ask("refresh", url=other, snapshot="x", branch="main")
    assert b"was not given the table" in ask("answer aggregate", **strange, groups=[], aggregates=[])


def test_another_host_keeps_the_tables_that_were_given(spark: SparkSession, url: str) -> None:
    before = fuse_spark.read(spark, url).where("id = 7")
    fuse_spark.install(spark, fuse.Host.discover())

    assert before.collect() == [(7,)]
    assert fuse_spark.explain(before).to_dict()["blocks"]["kept"] == 1


class Jvm:
    """A bridge whose requests are lists, and which is gone once they are all taken."""

    def __init__(self, bodies: list[str], at_once: int = 1) -> None:
        self.bodies, self.lock = bodies, threading.Lock()
        self.answers: list[tuple[str, Any, str | None]] = []
        self.cancelled: set[str] = set()

    def register(self, key: str, mailbox: str) -> None:
        pass

    def take(self, mailbox: str, milliseconds: int) -> str:
        with self.lock:
            if not self.bodies:
                raise ConnectionError("the JVM is gone")
            return f"{len(self.bodies)}\0key\0{self.bodies.pop(0)}"

    def awaited(self, number: str) -> bool:
        return number not in self.cancelled

    def answer(self, number: str, reply: Any, failure: str | None) -> None:
        if isinstance(reply, set):
            raise AttributeError("py4j cannot send a set")
        self.answers.append((number, reply, failure))


def serve(jvm: Jvm, callback: Any) -> None:
    server = RequestServer(jvm)
    server.register("key", callback)
    ends = time.monotonic() + 60
    while server._threads:  # until each has found the JVM gone
        assert time.monotonic() < ends
        time.sleep(0.001)
    assert not server._idle


def test_each_request_is_answered_whatever_its_callback_does(caplog: pytest.LogCaptureFixture) -> None:
    def callback(body: str) -> Any:
        if body == "raise":
            raise KeyboardInterrupt("no")
        return {1} if body == "set" else body.upper()

    jvm = Jvm(["a\nb", "raise", "set", ""])
    with caplog.at_level(logging.CRITICAL):
        serve(jvm, callback)

    told = [(number, reply, failure and json.loads(failure)) for number, reply, failure in sorted(jvm.answers)]
    external = {"code": "EXTERNAL_ERROR", "condition": "FUSE_EXTERNAL_ERROR", "sqlState": "58000", "advice": []}
    assert told == [
        ("1", "", None),
        ("2", None, external | {"message": "TypeError: set cannot be sent to the JVM"}),
        ("3", None, external | {"message": "KeyboardInterrupt: no"}),
        ("4", "A\nB", None),
    ]


def test_one_request_does_not_wait_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RequestServer, "MAX_THREADS", 3)
    all_of_them = threading.Barrier(3)

    jvm = Jvm(["x"] * 3)
    serve(jvm, lambda body: all_of_them.wait(20) >= 0)

    assert [reply for _, reply, _ in jvm.answers] == [True] * 3


def test_a_request_that_is_cancelled_commits_nothing(url: str) -> None:
    def callback(body: str) -> int:
        table = fuse.open_table(url)
        table.append({"id": [1000]}, hot=body == "hot")
        table.delete("id = 7")
        return table.count()

    jvm = Jvm(["cold", "hot", "cold"])
    jvm.cancelled = {"3", "2"}
    serve(jvm, callback)

    told = [(number, reply, failure and json.loads(failure)["message"]) for number, reply, failure in jvm.answers]
    refused = "the statement was cancelled: nothing was changed"
    assert sorted(told) == [("1", 50, None), ("2", None, refused), ("3", None, refused)]
    assert fuse.open_table(url).count() == 50


def test_keys_that_are_forgotten_are_answered_no_more(spark: SparkSession) -> None:
    bridge = jvm_bridge(spark)
    server = RequestServer(bridge)
    server.register("over/catalog", lambda body: None)
    server.register("other/catalog", lambda body: None)

    server.unregister("over/")

    assert server.keys == {"other/catalog"}
    assert server.pending == 0
    server.unregister("other/")
    assert server.keys == frozenset()
