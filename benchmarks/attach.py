"""What an index on a Delta table is worth, in place: ``python -m benchmarks.attach --rows 10000000``.

A Delta table written by ``deltalake``, attached; a lookup by an unsorted key through ``deltalake`` and through the
attached table, with the same rows; then 1,000 and 10,000 small files: how long it takes to attach them, and to sync
when 10 changed; the same of files with deletion vectors, after a MERGE; and how long it takes to export a table of
10,000 blocks. Times are of the CPU, of all threads, the least of several.
Results go to ``benchmarks/results/attach.md``.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake
from pyroaring import BitMap64

import fuse_index as fuse

HERE = Path(__file__).parent
LOOKUPS = 5
Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
CHANGED = 10


def rows(first: int, count: int, total: int) -> pa.Table:
    """A key that is anywhere, and what goes along."""
    numbers = np.arange(first, first + count)
    keys = numbers * 7_919_317 % max(total, 2)
    return pa.table(
        {
            "id": numbers,
            "customer": pa.array([f"c{key:09}" for key in keys.tolist()]),
            "amount": keys / 7,
            "note": pa.array(
                [f"order {number} of {key}" for number, key in zip(numbers.tolist(), keys.tolist(), strict=True)]
            ),
        }
    )


def least(act: Callable[[], Any], times: int = LOOKUPS) -> tuple[float, Any]:
    """The least CPU time of several runs in seconds, of all threads, and the last result."""
    taken, result = [], None
    for _ in range(times):
        start = time.process_time()
        result = act()
        taken.append(time.process_time() - start)
    return min(taken), result


def lookups(place: Path, total: int, report: list[str]) -> None:
    lake, table_place = str(place / "orders"), place / "orders-indexed"
    for first in range(0, total, 1_000_000):
        write_deltalake(lake, rows(first, min(1_000_000, total - first), total), mode="append")
    attached, table = least(lambda: fuse.attach(lake, table_place, format="delta"), 1)
    built, _ = least(lambda: table.create_index("by_customer", "bloom", ["customer"]), 1)
    key = rows(total // 3, 1, total).column("customer")[0].as_py()
    condition = ds.field("customer") == key
    theirs, expected = least(lambda: DeltaTable(lake).to_pyarrow_dataset().to_table(filter=condition))
    ours, found = least(lambda: fuse.open_table(table_place).to_arrow(f"customer = '{key}'"))
    assert expected.select(found.column_names).to_pylist() == found.to_pylist()
    size = sum(file.stat().st_size for file in table_place.rglob("*") if file.is_file())
    data = sum(Path(file).stat().st_size for file in table.inspect.files())
    report += [
        f"- {total:,} rows in {table.snapshot.block_count} files of {data / 1e6:,.0f} MB: attached in "
        f"{attached:.2f} s, indexed in {built:.1f} s; the attached table takes {size / 1e6:,.1f} MB.",
        f"- A lookup takes {theirs * 1000:,.0f} ms through `deltalake` and {ours * 1000:,.0f} ms through the attached "
        f"table, opened for it: {theirs / ours:.0f} times as fast.",
    ]


def many_files(place: Path, count: int, report: list[str]) -> None:
    lake, table_place = place / f"lake{count}", place / f"lake{count}-indexed"
    lake.mkdir(parents=True)
    small = rows(0, 20, 20)
    for number in range(count):
        pq.write_table(small, lake / f"{number:06}.parquet")
    attached, table = least(lambda: fuse.attach(lake, table_place), 1)
    for number in range(CHANGED):
        pq.write_table(rows(number, 30, 90), lake / f"{number * (count // CHANGED):06}.parquet")
    synced, result = least(lambda: table.sync(), 1)
    assert (result.added_files, result.removed_files) == (CHANGED, CHANGED)
    report.append(f"- {count:,} files: attached in {attached:.1f} s, synced after {CHANGED} changed in {synced:.2f} s.")


def deleted_rows(place: Path, count: int, report: list[str]) -> None:
    """A Delta table each of whose files has a deletion vector, and a MERGE that changes the vectors of ten of them."""
    lake, table_place, small = place / "vectors", place / "vectors-indexed", rows(0, 20, 20)
    (lake / "_delta_log").mkdir(parents=True)
    for number in range(count + 1):
        pq.write_table(small, lake / f"{number}.parquet")
    size = (lake / "0.parquet").stat().st_size
    kinds = {"id": "long", "customer": "string", "amount": "double", "note": "string"}
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in kinds.items()]
    schema = json.dumps({"type": "struct", "fields": fields})
    about = {"id": "b", "format": {"provider": "parquet", "options": {}}, "configuration": {}, "createdTime": 0}
    features = ["deletionVectors"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}

    def file(number: int, gone: list[int], kind: str = "add") -> dict[str, Any]:
        action = {"path": f"{number}.parquet", "dataChange": True, "partitionValues": {}, "size": size}
        described = {"deletionVector": inline_vector(gone)} if gone else {}
        return {kind: action | {"modificationTime": 0, "deletionTimestamp": 0} | described}

    def commit(version: int, actions: list[dict[str, Any]]) -> None:
        (lake / "_delta_log" / f"{version:020}.json").write_text("\n".join(map(json.dumps, actions)))

    metadata = about | {"schemaString": schema, "partitionColumns": []}
    commit(0, [{"protocol": protocol}, {"metaData": metadata}, *(file(number, [3]) for number in range(count))])
    attached, table = least(lambda: fuse.attach(lake, table_place, format="delta"), 1)
    table.create_index("by_customer", "bloom", ["customer"])
    changed = range(0, count, count // CHANGED)
    merged = [each for number in changed for each in (file(number, [3], "remove"), file(number, [3, 4]))]
    commit(1, [*merged, file(count, [])])
    synced, result = least(lambda: table.sync(), 1)
    assert (result.added_files, table.count()) == (1, 19 * count - CHANGED + 20)
    report.append(
        f"- {count:,} files with a deletion vector each: attached in {attached:.1f} s, synced after a MERGE of "
        f"{CHANGED} in {synced:.2f} s."
    )


def inline_vector(gone: list[int]) -> dict[str, Any]:
    """A deletion vector as Delta's log has it within: a magic number and a bitmap, in base 85 of ZeroMQ."""
    packed = (1681511377).to_bytes(4, "little") + BitMap64(gone).serialize()
    padded = packed + bytes(-len(packed) % 4)
    numbers = [int.from_bytes(padded[at : at + 4], "big") for at in range(0, len(padded), 4)]
    text = "".join(Z85[number // 85**power % 85] for number in numbers for power in range(4, -1, -1))
    return {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": len(packed), "cardinality": len(gone)}


def exports(place: Path, count: int, report: list[str]) -> None:
    """The first export of each format, of a process that has not imported what it needs."""
    made = rows(0, 20 * count, 20 * count)
    table = fuse.create_table(place / "blocks", made.schema, properties={"block_rows": 20})
    table.append(made)
    assert table.snapshot.block_count == count
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        seconds = [process.submit(export, place / "blocks", name).result() for name in ("delta", "iceberg")]
    report.append(f"- {count:,} blocks: exported as Delta in {seconds[0]:.1f} s, as Iceberg in {seconds[1]:.1f} s.")


def export(place: Path, name: str) -> float:
    table = fuse.open_table(place)
    return least({"delta": table.export_delta, "iceberg": table.export_iceberg}[name], 1)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--files", type=int, nargs="*", default=[1_000, 10_000])
    parser.add_argument("--blocks", type=int, default=10_000)
    parser.add_argument("--place", type=Path, default=Path("/tmp/fuse-attach"))
    arguments = parser.parse_args()
    shutil.rmtree(arguments.place, ignore_errors=True)
    report = ["# Indexes on files that others write", "", "Seconds of CPU, of all threads, local files.", ""]
    lookups(arguments.place, arguments.rows, report)
    for count in arguments.files:
        many_files(arguments.place, count, report)
    deleted_rows(arguments.place, max(arguments.files, default=CHANGED), report)
    exports(arguments.place, arguments.blocks, report)
    shutil.rmtree(arguments.place)
    text = "\n".join(report) + "\n"
    (HERE / "results" / "attach.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
