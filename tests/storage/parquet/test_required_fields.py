"""Fields that are NOT NULL within structs that are NULL: writers hand over NULL in them, too."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import fuse_storage as storage

STRUCT = pa.StructArray.from_arrays(
    [pa.array([1, None], pa.int32()), pa.array(["x", None])],
    fields=[pa.field("a", pa.int32(), False), pa.field("b", pa.string())],
    mask=pa.array([False, True]),
)
KEYS, OFFSETS = pa.array(["j", "k"]), pa.array([0, 2, 2], pa.int32())
NULL_WITHIN: dict[str, tuple[pa.Array, list[Any]]] = {
    "struct": (STRUCT, [{"a": 1, "b": "x"}, None]),
    "list": (pa.ListArray.from_arrays(OFFSETS, STRUCT), [[{"a": 1, "b": "x"}, None], []]),
    "map": (
        pa.MapArray.from_arrays(OFFSETS, KEYS, STRUCT, pa.map_(pa.string(), pa.field("value", STRUCT.type))),
        [[("j", {"a": 1, "b": "x"}), ("k", None)], []],
    ),
    "struct within": (
        pa.StructArray.from_arrays([STRUCT], fields=[pa.field("i", STRUCT.type, False)], mask=pa.array([False, True])),
        [{"i": {"a": 1, "b": "x"}}, None],
    ),
}


@pytest.mark.parametrize("kind", NULL_WITHIN)
def test_null_structs_are_written_whatever_their_fields_hold(tmp_path: Path, kind: str) -> None:
    values, expected = NULL_WITHIN[kind]
    table = storage.StoredTable.create(tmp_path / "t", pa.schema([pa.field("v", values.type)]))
    with table.writer() as writer:
        writer.write(pa.table({"v": values}))
        staged = writer.finish()
    written = table.transaction().append(staged).commit()

    assert written.read_block(written.blocks(), 0, ["v"]).column("v").to_pylist() == expected
