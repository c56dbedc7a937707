"""Rows of many blocks that are read together are those that are read block by block."""

import uuid
from dataclasses import replace
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuse_storage import Cache, Corrupt, NotFound, Schema, SchemaError, meter_requests, open_store
from fuse_storage.parquet import found_rows, reader
from fuse_storage.parquet.column_encoding import ColumnEncoding
from fuse_storage.parquet.found_rows import RowRequest, read_found_rows
from fuse_storage.parquet.reader import read_block
from fuse_storage.schema.schema import Field
from fuse_storage.store.store import Store
from tests.storage.parquet.test_column_encoding import FORMS, NESTED, made, written

LATER = Schema.create(NESTED)
LATER = replace(
    LATER,
    fields=(
        *(replace(each, name=f"{each.name} now") if each.name == "text" else each for each in LATER.fields),
        Field(90, "added", "added", pa.int64(), initial_default=7),
        Field(91, "unknown", "unknown", pa.string()),
    ),
)
"""The columns of the blocks under other names, one with a default, and one that nobody has."""


def stored(store: Store, data: bytes, block: reader.BlockFile) -> reader.BlockFile:
    key = f"_b/{uuid.uuid4().hex}.parquet"
    store.create(key, data)
    parsed = reader.Footer.parse(data[block.footer_offset :], key)
    return replace(block, key=key, seal=parsed.seal)


@st.composite
def blocks(draw: st.DrawFn) -> tuple[pa.Table, list[ColumnEncoding], dict[str, int]]:
    rows = made(draw(st.integers(1, 30)), draw(st.sampled_from([0, 3])))
    forms = draw(st.lists(st.sampled_from(FORMS), min_size=1, max_size=5))
    return rows, forms, {"zone_rows": draw(st.integers(2, 15)), "page_rows": draw(st.integers(1, 6))}


@given(st.lists(blocks(), min_size=1, max_size=4), st.data())
def test_rows_of_many_blocks_are_those_of_each(
    drawn: list[tuple[pa.Table, list[ColumnEncoding], dict[str, int]]], draw: st.DataObject
) -> None:
    store, requests = open_store(f"memory://{uuid.uuid4().hex}"), []
    for rows, forms, options in drawn:
        data, block, _ = written(rows, forms, **options)
        zones = -(-len(rows) // options["zone_rows"])
        chosen = draw.draw(st.lists(st.integers(0, zones - 1), unique=True, min_size=1, max_size=zones))
        count = sum(min(options["zone_rows"], len(rows) - zone * options["zone_rows"]) for zone in chosen)
        mask = draw.draw(st.lists(st.booleans(), min_size=count, max_size=count))
        requests.append(RowRequest(store, stored(store, data, block), chosen, np.array(mask, np.bool_)))
    columns = draw.draw(st.permutations(LATER.names))[: draw.draw(st.integers(1, len(LATER.names)))]
    flat = [name for name in columns if name not in ("place", "list")]

    for names in (columns, flat):
        found = read_found_rows(requests, LATER, names, Cache(1 << 20))

        found.validate(full=True)
        each = [
            read_block(request.store, request.block, LATER, names, request.zones, None, request.row_mask)
            for request in requests
        ]
        assert found.equals(pa.concat_tables(each))


def test_pages_that_are_cut_by_bytes_are_read_beside_others() -> None:
    texts = ["x" * (n * 997 % 3_000) for n in range(4_000)]
    rows = pa.table({"n": range(4_000), "body": texts, "few": ["a", "b"] * 2_000})
    store = meter_requests(open_store(f"memory://{uuid.uuid4().hex}"))
    data, block, schema = written(rows, [FORMS[0]], page_rows=1_500, zone_rows=2_500)
    mask = np.arange(4_000) % 1_999 == 1_000
    request = RowRequest(store, stored(store, data, block), [0, 1], mask)
    layout = found_rows._layout(request, None)
    assert layout is not None
    assert layout.chunk(0, 0).starts is layout.chunk(0, 2).starts is not layout.chunk(0, 1).starts
    store.reset()

    assert read_found_rows([request], schema, schema.names) == rows.filter(pa.array(mask))
    assert store.bytes_read < len(data) * 0.7


def test_no_rows_of_no_blocks_have_the_columns_asked_for() -> None:
    assert read_found_rows([], LATER, ["big", "added"]).schema.names == ["big", "added"]
    with pytest.raises(SchemaError, match="bgi"):
        read_found_rows([], LATER, ["bgi"])


def test_blocks_of_one_form_are_decoded_at_once_and_others_are_read_alone() -> None:
    store = open_store(f"memory://{uuid.uuid4().hex}")
    requests = []
    for form in FORMS:
        data, block, _ = written(made(20, 0), [form], page_rows=4)
        requests.append(RowRequest(store, stored(store, data, block), [0], np.arange(20) == 9))
    old = replace(requests[0], block=replace(requests[0].block, seal=None))
    forge, read = found_rows.forge_row_groups, found_rows.read_block

    with (
        mock.patch.object(found_rows, "forge_row_groups", side_effect=forge) as forged,
        mock.patch.object(found_rows, "read_block", side_effect=read) as alone,
    ):
        found = read_found_rows([*requests, old], LATER, ["whole", "text now"])

    assert (forged.call_count, alone.call_count) == (1, 1)
    assert found["whole"].to_pylist() == made(20, 0)["whole"].to_pylist()[9:10] * (len(FORMS) + 1)


def test_damage_is_told_by_the_block_that_has_it() -> None:
    store, cache = open_store(f"memory://{uuid.uuid4().hex}"), Cache(0)
    requests = []
    for _ in range(2):
        data, block, _ = written(made(20, 0), [FORMS[0]], page_rows=4)
        requests.append(RowRequest(store, stored(store, data, block), [0], np.arange(20) == 9))
    damaged = bytearray(store.read(requests[1].block.key))
    for place in range(4, requests[1].block.footer_offset):
        damaged[place] ^= 1
    store.create(requests[1].block.key, bytes(damaged), overwrite=True)

    with pytest.raises(Corrupt, match=rf"{requests[1].block.key}: column 'whole' of zone 0 fails its checksum"):
        read_found_rows(requests, LATER, ["whole"], cache)
    store.delete([requests[0].block.key])
    with pytest.raises(NotFound, match=requests[0].block.key):
        read_found_rows(requests, LATER, ["whole"], cache)
