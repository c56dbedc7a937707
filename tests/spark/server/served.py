"""A ``fuse-index serve`` of its own process, and clients that lack our package."""

import json
import subprocess
import sys
import sysconfig
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fuse_index as fuse
from tests.spark import servers

TOKEN = "a-token-that-nobody-guesses"
CLIENT = servers.PROGRAMS / "connect_sql.py"
SLEEP = "java_method('java.lang.Thread', 'sleep', {}L)"


@dataclass
class Served:
    running: subprocess.Popen[bytes]
    log: Path
    lake: Path
    connect: str
    jdbc: str
    health: int
    asked: subprocess.Popen[str] | None = None
    """The client that does one step after the other: to start one takes longer than most steps."""

    def check(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.health}/", timeout=20) as answer:
            return dict(json.load(answer))

    def client(self, step: str, argument: str = "", server: str | None = None) -> subprocess.Popen[str]:
        return _client(server or self.connect, step, argument)

    def told(self, step: str, argument: str = "", server: str | None = None, seconds: float = 100) -> Any:
        """What came of a step, in a session of its own."""
        if self.asked is None:
            with (self.log.parent / "client.log").open("w") as errors:
                self.asked = _client(stdin=subprocess.PIPE, stderr=errors)
        assert self.asked.stdin is not None
        assert self.asked.stdout is not None
        print(json.dumps([server or self.connect, step, argument]), file=self.asked.stdin, flush=True)
        in_time = threading.Timer(seconds, self.asked.kill)
        in_time.start()
        line = self.asked.stdout.readline()
        in_time.cancel()
        if not line:
            self.end_client()
        assert line, f"{(self.log.parent / 'client.log').read_text()[-4000:]}\n{self.log.read_text()[-3000:]}"
        return json.loads(line)

    def told_by_another(self, step: str, argument: str = "", seconds: float = 100) -> Any:
        """What came of a step of a client that asks nothing else.

        A statement that Spark's server never ends (SPARK-53339) has one of the two threads by which a client lets go of
        what it asked, and sessions that it stops later wait for these.
        """
        self.end_client()
        try:
            return self.told(step, argument, seconds=seconds)
        finally:
            self.end_client()

    def end_client(self) -> None:
        if self.asked is not None:
            self.asked.kill()
            self.asked.communicate()
            self.asked = None


def _client(*arguments: str, **streams: Any) -> subprocess.Popen[str]:
    """A Python that reads no .pth file, so that it finds PySpark and not us."""
    environment = servers.environment() | {"PYTHONPATH": sysconfig.get_path("purelib")}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | streams
    return subprocess.Popen([sys.executable, "-S", str(CLIENT), *arguments], text=True, env=environment, **streams)


def start(folder: Path, *options: str) -> Iterator[Served]:
    warehouse = folder / "warehouse"
    for each in (warehouse, folder / "lake"):
        fuse.catalog(each, create=True)
    (folder / "token").write_text(TOKEN)
    connect, jdbc, health = (servers.free_port() for _ in range(3))
    command = [sys.executable, "-c", "from fuse_index.cli.program import main; main()", "serve"]
    command += ["--warehouse", str(warehouse), "--catalog", f"lake={folder / 'lake'}", "--master", "local[2]"]
    command += ["--connect", str(connect), "--health", str(health), "--token-file", str(folder / "token")]
    command += ["--conf", "spark.sql.shuffle.partitions=2", "--log-statements"]
    command += [part.format(jdbc=jdbc) for part in options]
    log = folder / "serve.log"
    with servers.process(command, log) as running:
        servers.said(running, log, "catalogues .*")
        url = f"sc://localhost:{connect}/;token={TOKEN}"
        served = Served(running, log, folder / "lake", url, f"jdbc:hive2://127.0.0.1:{jdbc}", health)
        try:
            yield served
        finally:
            served.end_client()
