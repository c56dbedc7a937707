"""Delta tables whose logs say what no writer at hand says: they are read as the log has it, or refused by name."""

import json
import struct
import tracemalloc
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuse_index as fuse
from fuse_index.sources.delta.source import DeltaSource


def written_log(
    place: Path,
    features: list[str],
    configuration: dict[str, str],
    add: dict[str, Any],
    fields: Any = None,
    rows: pa.Table | None = None,
) -> str:
    """A table of one file, whose log says what no writer at hand writes."""
    (place / "_delta_log").mkdir(parents=True)
    rows = rows or pa.table({"a": pa.array(range(10)), "b": ["x"] * 10})
    pq.write_table(rows, place / "f.parquet", row_group_size=10)
    plain = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in [("a", "long"), ("b", "string")]
    ]
    schema = json.dumps({"type": "struct", "fields": fields or plain})
    size = (place / "f.parquet").stat().st_size
    actions = [
        {
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": features,
                "writerFeatures": features,
            }
        },
        {
            "metaData": {
                "id": "11111111-1111-1111-1111-111111111111",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": schema,
                "partitionColumns": [],
                "configuration": configuration,
                "createdTime": 0,
            }
        },
        {
            "add": {
                "path": "f.parquet",
                "partitionValues": {},
                "size": size,
                "modificationTime": 1,
                "stats": json.dumps({"numRecords": len(rows)}),
                "dataChange": True,
                **add,
            }
        },
    ]
    (place / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)))
    return str(place)


def deletion_vector(*positions: int) -> dict[str, Any]:
    """A vector within the log: a magic number, then a 64-bit Roaring bitmap of one array of positions, in Z85."""
    bitmap = struct.pack("<IIHHI", 12346, 1, 0, len(positions) - 1, 16) + struct.pack(f"<{len(positions)}H", *positions)
    data = struct.pack("<IQI", 1681511377, 1, 0) + bitmap
    letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    numbers = struct.unpack(f">{len(data) // 4}I", data)
    text = "".join(letters[number // 85**power % 85] for number in numbers for power in (4, 3, 2, 1, 0))
    return {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": len(data), "cardinality": len(positions)}


UNREADABLE = {"storageType": "i", "pathOrInlineDv": "0" * 40, "sizeInBytes": 32, "cardinality": 1}


def mapped(name: str, physical: str, kind: str, number: int) -> dict[str, Any]:
    metadata = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def test_columns_are_mapped_by_their_names_in_files(tmp_path: Path) -> None:
    fields = [mapped("renamed", "a", "long", 1), mapped("a", "b", "string", 2)]
    place = written_log(tmp_path / "lake", ["columnMapping"], {"delta.columnMapping.mode": "name"}, {}, fields)
    table = fuse.attach(place, tmp_path / "table", format="delta")

    assert table.to_arrow("renamed = 7").to_pylist() == [{"renamed": 7, "a": "x"}]
    assert table.count("a = 'x'") == 10


def logged_field(name: str, kind: Any, **metadata: str) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def test_a_type_that_was_widened_is_read_in_older_files(tmp_path: Path) -> None:
    fields = [logged_field("a", "decimal(25,2)"), logged_field("b", "string")]
    table = fuse.attach(written_log(tmp_path / "wide", ["typeWidening"], {}, {}, fields), tmp_path / "table", "delta")
    assert table.to_arrow()["a"].to_pylist() == [Decimal(n) for n in range(10)]
    assert table.count("a = 7.00") == 1
    fields = [logged_field("a", "decimal(20,2)"), logged_field("b", "string")]
    place = written_log(tmp_path / "wrong", ["typeWidening"], {}, {}, fields)
    with pytest.raises(fuse.SchemaError, match=r"f\.parquet has column 'a' as int64"):
        fuse.attach(place, tmp_path / "other", format="delta")


def test_times_of_files_are_in_utc_where_the_log_says_so(tmp_path: Path) -> None:
    times = [datetime(2024, 1, 1) + timedelta(hours=n) for n in range(40)]
    naive = pa.table({"n": range(40), "at": pa.array(times, pa.timestamp("us"))})
    fields = [logged_field("n", "long"), logged_field("at", "timestamp")]
    place = written_log(tmp_path / "lake", [], {}, {}, fields, naive)

    table = fuse.attach(place, tmp_path / "table", format="delta")
    assert table.to_arrow()["at"].to_pylist() == [time.replace(tzinfo=UTC) for time in times]
    table.create_index("by_at", "bloom", ["at"])
    condition = "at >= TIMESTAMP'2024-01-02 00:00:00Z' AND at < TIMESTAMP'2024-01-02 02:00:00Z'"
    assert table.scan(condition, columns=["n"]).to_arrow()["n"].to_pylist() == [24, 25]
    assert table.explain(condition).to_dict()["zones"]["kept"] == 1
    assert table.count("at = TIMESTAMP'2024-01-01 07:00:00Z'") == 1


def test_texts_that_spark_pads_are_left_out_by_name(tmp_path: Path) -> None:
    for number, (kind, is_padded) in enumerate(
        [("varchar(5)", False), ("array<varchar(5)>", False), ("char(5)", True), ("struct<a:char(5)>", True)]
    ):
        fields = [logged_field("a", "long"), logged_field("b", "string", __CHAR_VARCHAR_TYPE_STRING=kind)]
        place = written_log(tmp_path / f"{number}", [], {}, {}, fields)
        if is_padded:
            told = r"column 'b' has texts of type CHAR\(5\).* COLUMN b TYPE STRING"
            with pytest.warns(fuse.LeftOutWarning, match=told):
                table = fuse.attach(place, tmp_path / f"table {number}", format="delta")
            assert table.schema.names == ["a"]
        else:
            assert fuse.attach(place, tmp_path / f"table {number}", format="delta").count() == 10


def test_what_cannot_be_honoured_is_refused_by_name(tmp_path: Path) -> None:
    cases = [
        (
            ["deletionVectors"],
            {},
            {"deletionVector": deletion_vector(1, 3) | {"pathOrInlineDv": "a" * 40}},
            None,
            r"f\.parquet has a deletion vector in a format that is not known",
        ),
        (["newestThing"], {}, {}, None, "'newestThing'"),
    ]
    for number, (features, configuration, add, fields, message) in enumerate(cases):
        place = written_log(tmp_path / str(number), features, configuration, add, fields)
        with pytest.raises((fuse.Unsupported, fuse.StorageError), match=message):
            fuse.attach(place, tmp_path / f"table{number}", format="delta")
    whole = written_log(tmp_path / "whole", ["deletionVectors"], {}, {})
    assert fuse.attach(whole, tmp_path / "table-whole", format="delta").count() == 10
    with pytest.raises((fuse.InputError, fuse.StorageError), match="Delta table"):
        fuse.attach(tmp_path / "nowhere", tmp_path / "u", format="delta")


def mark_rows(place: str, version: int, *positions: int) -> None:
    """A commit by which these rows of the one file are deleted, and no others."""
    former = [
        json.loads(line) for line in (Path(place) / "_delta_log" / f"{version - 1:020}.json").read_text().splitlines()
    ]
    before = next(
        {"deletionVector": each["add"]["deletionVector"]} if "deletionVector" in each["add"] else {}
        for each in former
        if "add" in each
    )
    size = (Path(place) / "f.parquet").stat().st_size
    vector = {"deletionVector": deletion_vector(*positions)} if positions else {}
    stats = json.dumps({"numRecords": 10})
    add = {"path": "f.parquet", "partitionValues": {}, "size": size, "modificationTime": 1, "stats": stats}
    actions = [
        {"remove": {"path": "f.parquet", "deletionTimestamp": 1, "dataChange": True, "size": size} | before},
        {"add": add | {"dataChange": True} | vector},
    ]
    (Path(place) / "_delta_log" / f"{version:020}.json").write_text("\n".join(map(json.dumps, actions)))


def test_indexes_stay_where_only_rows_of_a_file_are_deleted(tmp_path: Path) -> None:
    place = written_log(tmp_path / "lake", ["deletionVectors"], {}, {})
    table = fuse.attach(place, tmp_path / "table", format="delta")
    table.create_index("by_a", "bloom", ["a"])
    rows = set(range(10))
    for version, gone in enumerate([(1, 3), (1, 3, 5, 7), (2, 5)], 1):
        mark_rows(place, version, *gone)
        result = table.sync(indexes=False)
        assert (result.added_files, result.rows) == (0, 10 - len(gone))
        assert table.inspect.index("by_a")["blocks_indexed"] == 1
        assert set(table.to_arrow().column("a").to_pylist()) == rows - set(gone)
        assert (table.count("a = 5"), table.count("a = 4"), table.count("a >= 0")) == (5 not in gone, 1, 10 - len(gone))
        assert table.aggregate([], ["count(*)", "min(a)"], "a > 0").to_pylist() == [
            {"count(*)": len(rows - {0, *gone}), "min(a)": min(rows - {0, *gone})}
        ]
    former = table.snapshot.id
    mark_rows(place, 4)  # as RESTORE does
    assert table.sync().rows == 10
    assert sorted(table.changes(former).to_arrow().column("a").to_pylist()) == [2, 5]
    mark_rows(place, 5, *range(10))
    assert (table.sync().rows, table.to_arrow().num_rows) == (0, 0)
    assert table.sync(to=2).rows == 6
    table.convert()
    table.delete("a = 2")
    assert table.sync(reread=True).rows == 5
    assert sorted(table.to_arrow().column("a").to_pylist()) == [0, 4, 6, 8, 9]


def test_deleted_rows_are_followed_while_columns_change(tmp_path: Path) -> None:
    place = written_log(tmp_path / "lake", ["deletionVectors"], {}, {"deletionVector": deletion_vector(1, 3)})
    table = fuse.attach(place, tmp_path / "table", format="delta")
    table.create_index("by_a", "bloom", ["a"])
    log = Path(place) / "_delta_log"
    described = next(line for line in (log / f"{0:020}.json").read_text().splitlines() if "metaData" in line)
    mark_rows(place, 1, 1, 3, 5, 7)
    schema = json.loads(json.loads(described)["metaData"]["schemaString"])
    schema["fields"].append({"name": "c", "type": "long", "nullable": True, "metadata": {}})
    changed = json.loads(described)
    changed["metaData"]["schemaString"] = json.dumps(schema)
    with (log / f"{1:020}.json").open("a") as file:
        file.write("\n" + json.dumps(changed))

    assert (table.count(), table.sync().rows) == (8, 6)
    assert table.schema.names == ["a", "b", "c"]
    assert sorted(table.to_arrow("c IS NULL AND a > 3").column("a").to_pylist()) == [4, 6, 8, 9]


def test_values_of_partitions_take_little_for_each_file(tmp_path: Path) -> None:
    """A hundred partition columns of two thousand files: as dicts they took 9 kB a file, and 12 for a while."""
    names, files = [f"p{number}" for number in range(100)], 2_000
    fields = [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]
    kinds = {name: ("string", "integer", "double", "boolean")[number % 4] for number, name in enumerate(names)}
    fields += [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in kinds.items()]
    said = {"string": "city {}", "integer": "10{}", "double": "-0.{}", "boolean": "true"}
    (tmp_path / "_delta_log").mkdir()
    with (tmp_path / "_delta_log" / f"{0:020}.json").open("w") as log:
        schema = json.dumps({"type": "struct", "fields": fields})
        about = {"id": "i", "format": {"provider": "parquet", "options": {}}, "configuration": {}, "createdTime": 0}
        metadata = about | {"schemaString": schema, "partitionColumns": names}
        log.write(json.dumps({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}) + "\n")
        log.write(json.dumps({"metaData": metadata}) + "\n")
        for file in range(files):
            values = {name: None if file % 9 == 0 else said[kind].format(file % 50) for name, kind in kinds.items()}
            add = {"path": f"{file}.parquet", "partitionValues": values, "size": 9, "modificationTime": 0}
            log.write(json.dumps({"add": {**add, "dataChange": True}}) + "\n")
    source = DeltaSource.open(str(tmp_path), {})
    source.state()  # what is imported is no part of it
    tracemalloc.start()
    state = source.state()
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert (kept < 3_000 * files, peak < 4_500 * files) == (True, True), (kept / files, peak / files)
    (ninth,) = [each for each in state.files if each.location.endswith("/107.parquet")]
    assert dict(ninth.constants) == {
        name: {"string": "city 7", "integer": 107, "double": -0.7, "boolean": True}[kind]
        for name, kind in kinds.items()
    }
    assert set(next(each for each in state.files if each.location.endswith("/9.parquet")).constants.values()) == {None}
