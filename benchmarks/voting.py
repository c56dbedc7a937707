"""What votes by payloads cost where there are very many blocks: ``python -m benchmarks.voting --blocks 10000``.

A table of so many blocks, which nobody opens, with five payload indexes of a stranger's kind: each keeps a few numbers
a block, and reads them for each vote. Planned are an equality, an AND and an OR of five: requests, bytes, processor
time and the peak of memory, cold and warm. ``--store s3`` puts the table behind a server that speaks S3 (moto).
``--kind one_by_one`` reads each payload by itself, as the guide's kind does. *dispatch* is what the call of a vote
costs that looks at nothing; *planned* is all that a plan does for one.
"""

from __future__ import annotations

import argparse
import json
import logging
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

import fuse_index as fuse
from benchmarks import planning
from benchmarks.worker import peak_memory
from fuse_index.indexes.block_batch import FrameBatch, ZoneMap
from fuse_index.indexes.builder import IndexBuilder
from fuse_index.indexes.definition import IndexDefinition, load_definitions
from fuse_index.indexes.registry import Host
from fuse_index.plugin import NONE, SOME, Ballot, IndexKind, Probe, Reason, Refusal, Sidecar, hookimpl
from fuse_index.predicate import Compare, Literal
from fuse_index.pruning.calls.call_probe import call_probe
from fuse_storage import StoredTable, meter_requests, process_cache
from fuse_storage.commit.sidecar_writer import SidecarWriter

COLUMNS = [f"c{number}" for number in range(1, 6)]
NUMBERS = 8
"""How many numbers a payload holds; of each column, block n holds those that are equal to n, one above another."""
FAR = 1 << 50
"""Statistics of blocks reach so far that they tell nothing of what is asked."""
RUNS = 5


WANTED = (NUMBERS - 1) * FAR // 16 + 3
"""A number that one block has."""


class Few(IndexKind):
    """A few numbers of each block, in its payload."""

    name = "few"

    def compile(self, what, inputs, options, context):
        match what:
            case Compare("=", term, Literal(int() as value)) if term == inputs[0].term:
                return Probe(value, cost=8.0 * NUMBERS)
        return Refusal(Reason.LEAF_UNSUPPORTED, "few answers =")

    def probe(self, probe, batch):
        payloads = batch.read_payloads()
        if None in payloads:
            return Ballot(np.full(len(batch), SOME, np.uint8))
        held = np.frombuffer(b"".join(payloads), np.int64).reshape(len(batch), NUMBERS)
        return Ballot(np.where((held == probe.what).any(axis=1), np.uint8(SOME), np.uint8(NONE)))


class OneByOne(Few):
    """Reads each payload by itself, as the guide's kind does."""

    name = "one_by_one"

    def probe(self, probe, batch):
        votes = np.full(len(batch), SOME, np.uint8)
        for unit in range(len(batch)):
            payload = batch.payload(unit)
            if payload is not None:
                [data] = payload.read([(0, payload.size)])
                votes[unit] = SOME if probe.what in np.frombuffer(data, np.int64) else NONE
        return Ballot(votes)


class Silent(Few):
    """Votes without looking, so that what is left is the call."""

    name = "silent"

    def probe(self, probe, batch):
        return Ballot(np.full(len(batch), SOME, np.uint8))


class Kinds:
    """The kinds of this benchmark, as a plugin."""

    @hookimpl
    def fuse_index_kinds(self):
        return [Few, OneByOne, Silent]


HOST = Host([*Host.discover().plugins, Kinds()])


def all_of(word: str) -> str:
    """A condition on each of the five columns."""
    return word.join(f"{column} = {WANTED}" for column in COLUMNS)


def make(url: str, blocks: int, options: Mapping[str, str], kind: str = "few") -> None:
    """Write the table, and put sidecars beside its blocks."""
    planning.synthetic(url, blocks, options, span=FAR)
    table = fuse.open_table(url, host=HOST, options=options)
    for column in COLUMNS:
        table.create_index(f"by_{column}", kind, [column], build=False)
    stored = StoredTable.open(url, options=options)
    for definition in load_definitions(stored.snapshot, HOST):
        assert isinstance(definition, IndexDefinition)
        writer = SidecarWriter(stored.store, IndexBuilder.for_definition(definition, HOST, strict=True))
        segments, number = stored.segments(), 0
        for segment, count in zip(segments.ids, segments.block_counts.tolist(), strict=True):
            for block in range(number, number + count):
                writer.add(Sidecar(None, (np.arange(NUMBERS) * (FAR // 16) + block).tobytes()))
            writer.end_segment(segment)
            number += count
        staged = {each.segment: each for each in writer.finish()}
        stored.transaction().attach_sidecars(definition.key, staged).commit("build index")


def measure(url: str, options: Mapping[str, str], seconds: float | None = None) -> Iterator[dict[str, Any]]:
    """Plan conditions, cold and warm. ``seconds``: the budget of strangers' kinds."""
    conditions = {"equality": f"c1 = {WANTED}", "AND of five": all_of(" AND "), "OR of five": all_of(" OR ")}
    for name, where in conditions.items():
        process_cache.clear()
        store = meter_requests(StoredTable.open(url, options=options).store)
        table = fuse.Table(StoredTable.open(store), HOST)
        cold = processor_seconds(partial(table.explain, where, index_seconds=seconds))
        told = {"cold_requests": store.request_count, "cold_bytes": store.bytes_read}
        store.reset()
        again = partial(table.explain, where, index_seconds=seconds)
        warm = [processor_seconds(again) for _ in range(RUNS)]
        explained = again()
        reasons = sorted({vote.reason.value for vote in explained.votes if vote.index})
        yield {
            "condition": name,
            "cold_s": round(cold, 3),
            "warm_s": round(sorted(warm)[RUNS // 2], 3),
            **told,
            "warm_requests": store.request_count,
            "kept": explained.blocks.kept,
            "reasons": reasons,
            "peak_mb": peak_memory() >> 20,
        }


def dispatch(blocks: int) -> dict[str, Any]:
    """What a vote of a kind costs that looks at nothing, for 1,000 blocks: its call alone, and all that a plan does."""
    with tempfile.TemporaryDirectory() as folder:
        make(f"{folder}/silent", blocks, {}, "silent")
        table = fuse.open_table(f"{folder}/silent", host=HOST)
        first, all_five = f"c1 = {WANTED}", all_of(" AND ")
        taken = {}
        for where in (first, all_five):
            table.explain(where)
            taken[where] = min(processor_seconds(partial(table.explain, where)) for _ in range(RUNS * 3))
        each = (taken[all_five] - taken[first]) / 4 / (blocks / 1000)
        return {"dispatch_us": round(call_seconds(table.stored) * 1e6), "planned_us_per_1000_blocks": round(each * 1e6)}


def call_seconds(table: StoredTable) -> float:
    """The time of one call for votes on 1,000 blocks, within its deadline and with the check of its ballot."""
    definition = load_definitions(table.snapshot, HOST)[0]
    blocks, kind = table.blocks(), Silent()
    sidecars = blocks.sidecars(definition.key)
    assert sidecars is not None
    batch = FrameBatch.from_sidecars(blocks, [], ZoneMap.of(blocks), sidecars, np.arange(min(1000, len(blocks))))
    probe = Probe(WANTED)
    known = [batch.zone_rows, batch.row_counts, call_probe(kind, probe, batch, 10.0), kind.probe(probe, batch)]
    assert len(known[-1]) == len(batch)
    calls = range(1000)
    called = processor_seconds(lambda: [call_probe(kind, probe, batch, 10.0) for _ in calls])
    voted = processor_seconds(lambda: [kind.probe(probe, batch) for _ in calls])
    return (called - voted) / len(calls)


def processor_seconds(work: Callable[[], Any]) -> float:
    """Processor time of this process, threads included."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    work()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@contextmanager
def place(store: str) -> Iterator[tuple[str, dict[str, str]]]:
    """A place for the table, and the options that its store is opened with."""
    if store == "local":
        with tempfile.TemporaryDirectory() as folder:
            yield f"{folder}/voting", {}
        return
    import boto3
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    keys = {"region_name": "us-east-1", "aws_access_key_id": "test", "aws_secret_access_key": "test"}
    boto3.client("s3", endpoint_url=f"http://{host}:{port}", **keys).create_bucket(Bucket="tables")
    known = {"endpoint": f"http://{host}:{port}", "access_key_id": "test", "secret_access_key": "test"}
    try:
        yield "s3://tables/voting", known | {"region": "us-east-1"}
    finally:
        server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=10_000)
    parser.add_argument("--store", choices=("local", "s3"), default="local")
    parser.add_argument("--kind", choices=("few", "one_by_one"), default="few")
    parser.add_argument("--seconds", type=float, default=60.0, help="the budget of strangers' kinds")
    wanted = parser.parse_args()
    with place(wanted.store) as (url, options):
        started = time.perf_counter()
        make(url, wanted.blocks, options, wanted.kind)
        print(
            json.dumps({"blocks": wanted.blocks, "store": wanted.store, "made_s": round(time.perf_counter() - started)})
        )
        for told in measure(url, options, wanted.seconds):
            print(json.dumps(told), flush=True)
    if wanted.store == "local":
        print(json.dumps(dispatch(wanted.blocks)))


if __name__ == "__main__":
    main()
