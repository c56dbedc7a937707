"""Tables from a stranger, opened one after the other in a process of their own with little memory to spare.

Run as a program, with the kind of file to change, how many changes to draw, and by which seed. It prints how many were
tried, and what ended otherwise than in an answer or in an error of ours.
"""

from __future__ import annotations

import copy
import json
import random
import resource
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import fuse_index
from fuse_storage import BlockReplacement, StorageError, StoredTable, process_cache, stage_deletions, vacuum_table
from fuse_storage.commit.snapshot_hold import VACUUM_NOTICE_FOLDER
from fuse_storage.metadata.encoding import encode_checksummed_json
from fuse_storage.metadata.refs import Branch
from tests.storage import tampering
from tests.storage.small import COLUMNS, Totals, append, ids_of

SPARE_BYTES = 1 << 30
HOST = fuse_index.Host.discover()
NUMBERS = (-1, 0, 1 << 31, (1 << 31) - 1, 1 << 60, (1 << 63) - 1)
JSON_VALUES = (
    *NUMBERS,
    1 << 63,
    1 << 200,
    1.5,
    1e300,
    True,
    None,
    "",
    "x",
    "../../x",
    "/etc/passwd",
    "a\0b",
    "\ud800",
    [],
    [1],
    {},
    {"x": 1},
)
TEXTS = (None, "", "x", "../../x", "/etc/passwd", "s3://b/t/_b/x", "a\0b")
Change = Callable[[StoredTable], object]


def made() -> StoredTable:
    properties = {"block_rows": 2, "zone_rows": 1, "max_write_seconds": 5, "note": {"a": [1]}}
    table = StoredTable.create(
        f"memory://{uuid.uuid4().hex}", COLUMNS, properties=properties, cluster_by=["id"], key=["id"]
    )
    table = table.transaction().add_index("totals", {"key": "70a1"}).commit()
    for first in (0, 4):
        table = append(table, *range(first, first + 4), builders=[Totals()])
    table.tag("v1")
    return table


def with_vector(table: StoredTable) -> StoredTable:
    """The table after its first row was deleted by a vector."""
    staged = stage_deletions(table, [Totals()], {0: np.array([True, False])})
    swap = BlockReplacement((table.blocks().ids[0],), 1)
    return table.transaction([Totals()]).replace_blocks([swap], staged, table.segments().ids).commit()


def json_changes(whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The same, but for one member, which is another value or missing."""

    def places(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*path, key)
            if isinstance(part, dict | list):
                yield from places(part, (*path, key))

    for *above, last in list(places(whole, ())):
        for value in (..., *JSON_VALUES):
            changed = copy.deepcopy(whole)
            holder = changed
            for key in above:
                holder = holder[key]
            if value is ...:
                del holder[last]
            else:
                holder[last] = value
            yield changed


def column_changes(rows: pa.Table) -> list[Callable[[], pa.Table]]:
    """The same, but for one column, which holds another value, is of another type, twice there or missing."""
    size = len(rows)
    found: list[Callable[[], pa.Table]] = [
        lambda: rows.slice(1),
        lambda: rows.slice(0, 0),
        lambda: pa.concat_tables([rows, rows]),
    ]
    values: list[Any] = [*TEXTS, *NUMBERS, [1, 1, 1], {"a": 1}, True, 1.5]
    for index, name in enumerate(rows.column_names):
        kind = rows.schema.field(index).type

        def put(make: Callable[[], pa.Array], index: int = index, name: str = name) -> None:
            found.append(lambda: rows.set_column(index, name, make()))

        for value in values:
            put(lambda value=value: pa.array([value] * size))  # type: ignore[misc]
            if pa.types.is_integer(kind) and type(value) is int:
                put(lambda value=value, kind=kind: pa.array([value] * size, pa.int64()).cast(kind, safe=False))  # type: ignore[misc]
            if pa.types.is_list(kind) and type(value) is int and value < 1 << 31:
                put(lambda value=value, kind=kind: pa.array([[value]] * size, kind))  # type: ignore[misc]
        put(lambda: pa.array([b"\xff\xfe"] * size).view(pa.string()))
        if pa.types.is_list(kind):
            put(lambda kind=kind: pa.array([[]] * size, kind))  # type: ignore[misc]
            for _ in range(3):  # some kilobytes that become 240 MB
                put(lambda kind=kind: pa.array([np.ones(30_000_000, np.int64)] + [[1]] * (size - 1), kind))  # type: ignore[misc]
        found.append(lambda name=name: rows.drop_columns([name]))  # type: ignore[misc]
        found.append(lambda name=name, index=index: rows.append_column(name, rows.column(index)))  # type: ignore[misc]
    return found


def text_changes(data: bytes, draw: random.Random) -> Iterator[bytes]:
    """Bytes that are no such file: cut short, flipped, too long, nested, in another encoding."""
    for _ in range(8):
        yield data[: draw.randrange(len(data))]
        place = draw.randrange(len(data))
        yield data[:place] + bytes([data[place] ^ 1 << draw.randrange(8)]) + data[place + 1 :]
    yield b"[" * 200_000
    yield b'{"a":' * 100_000 + b"1" + b"}" * 100_000
    yield data.replace(b"{", b'{"deep": ' + b"[" * 500 + b"]" * 500 + b", ", 1)
    yield b"9" * 100_000
    yield data + b" " * (65 << 20)
    yield b"\xff" + data
    yield b""


def replaced(key: str, data: bytes) -> Change:
    def change(table: StoredTable) -> None:
        table.store.delete([key])
        table.store.create(key, data)

    return change


def changes(kind: str, table: StoredTable, draw: random.Random) -> list[Change]:
    """Ways to change one file of this kind, all checksums being right where there are any."""
    store, head = table.store, Branch(table.store, "main").key(table.entry.sequence)
    notice = f"{VACUUM_NOTICE_FOLDER}/{'0' * 32}.json"
    checked = {"entry": head, "tag": "_refs/tag/v1.json", "notice": notice}
    match kind:
        case "entry" | "tag" | "notice":
            members = {"kind": "vacuum", "cutoff": "2026-01-01T00:00:00.000000Z"}
            data = encode_checksummed_json(members) if kind == "notice" else store.read(checked[kind])
            members = json.loads(data)
            del members["checksum"]
            found: list[Change] = []
            for changed in json_changes(members):
                try:
                    found.append(replaced(checked[kind], encode_checksummed_json(changed)))
                except ValueError:  # half a character cannot be written
                    continue
            return found + [replaced(checked[kind], text) for text in text_changes(data, draw)]
        case "hint":
            texts = [str(number).encode() for number in NUMBERS] + list(text_changes(b"5", draw))
            return [replaced("_refs/branch/main/_hint", text) for text in texts]
        case "snapshot":
            data = table.snapshot.encode()
            texts = [json.dumps(changed).encode() for changed in json_changes(json.loads(data))]
            return [
                lambda table, text=text: tampering.replace_snapshot_bytes(table, text)  # type: ignore[misc]
                for text in [*texts, *text_changes(data, draw)]
            ]
        case "list":
            rows = tampering.read_segment_list(store, table.snapshot)
            return [
                lambda table, make=make: tampering.rewrite_list(table, lambda _: make())  # type: ignore[misc]
                for make in column_changes(rows)
            ]
        case "segment" | "zones" | "sidecars":
            rows = tampering.read_part(table, kind)
            return [
                lambda table, make=make: tampering.rewrite_part(table, kind, lambda _: make())  # type: ignore[misc]
                for make in column_changes(rows)
            ]
        case "block":
            return [
                lambda table: tampering.replace_block(
                    tampering.forget_seals(table), 0, lambda data, seal: _flip(data, seal, draw)
                )
            ] * 300
    raise AssertionError(kind)


def _flip(data: bytes, seal: int, draw: random.Random) -> bytes:
    """A bit of the seal or of Parquet's footer, or a number of either, and the seal's checksum made right again."""
    footer = int.from_bytes(data[-8:-4], "little") + 8
    places = [*range(seal, len(data) - footer - 8), *range(len(data) - footer, len(data) - 8)]
    place = draw.choice(places)
    changed = bytearray(data)
    changed[place] ^= 1 << draw.randrange(8)
    if draw.random() < 0.3 and place + 4 <= len(data) - footer - 8:
        changed[place : place + 4] = draw.choice((b"\xff" * 4, b"\0" * 4, b"\xff\xff\xff\x7f"))
    return tampering.reseal(bytes(changed), seal)


def use(store: Any) -> None:
    """Whatever one does with a table that one was given. Raises errors of ours, and no others."""

    def attempt(step: Callable[[], object]) -> None:
        process_cache.clear()
        with suppress(StorageError, fuse_index.FuseIndexError):
            step()

    def look() -> None:
        table = StoredTable.open(store)
        table.snapshots()
        blocks = table.blocks()
        zones = table.zones(blocks)
        for column in (1, 2):
            _ = table.segments().statistics(column), blocks.statistics(column), zones.statistics(column)
        _ = table.snapshot.cluster_by, table.snapshot.key, blocks.levels, blocks.added_by, blocks.has_exact_statistics
        if (sidecars := blocks.sidecars("70a1")) is not None:
            _ = sidecars.packs(), sidecars.spans, sidecars.versions
            for block in range(len(sidecars)):
                attempt_payload(sidecars, block)

    def attempt_payload(sidecars: Any, block: int) -> None:
        with suppress(StorageError):
            if (payload := sidecars.payload(block)) is not None:
                payload.read([(0, payload.size)])

    attempt(lambda: ids_of(StoredTable.open(store)))
    attempt(look)
    attempt(lambda: StoredTable.open(store, at="v1"))
    attempt(lambda: vacuum_table(store, timedelta(0), dry_run=True, force=True))
    attempt(lambda: append(StoredTable.open(store), 99))
    attempt(lambda: fuse_index.open_table(store, host=HOST).scan("id = 2 OR name > 'n5'").to_arrow())
    attempt(lambda: str(fuse_index.open_table(store, host=HOST).explain("id = 2")))
    attempt(lambda: fuse_index.open_table(store, host=HOST).inspect.indexes())


def main(kind: str, count: int, seed: int = 0) -> None:
    table = with_vector(made())
    use(table.store)
    sound = dict(table.store._objects)  # type: ignore[attr-defined]
    draw = random.Random(kind if not seed else f"{kind} {seed}")
    every = changes(kind, table, draw)
    chosen = draw.sample(every, min(count, len(every))) + every[-4:-1]  # the last are long or deep
    used = int(
        next(
            line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmSize")
        )
    )
    resource.setrlimit(resource.RLIMIT_AS, ((used << 10) + SPARE_BYTES,) * 2)
    wrong = 0
    for change in chosen:
        table.store._objects.clear()  # type: ignore[attr-defined]
        table.store._objects.update(sound)  # type: ignore[attr-defined]
        process_cache.clear()
        try:
            with suppress(StorageError):  # it opens the table at its end
                change(table)
            use(table.store)
        except Exception as problem:
            wrong += 1
            at = problem.__traceback__
            while at is not None and at.tb_next is not None:
                at = at.tb_next
            where = f"{at.tb_frame.f_code.co_filename}:{at.tb_lineno}" if at else ""
            print(f"{type(problem).__name__}: {str(problem)[:200]} ({where})")
    print(f"{len(chosen)} tried, {wrong} wrong")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
