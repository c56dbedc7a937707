"""Nearest vectors by the kind of ``examples/plugins``: ``python -m benchmarks.vectors --rows 1000000 --dimensions 64``.

Vectors lie in clusters, as those of texts do. Told are the processor time of the ten nearest, warm, approximate and
exact, that of numpy on the same vectors, and the recall. Needs usearch.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import fuse_index as fuse
from fuse_index.indexes.registry import Host

QUERIES = 20
NEAREST = 10
SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.list_(pa.float32()))])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dimensions", type=int, default=64)
    parser.add_argument("--block-rows", type=int, default=250_000)
    parser.add_argument("--recall", type=float, default=0.95)
    parser.add_argument(
        "--place", help="a folder to keep the table in; a run that was ended goes on with the next block"
    )
    wanted = parser.parse_args()
    with nullcontext(wanted.place) if wanted.place else tempfile.TemporaryDirectory() as folder:
        table = build(folder, wanted.rows, wanted.block_rows, wanted.dimensions)
        measure(table, vectors(wanted.rows, wanted.block_rows, wanted.dimensions), wanted.recall)


def clustered(random: np.random.Generator, count: int, dimensions: int) -> np.ndarray:
    """Vectors around a thousand centres, the same in each run."""
    centres = np.random.default_rng(1).normal(0, 1, (1000, dimensions))
    noise = random.normal(0, 0.4, (count, dimensions))
    return (centres[random.integers(0, len(centres), count)] + noise).astype(np.float32)


def blocks(rows: int, block_rows: int, dimensions: int) -> Iterator[np.ndarray]:
    for first in range(0, rows, block_rows):
        yield clustered(np.random.default_rng(first + 2), min(block_rows, rows - first), dimensions)


def vectors(rows: int, block_rows: int, dimensions: int) -> np.ndarray:
    return np.concatenate(list(blocks(rows, block_rows, dimensions)))


def build(folder: str, rows: int, block_rows: int, dimensions: int) -> fuse.Table:
    """The table with its index, a commit for each block."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "plugins" / "fuse-index-vector"))
    import fuse_index_vector

    host = Host([fuse_index_vector])
    if not any(Path(folder).iterdir()):
        fuse.create_table(folder, SCHEMA, properties={"block_rows": block_rows}, host=host)
        fuse.open_table(folder, host=host).create_index("by_v", "vector", ["v"], dimensions=dimensions)
    table = fuse.open_table(folder, host=host)
    done = table.count()
    for number, block in enumerate(blocks(rows, block_rows, dimensions)):
        first = number * block_rows
        if first < done:
            continue
        started = processor_time()
        offsets = pa.array(np.arange(len(block) + 1, dtype=np.int32) * dimensions)
        lists = pa.ListArray.from_arrays(offsets, pa.array(block.ravel()))
        table.append(pa.table([pa.array(np.arange(first, first + len(block))), lists], schema=SCHEMA))
        print(json.dumps({"rows": first + len(block), "built_s": round(processor_time() - started)}), flush=True)
    return table


def measure(table: fuse.Table, held: np.ndarray, recall: float) -> None:
    """The ten nearest of some queries, by the index and by numpy in turn, so that a busy machine is one for both."""
    queries = clustered(np.random.default_rng(0), QUERIES, held.shape[1])
    right = [brute_force(held, query) for query in queries]
    for name, wanted in (("approximate", recall), ("exact", 1.0)):
        search = partial(table.search, "v", limit=NEAREST, select=["id"], recall=wanted)
        found = [search(query=query).column("id").to_pylist() for query in queries]
        hits = sum(len(set(one) & set(other)) for one, other in zip(found, right, strict=True))
        taken, numpy = [], []
        for query in queries:
            taken.append(processor_seconds(partial(search, query=query)))
            numpy.append(processor_seconds(partial(brute_force, held, query)))
        ms, of_numpy = sorted(taken)[QUERIES // 2] * 1e3, sorted(numpy)[QUERIES // 2] * 1e3
        told = {"ranking": name, "ms": round(ms, 1), "numpy_ms": round(of_numpy, 1), "ratio": round(ms / of_numpy, 2)}
        print(json.dumps({**told, "recall": hits / QUERIES / NEAREST}), flush=True)


def brute_force(vectors: np.ndarray, query: np.ndarray) -> list[int]:
    """The nearest rows, by all distances, computed as the kind does: in doubles."""
    distances = np.empty(len(vectors))
    for start in range(0, len(vectors), 4096):
        apart = np.subtract(vectors[start : start + 4096], query, dtype=np.float64)
        distances[start : start + len(apart)] = np.square(apart, out=apart).sum(axis=1)
    nearest = np.argpartition(distances, NEAREST)[:NEAREST]
    return [int(row) for row in nearest[np.argsort(distances[nearest])]]


def processor_seconds(work: Callable[[], Any]) -> float:
    before = processor_time()
    work()
    return processor_time() - before


def processor_time() -> float:
    """Processor time of this process, threads included."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
