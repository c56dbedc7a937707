"""Makes a golden table of format version 1 with a tail, chains and a state that was tiered: run once.

    python tests/golden/make_hot_v1.py

Another run gives other ids and times.
"""

import shutil
from pathlib import Path

import pyarrow as pa

from fuse_storage import BlockReplacement, StoredTable, append_hot

FOLDER = Path(__file__).parent / "hot_v1"
COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("word", pa.string()), ("real", pa.float64())])
IDS_BY_VERSION = {
    1: [],
    2: [0, 1],
    3: [0, 1, 2],
    4: [0, 1, 2, 3],
    5: [10, 0, 1, 2, 3],
    6: [10, 0, 1, 2, 3, 4],
    7: [10, 0, 1, 2, 3, 4],
    8: [10, 0, 1, 2, 3, 4, 5],
}
"""The ids of the rows in their order, by version; the last is the head. Version 7 tiered the rows up to 2."""


def rows(*ids: int) -> pa.Table:
    words, reals = [None if n % 3 == 0 else f"word {n}" for n in ids], [float("nan") if n == 4 else n / 4 for n in ids]
    return pa.table({"id": ids, "word": words, "real": reals}, COLUMNS)


def make() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    table = StoredTable.create(FOLDER / "table", COLUMNS, properties={"hot_rows": 10})
    for ids in ((0, 1), (2,), (3,)):
        table = append_hot(table, rows(*ids))
    with table.writer() as writer:
        writer.write(rows(10))
        table = table.transaction().append(writer.finish()).commit()
    table = append_hot(table, rows(4), application=("golden", 7))
    blocks = table.blocks()
    with table.writer() as writer:
        writer.write(rows(0, 1, 2))
        swap = BlockReplacement(tuple(blocks.ids[1:3]), 1)
        table = table.transaction().replace_blocks([swap], writer.finish(), (), None, "tier", True).commit("tier")
    append_hot(table, rows(5))
    shutil.rmtree(FOLDER / "table" / "_tmp", ignore_errors=True)


if __name__ == "__main__":
    make()
