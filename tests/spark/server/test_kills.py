"""``kill -9`` of clients, and of the server, while rows are committed: what clients were told of is there, once."""

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import fuse_index as fuse
from tests.effort import effort
from tests.spark.server.served import start

WRITERS = 3
STEP = 100_000
"""So many numbers each writer has for itself."""


def test_rows_that_clients_were_told_of_outlive_kills_of_clients_and_servers(tmp_path: Path) -> None:
    chance, told, first = random.Random(29), set[int](), 0
    for turn in range(effort(1)):
        for server in start(tmp_path):
            if not turn:
                assert server.told("refused", "CREATE NAMESPACE lake.served") == ""
                assert server.told("refused", "CREATE TABLE lake.served.k (id BIGINT, name STRING)") == ""
            before = len(told)
            writers = [server.client("insert_forever", str(first + number * STEP)) for number in range(WRITERS)]
            begun = [int(writer.stdout.readline()) for writer in writers if writer.stdout is not None]
            time.sleep(chance.uniform(0, 1))
            writers[0].kill()
            time.sleep(chance.uniform(0, 1))
            assert server.check()["healthy"]
            os.kill(server.running.pid, signal.SIGKILL)
            for writer in writers:
                writer.kill()  # or it asks a server that has ended for minutes
            told.update(begun)
            for writer in writers:
                with writer:
                    lines = writer.stdout.read().splitlines(keepends=True) if writer.stdout is not None else []
                told.update(int(line) for line in lines if line.endswith("\n"))
            first += WRITERS * STEP
            assert len(told) - before >= WRITERS

        table = fuse.catalog(tmp_path / "lake").load_table("served.k")
        counts = Counter(table.scan(columns=["id"]).to_arrow().column("id").to_pylist())
        assert set(counts.values()) == {1}
        assert told <= counts.keys()
        untold = Counter(number // STEP for number in counts.keys() - told)
        assert set(untold.values()) <= {1}  # of each writer the one that it was about to be told of
    table.append([{"id": -1, "name": "after all"}])
    assert fuse.catalog(tmp_path / "lake").load_table("served.k").count() == len(counts) + 1
