"""VARIANT columns of Delta tables whose files have the two binaries, odd ones, and variants within others."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuse_index as fuse
from fuse_index.expressions.variant.columns import encode_values
from fuse_storage import VARIANT
from tests.index.sources.shredding import shredded

DOCUMENTS = ['{"n":1,"t":"a"}', '{"n":2}', "[1,2]", '"text"', None, "null"]


def variants(odd: bool = False) -> pa.Array:
    """Columns as writers have them: the two binaries; and beside them, if ``odd``, what no specification has."""
    plain = encode_values(DOCUMENTS, "v").storage
    if not odd:
        return plain
    numbers = pa.array([1, 2, None, None, None, None], pa.uint64())
    parts = {"metadata": plain.field(1), "value": plain.field(0), "typed_value": numbers}
    return pa.StructArray.from_arrays(list(parts.values()), list(parts), mask=plain.is_null())


class Log:
    """A Delta table whose log says what no writer at hand writes."""

    def __init__(self, place: Path, fields: dict[str, Any], mapping: str = "none", *features: str) -> None:
        """``mapping``: how columns are found in files, by Delta's word. ``features``: beside variants."""
        self.place, self.version = place, 0
        self.ids = {name: number for number, name in enumerate(fields, 1) if mapping == "id"}
        (place / "_delta_log").mkdir(parents=True)
        mapped = {
            name: {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": name}
            for name, number in self.ids.items()
        }
        described = [
            {"name": name, "type": kind, "nullable": True, "metadata": mapped.get(name, {})}
            for name, kind in fields.items()
        ]
        names = ["variantType", *features, *(["columnMapping"] if self.ids else [])]
        protocol = {"readerFeatures": names, "writerFeatures": names}
        told = {"delta.columnMapping.mode": mapping, "delta.columnMapping.maxColumnId": str(len(fields))}
        configuration = told if self.ids else {}
        about = {"id": "b", "format": {"provider": "parquet", "options": {}}, "configuration": configuration}
        about["createdTime"] = 0
        schema = {"schemaString": json.dumps({"type": "struct", "fields": described}), "partitionColumns": []}
        self.commit(
            {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7} | protocol}, {"metaData": about | schema}
        )

    def commit(self, *actions: dict[str, Any]) -> None:
        text = "\n".join(map(json.dumps, actions))
        (self.place / "_delta_log" / f"{self.version:020}.json").write_text(text)
        self.version += 1

    def add(self, rows: pa.Table) -> None:
        for name, number in self.ids.items():
            place = rows.schema.get_field_index(name)
            field = rows.schema.field(place).with_metadata({"PARQUET:field_id": str(number)})
            rows = rows.set_column(place, field, rows.column(place))
        pq.write_table(rows, self.place / f"{self.version}.parquet")
        self.add_file(f"{self.version}.parquet")

    def add_file(self, name: str) -> None:
        """Commit a file that lies in the table's folder."""
        size = (self.place / name).stat().st_size
        file = {"path": name, "partitionValues": {}, "size": size, "modificationTime": 0, "dataChange": True}
        self.commit({"add": file})


def rows(first: int, values: pa.Array) -> pa.Table:
    return pa.table({"id": pa.array(range(first, first + len(DOCUMENTS)), pa.int64()), "v": values})


@pytest.mark.parametrize("features", [(), ("variantShredding",), ("variantShredding-preview",)], ids="-".join)
def test_variants_are_attached_and_indexed(tmp_path: Path, features: tuple[str, ...]) -> None:
    log = Log(tmp_path / "lake", {"id": "long", "v": "variant"}, "none", *features)
    log.add(rows(0, variants()))
    table = fuse.attach(tmp_path / "lake", tmp_path / "table", "delta")
    assert table.schema.field("v").type == VARIANT
    table.create_index("by_path", "json_path", ["v"], paths="$.n")
    assert table.to_arrow().column("v").to_pylist() == DOCUMENTS
    log.add(rows(10, variants()))
    log.add(pa.table({"id": [20]}))
    table.sync()
    assert table.to_arrow("variant_get(v, '$.n', 'int') = 2", ["id"]).column("id").to_pylist() == [1, 11]
    assert table.explain("variant_get(v, '$.n', 'int') = 7").blocks.kept == 0
    assert table.count("v IS NULL") == 3
    assert table.convert().row_count == 13
    table.append([{"id": 30, "v": '{"n":3}'}])
    table.delete("id = 1")
    assert table.to_arrow("variant_get(v, '$.n', 'int') > 1", ["id"]).column("id").to_pylist() == [11, 30]


def test_a_variant_that_nobody_reads_is_left_out_for_good(tmp_path: Path) -> None:
    log = Log(tmp_path / "lake", {"id": "long", "v": "variant"})
    log.add(rows(0, variants()))
    log.add(rows(10, variants(odd=True)))
    with pytest.warns(fuse.LeftOutWarning, match="'v'.*typed_value is uint64"):
        table = fuse.attach(tmp_path / "lake", tmp_path / "table", "delta")
    for first in (20, 30):
        log.add(rows(first, variants()))
        assert not table.sync().reread
    assert table.schema.names == ["id"]
    assert table.count("id > 14") == 13


def test_a_file_that_nobody_reads_leaves_the_table_as_it_was(tmp_path: Path) -> None:
    log = Log(tmp_path / "lake", {"id": "long", "v": "variant"})
    log.add(rows(0, variants()))
    table = fuse.attach(tmp_path / "lake", tmp_path / "table", "delta")
    log.add(rows(10, variants(odd=True)))
    with pytest.raises(fuse.SchemaError, match=r"2\.parquet: column 'v' is a VARIANT shredded in a way"):
        table.sync()
    assert table.to_arrow().column("v").to_pylist() == DOCUMENTS


def test_a_column_that_earlier_versions_left_out_comes_with_the_next_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log(tmp_path / "lake", {"id": "long", "v": "variant"})
    log.add(rows(0, shredded([{"n": 1}, {}, "x", None, ..., 5], {"n": pa.int64()})))
    with monkeypatch.context() as earlier:
        earlier.setattr("fuse_storage.parquet.foreign.variants.variant_problem", lambda *_: "is shredded")
        earlier.setattr("fuse_storage.parquet.foreign.variants.WITHOUT_SHREDDING_HINT", "of an earlier version")
        with pytest.warns(fuse.LeftOutWarning, match="'v'.*of an earlier version"):
            table = fuse.attach(tmp_path / "lake", tmp_path / "table", "delta")
    log.add(rows(10, variants()))
    assert table.sync().reread
    found = table.to_arrow().sort_by("id").column("v").to_pylist()
    assert found == ['{"n":1}', "{}", '"x"', "null", None, "5", *DOCUMENTS]
    assert not table.inspect.left_out()


PART = {"nullable": True, "metadata": {}}
AROUND: dict[str, Any] = {
    "id": "long",
    "s": {
        "type": "struct",
        "fields": [{"name": "a", "type": "long", **PART}, {"name": "v", "type": "variant", **PART}],
    },
    "l": {"type": "array", "elementType": "variant", "containsNull": True},
    "m": {"type": "map", "keyType": "string", "valueType": "variant", "valueContainsNull": True},
}


def rows_around(first: int, values: pa.Array) -> pa.Table:
    """Each value within a struct, an array and a map."""
    count = len(values)
    struct = pa.StructArray.from_arrays([pa.array(range(count)), values], ["a", "v"])
    keys = pa.array(["k"] * count)
    nested = {"s": struct, "l": pa.ListArray.from_arrays(pa.array(range(count + 1), pa.int32()), values)}
    nested["m"] = pa.MapArray.from_arrays(pa.array(range(count + 1), pa.int32()), keys, values)
    return pa.table({"id": range(first, first + count), **nested})


def test_variants_within_columns_are_attached_and_indexed(tmp_path: Path) -> None:
    log = Log(tmp_path / "lake", AROUND)
    log.add(rows_around(0, variants()))
    table = fuse.attach(tmp_path / "lake", tmp_path / "table", "delta")
    assert not table.inspect.left_out()
    assert "nested-variant" in table.snapshot.reader_features
    shown = [
        {"id": number, "s": {"a": number, "v": text}, "l": [text], "m": [("k", text)]}
        for number, text in enumerate(DOCUMENTS)
    ]
    assert table.to_arrow().to_pylist() == shown
    table.create_index("by_path", "json_path", ["s.v"], paths="$.n")
    log.add(rows_around(10, variants()))
    log.add(pa.table({"id": [20]}))
    table.sync()
    assert table.to_arrow("variant_get(s.v, '$.n', 'int') = 2", ["id"]).column("id").to_pylist() == [1, 11]
    assert table.explain("variant_get(s.v, '$.n', 'int') = 7").blocks.kept == 0
    assert table.count("m['k'] IS NULL") == 3
    assert table.convert().row_count == 13
    table.append([{"id": 30, "s": {"v": '{"n":3}'}}])
    table.update("id = 0", {"l": "NULL"})
    assert table.to_arrow("variant_get(s.v, '$.n', 'int') > 1", ["id"]).column("id").to_pylist() == [1, 11, 30]


@pytest.mark.parametrize("name", ["s", "l", "m"])
def test_a_shredded_variant_within_a_column_is_put_together(name: str, tmp_path: Path) -> None:
    way = shredded([{"n": 1, "o": [2]}, {}, "x", None, ..., 5], {"n": pa.int64()})
    texts = ['{"n":1,"o":[2]}', "{}", '"x"', "null", None, "5"]
    log = Log(tmp_path / "lake", {each: AROUND[each] for each in ("id", name)})
    log.add(rows_around(0, variants()).select(["id", name]))
    table = fuse.attach(log.place, tmp_path / "table", "delta")
    assert "converted" not in (table.snapshot.source or {})
    log.add(rows_around(10, way).select(["id", name]))
    table.sync()
    found = table.to_arrow("id >= 10").sort_by("id").column(name).to_pylist()
    assert [
        {"s": lambda each: each["v"], "l": lambda each: each[0], "m": lambda each: each[0][1]}[name](each)
        for each in found
    ] == texts
    assert (table.snapshot.source or {})["converted"] == [name]  # which Spark's reader is not asked for
    where = {"s": "s.v:n::int = 1", "l": "get(l, 0):n::int = 1", "m": "m['k']:n::int = 1"}[name]
    assert table.to_arrow(where, ["id"]).column("id").to_pylist() == [0, 10]


@pytest.mark.parametrize("name", ["s", "l", "m"])
def test_a_variant_within_a_column_that_nobody_reads_is_left_out_or_fails_the_sync(name: str, tmp_path: Path) -> None:
    odd = rows_around(10, variants(odd=True)).select(["id", name])
    plain = rows_around(0, variants()).select(["id", name])
    log = Log(tmp_path / "lake", {each: AROUND[each] for each in ("id", name)})
    log.add(plain)
    table = fuse.attach(log.place, tmp_path / "table", "delta")
    log.add(odd)
    with pytest.raises(fuse.SchemaError, match=rf"2\.parquet: '{name}.*' is a VARIANT shredded in a way"):
        table.sync()
    assert table.count() == len(DOCUMENTS)
    with pytest.warns(fuse.LeftOutWarning, match=rf"'{name}.*typed_value is uint64"):
        table = fuse.attach(log.place, tmp_path / "other", "delta")
    log.add(plain)
    assert not table.sync().reread
    assert table.schema.names == ["id"]
