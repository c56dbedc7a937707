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
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import fuse_index as fuse
from fuse_index.indexes.registry import Host

QUERIES = 20
NEAREST = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dimensions", type=int, default=64)
    parser.add_argument("--block-rows", type=int, default=250_000)
    parser.add_argument("--recall", type=float, default=0.95)
    wanted = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "plugins" / "fuse-index-vector"))
    import fuse_index_vector

    random = np.random.default_rng(1)
    centres = random.normal(0, 1, (1000, wanted.dimensions))

    def clustered(count: int) -> np.ndarray:
        noise = random.normal(0, 0.4, (count, wanted.dimensions))
        return (centres[random.integers(0, len(centres), count)] + noise).astype(np.float32)

    vectors, queries = clustered(wanted.rows), clustered(QUERIES)
    with tempfile.TemporaryDirectory() as folder:
        schema = pa.schema([("id", pa.int64()), ("v", pa.list_(pa.float32()))])
        host = Host([fuse_index_vector])
        table = fuse.create_table(folder, schema, properties={"block_rows": wanted.block_rows}, host=host)
        table.create_index("by_v", "vector", ["v"], dimensions=wanted.dimensions)
        lists = pa.ListArray.from_arrays(
            pa.array(np.arange(wanted.rows + 1, dtype=np.int32) * wanted.dimensions), pa.array(vectors.ravel())
        )
        started = time.perf_counter()
        table.append(pa.table([pa.array(np.arange(wanted.rows)), lists], schema=schema))
        print(json.dumps({"rows": wanted.rows, "built_s": round(time.perf_counter() - started)}), flush=True)
        right = [brute_force(vectors, query) for query in queries]
        for name, recall in (("approximate", wanted.recall), ("exact", 1.0)):
            search = partial(table.search, "v", limit=NEAREST, select=["id"], recall=recall)
            found = [search(query=query).column("id").to_pylist() for query in queries]
            hits = sum(len(set(one) & set(other)) for one, other in zip(found, right, strict=True))
            taken = sorted(processor_seconds(partial(search, query=query)) for query in queries)
            print(
                json.dumps(
                    {"ranking": name, "ms": round(taken[QUERIES // 2] * 1e3, 1), "recall": hits / QUERIES / NEAREST}
                )
            )
        taken = sorted(processor_seconds(partial(brute_force, vectors, query)) for query in queries)
        print(json.dumps({"ranking": "numpy", "ms": round(taken[QUERIES // 2] * 1e3, 1)}))


def brute_force(vectors: np.ndarray, query: np.ndarray) -> list[int]:
    """The nearest rows, by all distances, computed as the kind does: in doubles."""
    distances = np.empty(len(vectors))
    for start in range(0, len(vectors), 4096):
        apart = np.subtract(vectors[start : start + 4096], query, dtype=np.float64)
        distances[start : start + len(apart)] = np.square(apart, out=apart).sum(axis=1)
    nearest = np.argpartition(distances, NEAREST)[:NEAREST]
    return [int(row) for row in nearest[np.argsort(distances[nearest])]]


def processor_seconds(work: Callable[[], Any]) -> float:
    """Processor time of this process, threads included."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    work()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
