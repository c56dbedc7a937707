"""Makes a golden table of format version 1 with deletion vectors, one of them replaced by another: run once.

    python tests/golden/make_deletion_vectors_v1.py

Another run gives other ids and times.
"""

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa

from fuse_storage import BlockReplacement, StoredTable, stage_deletions

FOLDER = Path(__file__).parent / "deletion_vectors_v1"
IDS_BY_VERSION = {2: list(range(30)), 3: [0, *range(3, 15), *range(16, 30)], 4: [0, *range(4, 15), *range(16, 30)]}
"""The ids of the rows in their order, by version; the last is the head."""


def delete(table: StoredTable, *ids: int) -> StoredTable:
    """Delete these rows of blocks of ten, whose ids are their numbers, and those that were deleted of them before."""
    gone = {number: np.isin(np.arange(10) + 10 * number, ids) for number in {row_id // 10 for row_id in ids}}
    swaps = [BlockReplacement((table.blocks().ids[number],), 1) for number in gone]
    staged = stage_deletions(table, [], gone)
    return table.transaction().replace_blocks(swaps, staged, table.segments().ids, name="delete").commit("delete")


def make() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    columns = pa.schema([("id", pa.int64()), ("word", pa.string())])
    table = StoredTable.create(FOLDER / "table", columns, properties={"block_rows": 10, "zone_rows": 4})
    with table.writer() as writer:
        writer.write(pa.table({"id": range(30), "word": [f"word {n}" for n in range(30)]}))
        table = table.transaction().append(writer.finish()).commit("append")
    delete(delete(table, 1, 2, 15), 1, 2, 3)
    shutil.rmtree(FOLDER / "table" / "_tmp", ignore_errors=True)


if __name__ == "__main__":
    make()
