"""Spark servers that tests start from the pyspark package's own scripts: a standalone cluster, a Connect server.

Each is a process group of its own, ended by its id. Programs that talk to them run in fresh Python processes too: one
process holds one Spark context, and the test session's own is taken.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import SystemRandom
from typing import Any

import pyspark

SPARK_HOME = Path(pyspark.__file__).parent
ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"
PATIENCE = 90.0  # seconds until a server must have said that it is up


def environment() -> dict[str, str]:
    """For every process of Spark's: this Python for its workers, this checkout to import, no conf of the machine's."""
    here = [str(ROOT), str(ROOT / "plugins")]
    dropped = {"SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"}
    return {key: value for key, value in os.environ.items() if key not in dropped} | {
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([*here, *filter(None, [os.environ.get("PYTHONPATH")])]),
    }


@contextmanager
def process(command: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A running process that writes to ``log``; ended, with all it started, on the way out."""
    with log.open("wb") as output:
        # A session of its own, so that a worker's executors can be ended with it.
        running = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env=environment(), start_new_session=True
        )
    try:
        yield running
    finally:
        running.terminate()
        try:
            running.wait(20)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()
        _end_group(running.pid)


def _end_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return  # all of it ended by itself


def said(running: subprocess.Popen[bytes], log: Path, pattern: str) -> re.Match[str]:
    """Wait until the process has logged ``pattern``."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if found := re.search(pattern, log.read_text(errors="replace")):
            return found
        if running.poll() is not None:
            break
        time.sleep(0.1)
    raise RuntimeError(
        f"{running.args} did not say {pattern!r}; its log ends in:\n{log.read_text(errors='replace')[-3000:]}"
    )


@contextmanager
def cluster(logs: Path) -> Iterator[str]:
    """A standalone master with two workers of one core each; gives its ``spark://`` URL."""
    start = str(SPARK_HOME / "bin" / "spark-class")
    with ExitStack() as stack:
        log = logs / "master.log"
        master = [
            start,
            "org.apache.spark.deploy.master.Master",
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--webui-port",
            "0",
        ]
        url = said(stack.enter_context(process(master, log)), log, r"Starting Spark master at (spark://\S+)")[1]
        for number in range(2):
            log = logs / f"worker{number}.log"
            place = ["--work-dir", str(logs / f"work{number}")]
            # Each on an address of its own: Spark speculates only on another host than the slow attempt's.
            limits = ["--host", f"127.0.0.{number + 2}", "--webui-port", "0", "--cores", "1", "--memory", "1g"]
            worker = [start, "org.apache.spark.deploy.worker.Worker", *limits, *place, url]
            said(stack.enter_context(process(worker, log)), log, "Successfully registered with master")
        yield url


@contextmanager
def connect_server(logs: Path, master: str = "local[2]", **configuration: str) -> Iterator[str]:
    """A Spark Connect server; gives its ``sc://`` URL."""
    port = free_port()
    settings = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(logs / "warehouse"),
        **configuration,
    }
    submit = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", master, "--driver-memory", "1g"]
    service = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    pairs = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    log = logs / "connect.log"
    with process([*submit, *pairs, *service], log) as server:
        said(server, log, "Spark Connect server started at")
        yield f"sc://127.0.0.1:{port}"


def free_port() -> int:
    """A port at which nobody listens.

    It lies below those that kernels give to connections (32768 and more on Linux), of which Spark's processes take many
    in the seconds until the server for whom the port is asked listens there.
    """
    while True:
        port = SystemRandom().randrange(10_000, 32_768)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def run(program: str, *arguments: str, timeout: float = 500.0) -> Any:
    """Run one of the programs in a fresh Python; what it printed last, read as JSON."""
    command = [sys.executable, str(PROGRAMS / f"{program}.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=timeout)
    assert done.returncode == 0, f"{program} failed:\n{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
    return json.loads(done.stdout.strip().splitlines()[-1])
