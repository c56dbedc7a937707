"""Makes two golden tables of format version 1 whose states have a base with deletion vectors, a tail and a chain.

    python tests/golden/make_tails_v1.py

One is partitioned, and rows are appended to it; the other has a primary key, and rows are put and deleted. Another run
gives other ids and times.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fuse_index as fuse

FOLDER = Path(__file__).parent / "tails_v1"
COLUMNS = "id BIGINT, day STRING, n INT"
PROPERTIES = {"block_rows": 10, "zone_rows": 4, "hot_rows": 10, "delete_mode": "merge-on-read"}
Row = dict[str, Any]


def rows(*ids: int, n: int = 0) -> list[Row]:
    """Rows of these ids, whose days go by them. ``n``: what is added to what they count, which may be NULL."""
    return [{"id": each, "day": f"d{each % 3}", "n": None if each % 7 == 6 else n + each % 5} for each in ids]


PARTITIONED: list[tuple[str, Any]] = [
    ("append", rows(*range(30))),
    ("hot", rows(40, 41)),
    ("delete", [3, 17, 18]),
    ("hot", [{"id": 42, "day": None, "n": 1}]),
    ("hot", rows(43)),
]
KEYED: list[tuple[str, Any]] = [
    ("put", rows(*range(30))),
    ("tier", None),
    ("put", rows(5, 6, 40, n=10)),
    ("delete keys", rows(3, 17, 50)),
    ("tier", None),
    ("put", rows(6, 7, 8, n=20)),
    ("delete keys", rows(8, 9, 40)),
    ("property", "owner"),
    ("put", rows(9, 10, 41, n=30)),
    ("delete keys", rows(7, 11)),
]
"""What was done to each table after it was made, a version each."""


def rows_by_version(steps: list[tuple[str, Any]]) -> Iterator[list[Row]]:
    """The rows of each version from the first on, ascending by id."""
    found: dict[int, Row] = {}
    yield []
    for step, what in steps:
        if step in ("append", "hot", "put"):
            found |= {row["id"]: row for row in what}
        elif step == "delete":
            found = {number: row for number, row in found.items() if number not in what}
        elif step == "delete keys":
            found = {number: row for number, row in found.items() if number not in ids_of(what)}
        yield [found[number] for number in sorted(found)]


def ids_of(some: list[Row]) -> list[int]:
    return [row["id"] for row in some]


def keys_of(some: list[Row]) -> list[Row]:
    return [{"id": row["id"], "day": row["day"]} for row in some]


def do(table: fuse.Table, step: str, what: Any) -> None:
    if step in ("append", "hot"):
        table.append(what, hot=step == "hot")
    elif step == "put":
        table.upsert(what)
    elif step == "delete keys":
        table.delete_keys(keys_of(what))
    elif step == "delete":
        table.delete(f"id IN ({', '.join(map(str, what))})")
    elif step == "property":
        table.set_properties({what: "nobody"})
    else:
        table.maintenance.tier()


def make() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    kinds: dict[str, Any] = {"partitioned": {"partition_by": ["day"]}, "keyed": {"primary_key": ["id", "day"]}}
    for (name, kind), steps in zip(kinds.items(), (PARTITIONED, KEYED), strict=True):
        table = fuse.create_table(FOLDER / name, COLUMNS, properties=PROPERTIES, **kind)
        for number, (step, what) in enumerate(steps, 2):
            do(table, step, what)
            assert table.refresh().version == number
        shutil.rmtree(FOLDER / name / "_tmp", ignore_errors=True)


if __name__ == "__main__":
    make()
