"""VARIANT columns that files have shredded: made whole again, whatever the way, and what contradicts itself refused."""

from datetime import UTC
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import fuse_index as fuse
from fuse_index.expressions.variant.decode import Float32, decode
from fuse_storage import VARIANT
from fuse_storage.parquet.foreign.shredded import put_together
from fuse_storage.schema.variant_bytes import MalformedVariant
from tests.index.sources.shredding import SCALARS, shredded
from tests.index.sources.test_variants import Log

NAMES = st.sampled_from(["a", "b", "A", "", "a.b", "value", "typed_value", "metadata", "é", "\uffee", "😀"])
TREES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.floats(allow_nan=False)
    | st.floats(allow_nan=False, width=32).map(Float32)
    | st.decimals(-(10**12), 10**12, places=5)
    | st.text(st.characters(exclude_categories=("Cs",)))
    | st.binary(max_size=80)
    | st.dates()
    | st.datetimes()
    | st.datetimes(timezones=st.just(UTC)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=12,
)
TIMES = [pa.timestamp("us"), pa.timestamp("us", "UTC")]
WAYS = st.recursive(
    st.none() | st.sampled_from([*SCALARS.values(), *TIMES]),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=1) | st.dictionaries(NAMES, inner | st.none(), min_size=1, max_size=4)
    ),
    max_leaves=6,
)


def trees_of(values: pa.StructArray) -> list[Any]:
    """The values as Python has them; ``...`` for NULL."""
    return [... if row is None else decode(row["value"], row["metadata"]) for row in values.to_pylist()]


@example([{"😀": 1, "\uffee": [2], "a": {}}], {"\uffee": [pa.int64()], "a": None, "😀": pa.int64()})
@given(st.lists(TREES | st.just(...), max_size=6), WAYS)
def test_what_is_shredded_is_put_together(trees: list[Any], way: Any) -> None:
    whole = put_together(shredded(trees, way))
    assert repr(trees_of(whole)) == repr(trees_of(shredded(trees, None)))  # objects in the order of their names
    sliced = put_together(shredded([{}, *trees, []], way).slice(1, len(trees)))
    assert sliced.equals(whole) or repr(trees_of(sliced)) == repr(trees_of(whole))


MIXED = [
    {"a": 1, "b": "x", "c": {"d": 1.5, "e.f": [1, "z", None, {}]}},
    {"a": "text", "z": {"a": 7}},
    {"c": {"e.f": []}},
    {"c": 5, "a": None},
    [{"a": 1}],
    ...,
    None,
    {},
    "text",
]
WAY = {"c": {"e.f": [pa.int64()], "d": pa.float64(), "g": None}, "b": pa.string(), "a": pa.int64()}
TEXTS = [
    '{"a":1,"b":"x","c":{"d":1.5,"e.f":[1,"z",null,{}]}}',
    '{"a":"text","z":{"a":7}}',
    '{"c":{"e.f":[]}}',
    '{"a":null,"c":5}',
    '[{"a":1}]',
    None,
    "null",
    "{}",
    '"text"',
]


def rows(first: int, way: Any) -> pa.Table:
    return pa.table({"id": pa.array(range(first, first + len(MIXED)), pa.int64()), "v": shredded(MIXED, way)})


@pytest.mark.parametrize("mapping", ["none", "id"])
def test_a_shredded_variant_of_delta_is_read_and_indexed(mapping: str, tmp_path: Path) -> None:
    log = Log(tmp_path / "lake", {"id": "long", "v": "variant"}, mapping)
    for first, way in enumerate([WAY, None, {"a": pa.string()}, [WAY]]):
        log.add(rows(10 * first, way))
    table = fuse.attach(tmp_path / "lake", tmp_path / "table", "delta")
    assert table.schema.field("v").type == VARIANT
    table.create_index("by_path", "json_path", ["v"], paths="$.a")
    found = table.to_arrow().sort_by("id")
    assert found.column("v").to_pylist() == TEXTS * 4
    log.add(rows(40, {"a": pa.int64()}))
    table.sync()
    for indexes in (True, False):
        scan = table.scan("variant_get(v, '$.a', 'string') = '1'", ["id"], indexes=indexes)
        assert sorted(scan.to_arrow().column("id").to_pylist()) == [0, 10, 20, 30, 40]
    assert table.explain("try_variant_get(v, '$.a', 'int') = 8").blocks.kept == 0
    assert table.count("v IS NULL") == 5
    assert table.maintenance.verify_index("by_path").sound
    table.convert()
    table.delete("id < 4")
    table.maintenance.compact()
    assert table.to_arrow().sort_by("id").column("v").to_pylist() == TEXTS[4:] + TEXTS * 4


def test_a_folder_says_itself_what_is_variant(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    schema = b'{"type":"struct","fields":[{"name":"id","type":"long"},{"name":"v","type":"variant"}]}'
    told = {b"org.apache.spark.sql.parquet.row.metadata": schema}
    for number, way in enumerate([WAY, None]):
        pq.write_table(rows(10 * number, way).replace_schema_metadata(told), tmp_path / f"lake/{number}.parquet")
    table = fuse.attach(tmp_path / "lake", tmp_path / "table")
    assert table.schema.field("v").type == VARIANT
    assert table.to_arrow().column("v").to_pylist() == TEXTS * 2
    pq.write_table(rows(20, ["x"] and [WAY]).replace_schema_metadata(told), tmp_path / "lake/2.parquet")
    table.sync()
    assert table.to_arrow("id >= 20").column("v").to_pylist() == TEXTS


def test_a_column_that_is_a_struct_already_stays_one(tmp_path: Path) -> None:
    """Tables of earlier versions have so what Spark wrote as VARIANT."""
    (tmp_path / "lake").mkdir()
    plain = rows(0, None)
    pq.write_table(plain, tmp_path / "lake/0.parquet")
    table = fuse.attach(tmp_path / "lake", tmp_path / "table")
    assert pa.types.is_struct(table.schema.field("v").type)
    told = {b"org.apache.spark.sql.parquet.row.metadata": b'{"fields":[{"name":"v","type":"variant"}]}'}
    pq.write_table(rows(10, None).replace_schema_metadata(told), tmp_path / "lake/1.parquet")
    table.sync()
    assert table.to_arrow().column("v").to_pylist() == plain.column("v").to_pylist() * 2


BROKEN: dict[str, tuple[dict[str, Any], pa.DataType, str]] = {
    "twice": ({"value": b"\x0c\x01", "typed_value": 7}, pa.int64(), "twice"),
    "no object": (
        {"value": b"\x0c\x01", "typed_value": {"a": {"typed_value": 7}}},
        pa.struct([pa.field("a", pa.struct([pa.field("typed_value", pa.int64())]))]),
        "beside a value that is none",
    ),
    "an object that ends": (
        {"value": b"\x02\x05", "typed_value": {"a": {"typed_value": 7}}},
        pa.struct([pa.field("a", pa.struct([pa.field("typed_value", pa.int64())]))]),
        "a variant of 2 bytes",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_contradicts_itself_is_refused(name: str) -> None:
    row, kind, problem = BROKEN[name]
    parts = [pa.field("metadata", pa.binary()), pa.field("value", pa.binary()), pa.field("typed_value", kind)]
    with pytest.raises(MalformedVariant, match=problem):
        put_together(pa.array([{"metadata": b"\x01\0\0", **row}], pa.struct(parts)))


def test_names_that_a_metadata_lacks_are_added() -> None:
    kind = pa.struct([pa.field("a", pa.struct([pa.field("typed_value", pa.int64())]))])
    row = {"metadata": b"\x01\0\0", "typed_value": {"a": {"typed_value": 7}}}
    parts = [pa.field("metadata", pa.binary()), pa.field("typed_value", kind)]
    assert trees_of(put_together(pa.array([row, None], pa.struct(parts)))) == [{"a": 7}, ...]


@pytest.mark.parametrize("way", [{"a": pa.int64()}, {"a": pa.int64(), "c": [pa.int64()]}], ids=["flat", "with lists"])
def test_pages_of_shredded_variants_are_read_alone(way: Any, tmp_path: Path) -> None:
    """A lookup in a row group of many pages reads those that hold the row, as far as columns have such pages."""
    count = 21_000
    trees = [{"a": number, "b": f"b{number}", "c": [number, "x"]} for number in range(count)]
    rows = pa.table({"id": pa.array(range(count), pa.int64()), "v": shredded(trees, way)})
    log = Log(tmp_path / "lake", {"id": "long", "v": "variant"})
    options = {"write_page_index": True, "data_page_size": 8 << 10, "write_batch_size": 500, "use_dictionary": False}
    pq.write_table(rows, log.place / "rows.parquet", **options)
    log.add_file("rows.parquet")
    table = fuse.attach(log.place, tmp_path / "table", "delta")
    assert len(table.stored.blocks().zone_rows) > 1
    table.create_index("by_id", "bloom", ["id"])
    table.create_index("by_path", "json_path", ["v"], paths="$.a;$.b")
    for wanted in (9_999, 20_999):
        text = f'{{"a":{wanted},"b":"b{wanted}","c":[{wanted},"x"]}}'
        for where in (f"id = {wanted}", f"variant_get(v, '$.a', 'bigint') = {wanted}", f"v:b::string = 'b{wanted}'"):
            assert table.to_arrow(where).to_pylist() == [{"id": wanted, "v": text}], where
            assert table.explain(where).zones.kept == 1
    assert table.to_arrow("id >= 20990").column("id").to_pylist() == list(range(20_990, count))
