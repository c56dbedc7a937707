"""A Delta table that others write, attached: what Delta's own reader gives, at each version, and what is refused."""

import json
import random
import re
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import fuse_index as fuse
from tests.effort import effort
from tests.index.sources.walks import assert_same_rows


def some_rows(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "small": pa.array([n % 100 for n in numbers], pa.int16()),
            "name": pa.array([None if n % 4 == 0 else f"n{n % 40}" for n in numbers], pa.string()),
            "f": pa.array([float("nan") if n % 7 == 0 else n / 3 for n in numbers], pa.float64()),
            "price": pa.array([Decimal(n) / 100 for n in numbers], pa.decimal128(9, 2)),
            "day": pa.array([date(2024, 1, 1 + n % 3) for n in numbers], pa.date32()),
            "at": pa.array([datetime(2024, 1, 1, n % 24, tzinfo=UTC) for n in numbers], pa.timestamp("us", "UTC")),
            "city": pa.array([["Bonn", "a/b c", None, "Öl 100%"][n % 4] for n in numbers], pa.string()),
            "l": pa.array([[n, None] for n in numbers], pa.list_(pa.int64())),
            "s": pa.array([{"a": n} for n in numbers], pa.struct([("a", pa.int64())])),
        }
    )


CONDITIONS = [
    "id = 33",
    "name = 'n7'",
    "name IS NULL AND id > 20",
    "f > 12",
    "price < 0.10",
    "city = 'a/b c'",
    "city IS NULL",
    "day = DATE'2024-01-02' AND city = 'Öl 100%'",
    "at >= TIMESTAMP'2024-01-01 20:00:00Z'",
    "s.a IN (3, 44)",
]


def lake(tmp_path: Path, partition_by: list[str] | None = None) -> str:
    place = str(tmp_path / "lake")
    for first in (0, 50):
        write_deltalake(place, some_rows(first, 50), mode="append", partition_by=partition_by)
    return place


@pytest.mark.parametrize("partition_by", [None, ["city"], ["day", "city"], ["at", "small"], ["price"]])
def test_rows_are_those_of_the_table(tmp_path: Path, partition_by: list[str] | None) -> None:
    place = lake(tmp_path, partition_by)
    table = fuse.attach(place, tmp_path / "table", format="delta")
    expected = DeltaTable(place).to_pyarrow_table()

    assert_same_rows(table, expected, CONDITIONS)
    for column in ("name", "city"):
        table.create_index(f"by_{column}", "bloom", [column])
        assert table.verify_index(f"by_{column}").sound
    assert_same_rows(table, expected, CONDITIONS)
    assert set(map(str, table.files())) == {str(Path(uri)) for uri in DeltaTable(place).file_uris()}


def test_versions_are_followed_and_gone_back_to(tmp_path: Path) -> None:
    place = lake(tmp_path)
    table = fuse.attach(place, tmp_path / "table", format="delta")
    table.create_index("by_name", "bloom", ["name"])
    first = table.snapshot.id
    DeltaTable(place).delete("id >= 10 AND id < 60")
    write_deltalake(place, some_rows(200, 30), mode="append")
    DeltaTable(place).update(predicate="id = 5", updates={"name": "'changed'"})
    DeltaTable(place).optimize.compact()

    result = table.sync()
    newest = DeltaTable(place).version()
    assert (newest, 80) == (result.version, result.rows)
    assert_same_rows(table, DeltaTable(place).to_pyarrow_table(), [*CONDITIONS, "name = 'changed'"])
    changes = table.changes(first).to_arrow()
    assert [changes.column("_change_type").to_pylist().count(kind) for kind in ("delete", "insert")] == [51, 31]
    for version in (0, newest - 1, 2, newest):
        assert version == table.sync(to=version).version
        assert_same_rows(table, DeltaTable(place, version=version).to_pyarrow_table(), CONDITIONS)
    assert fuse.open_table(tmp_path / "table", at=first).count() == 100
    for wrong in (newest + 7, "soon"):
        with pytest.raises((fuse.StorageError, fuse.InputError), match=str(wrong)):
            table.sync(to=wrong)
    head = table.snapshot.id
    assert head == table.sync().snapshot  # nothing is committed where nothing changed


@pytest.mark.parametrize("wrong", [-1, 3, 2**63 - 1, 2**70, "²", "+1", "1" * 5000, ""])
def test_a_version_that_is_not_there_is_told(tmp_path: Path, wrong: str | int) -> None:
    table = fuse.attach(lake(tmp_path), tmp_path / "table", format="delta")
    newest = table.sync().version

    with pytest.raises(fuse.InputError, match=f"to={re.escape(repr(wrong))}: the newest version of .* is {newest}"):
        table.sync(to=wrong)
    assert table.sync(to="0").version == 0


def test_a_folder_without_a_log_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(fuse.InputError, match=r"is no Delta table: there is no log \(_delta_log\) in it$") as refused:
        fuse.attach(tmp_path / "none", tmp_path / "table", format="delta")
    assert "\n" not in str(refused.value)


def test_a_sync_reads_the_footers_of_new_files_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fuse_index.sources.sync as module

    place = lake(tmp_path)
    table = fuse.attach(place, tmp_path / "table", format="delta")
    opened: list[int] = []
    reader = module.open_source_files

    def counted(store: Any, source: str, files: Any, progress: Any = None) -> Any:
        opened.append(len(files))
        return reader(store, source, files, progress)

    monkeypatch.setattr(module, "open_source_files", counted)
    write_deltalake(place, some_rows(200, 30), mode="append")
    table.sync()
    table.sync()

    assert opened == [1, 0]


def test_columns_that_come_and_go_are_followed(tmp_path: Path) -> None:
    place = lake(tmp_path)
    table = fuse.attach(place, tmp_path / "table", format="delta")
    more = some_rows(300, 10).append_column("more", pa.array([f"m{n}" for n in range(10)]))
    write_deltalake(place, more, mode="append", schema_mode="merge")
    table.sync()
    assert_same_rows(table, DeltaTable(place).to_pyarrow_table(), [*CONDITIONS, "more = 'm3'", "more IS NULL"])

    fewer = some_rows(400, 10).select(["id", "name"])
    write_deltalake(place, fewer, mode="overwrite", schema_mode="overwrite")
    table.sync()
    assert table.schema.names == ["id", "name"]
    assert_same_rows(table, DeltaTable(place).to_pyarrow_table(), ["id = 405"])

    other = pa.table({"id": [1, 2], "more": [1.5, None]})
    write_deltalake(place, other, mode="overwrite", schema_mode="overwrite")
    result = table.sync()
    assert_same_rows(table, DeltaTable(place).to_pyarrow_table(), ["more > 1", "more IS NULL"])
    assert result.reread
    table.sync(to=2)
    assert_same_rows(table, DeltaTable(place, version=2).to_pyarrow_table(), [*CONDITIONS, "more = 'm3'"])


@pytest.mark.parametrize("seed", range(effort(1)))
def test_random_walks_of_a_table_are_followed(tmp_path: Path, seed: int) -> None:
    chance, place = random.Random(seed), lake(tmp_path, ["city"])
    table = fuse.attach(place, tmp_path / "table", format="delta")
    table.create_index("by_name", "bloom", ["name"])
    for _ in range(5):
        for _ in range(chance.randint(1, 3)):
            start = chance.randint(0, 300)
            match chance.choice(["append", "delete", "update", "optimize", "overwrite"]):
                case "append":
                    write_deltalake(place, some_rows(start, chance.randint(1, 40)), mode="append")
                case "delete":
                    DeltaTable(place).delete(f"id >= {start} AND id < {start + 30}")
                case "update":
                    DeltaTable(place).update(predicate=f"id = {start}", updates={"name": "'u'"})
                case "optimize":
                    DeltaTable(place).optimize.compact()
                case "overwrite":
                    write_deltalake(place, some_rows(start, 20), mode="overwrite")
        table.sync()
        assert_same_rows(table, DeltaTable(place).to_pyarrow_table(), chance.sample(CONDITIONS, 4))


def written_log(
    place: Path, features: list[str], configuration: dict[str, str], add: dict[str, Any], fields: Any = None
) -> str:
    """A table of one file, whose log says what no writer at hand writes."""
    (place / "_delta_log").mkdir(parents=True)
    pq.write_table(pa.table({"a": pa.array(range(10)), "b": ["x"] * 10}), place / "f.parquet")
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
                "stats": json.dumps({"numRecords": 10}),
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


def test_a_type_that_was_widened_is_read_in_older_files(tmp_path: Path) -> None:
    fields = [
        {"name": "a", "type": "decimal(25,2)", "nullable": True, "metadata": {}},
        {"name": "b", "type": "string", "nullable": True, "metadata": {}},
    ]
    place = written_log(tmp_path / "wrong", ["typeWidening"], {}, {}, fields)
    with pytest.raises(fuse.SchemaError, match=r"f\.parquet has column 'a' as int64"):
        fuse.attach(place, tmp_path / "table", format="delta")


def test_what_cannot_be_honoured_is_refused_by_name(tmp_path: Path) -> None:
    variant = [{"name": "a", "type": "variant", "nullable": True, "metadata": {}}]
    cases = [
        (
            ["deletionVectors"],
            {},
            {"deletionVector": deletion_vector(1, 3)},
            None,
            r"f\.parquet has a deletion vector.*PURGE",
        ),
        (
            ["columnMapping"],
            {"delta.columnMapping.mode": "id"},
            {},
            [mapped("a", "a", "long", 1)],
            "maps columns by ids",
        ),
        (["variantType"], {}, {}, variant, "'variantType'"),
    ]
    for number, (features, configuration, add, fields, message) in enumerate(cases):
        place = written_log(tmp_path / str(number), features, configuration, add, fields)
        with pytest.raises((fuse.Unsupported, fuse.StorageError), match=message):
            fuse.attach(place, tmp_path / f"table{number}", format="delta")
    whole = written_log(tmp_path / "whole", ["deletionVectors"], {}, {})
    assert fuse.attach(whole, tmp_path / "table-whole", format="delta").count() == 10
    with pytest.raises((fuse.InputError, fuse.StorageError), match="Delta table"):
        fuse.attach(tmp_path / "nowhere", tmp_path / "u", format="delta")


def test_a_source_that_loses_a_file_is_told_by_its_name(tmp_path: Path) -> None:
    place = lake(tmp_path)
    table = fuse.attach(place, tmp_path / "table", format="delta")
    write_deltalake(place, some_rows(200, 30), mode="append")
    new = [uri for uri in DeltaTable(place).file_uris() if uri not in set(map(str, table.files()))]
    Path(new[0]).unlink()

    with pytest.raises(fuse.NotFound, match=Path(new[0]).name):
        table.sync()
    assert table.count() == 100
