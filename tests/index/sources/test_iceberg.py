"""An Iceberg table that others write, attached: what PyIceberg gives, in each snapshot, and what is refused."""

import json
import random
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable, Table
from pyiceberg.typedef import Record
from pyiceberg.types import (
    DoubleType,
    FixedType,
    IcebergType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    UUIDType,
)

import fuse_index as fuse
from tests.index.sources.one_table import OneTable, add_file, delete_rows_at
from tests.index.sources.walks import assert_same_rows


def some_rows(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "n": pa.array([n % 30 for n in numbers], pa.int32()),
            "name": pa.array([None if n % 4 == 0 else f"n{n % 40}" for n in numbers], pa.string()),
            "f": pa.array([float("nan") if n % 7 == 0 else n / 3 for n in numbers], pa.float64()),
            "price": pa.array([Decimal(n) / 100 for n in numbers], pa.decimal128(9, 2)),
            "day": pa.array([date(2024, 1, 1 + n % 3) for n in numbers], pa.date32()),
            "at": pa.array([datetime(2024, 1, 1, n % 24, tzinfo=UTC) for n in numbers], pa.timestamp("us", "UTC")),
            "l": pa.array([[n] for n in numbers], pa.list_(pa.int64())),
            "s": pa.array([{"a": n, "b": str(n)} for n in numbers], pa.struct([("a", pa.int64()), ("b", pa.string())])),
        }
    )


CONDITIONS = ["id = 33", "n = 7 AND id > 20", "price < 0.10", "f > 12", "day = DATE'2024-01-02'", "s.a IN (3, 44)"]


@pytest.fixture
def catalog(monkeypatch: pytest.MonkeyPatch) -> OneTable:
    made = OneTable("test")
    monkeypatch.setattr("pyiceberg.catalog.load_catalog", lambda name: made)
    return made


def lake(tmp_path: Path, catalog: OneTable, **options: Any) -> Table:
    table = catalog.create(tmp_path / "lake", some_rows(0, 1).schema, **options)
    for first in (0, 50):
        table.append(some_rows(first, 50))
    return table


def attached(tmp_path: Path) -> fuse.Table:
    return fuse.attach("iceberg://test/db.t", tmp_path / "table", format="iceberg")


@pytest.mark.parametrize("partition_by", [None, "day"])
def test_rows_are_those_of_the_table(tmp_path: Path, catalog: OneTable, partition_by: str | None) -> None:
    source = lake(tmp_path, catalog, partition_by=partition_by)
    table = attached(tmp_path)
    table.create_index("by_name", "bloom", ["name"])

    assert table.maintenance.verify_index("by_name").sound
    assert_same_rows(table, source.scan().to_arrow(), [*CONDITIONS, "name = 'n7'", "name IS NULL"])


def test_columns_that_are_renamed_dropped_added_and_widened_are_followed(tmp_path: Path, catalog: OneTable) -> None:
    source = lake(tmp_path, catalog)
    table = attached(tmp_path)
    table.create_index("by_name", "bloom", ["name"])
    first = catalog.load_table("").current_snapshot()
    assert first is not None
    with source.update_schema() as update:
        update.rename_column("name", "label")
        update.update_column("n", LongType())
        update.delete_column("price")
    with source.update_schema() as update:
        update.add_column("price", DoubleType())  # another column of that name
        update.add_column("name", DoubleType())
        update.rename_column(("s", "b"), "c")

    assert table.sync().rows == 100
    conditions = [
        "id = 33",
        "n = 7",
        "label = 'n7'",
        "label IS NULL",
        "price IS NULL AND id < 5",
        "name > 1",
        "s.c = '9'",
    ]
    assert_same_rows(table, source.scan().to_arrow(), conditions)
    assert "by_name" in str(table.explain("label = 'n7'"))
    more = source.scan().to_arrow().slice(0, 5)
    source.append(more.set_column(more.schema.get_field_index("price"), "price", pa.array([1.5] * 5)))
    assert table.sync().added_files == 1
    assert_same_rows(table, source.scan().to_arrow(), [*conditions, "price = 1.5"])

    result = table.sync(to=first.snapshot_id)
    assert first.snapshot_id == result.version
    assert_same_rows(table, source.scan(snapshot_id=first.snapshot_id).to_arrow(), [*CONDITIONS, "name = 'n7'"])
    table.sync()
    assert_same_rows(table, source.scan().to_arrow(), conditions)


def test_files_without_the_column_of_their_partition_have_its_value(tmp_path: Path, catalog: OneTable) -> None:
    rows = some_rows(0, 100).select(["id", "n", "name", "day"])
    source = catalog.create(tmp_path / "lake", rows.schema, partition_by="day")
    source.append(rows)
    add_file(source, tmp_path / "bare.parquet", rows.slice(50).drop_columns("day"), Record(19_731))  # 2024-01-09
    table = attached(tmp_path)
    table.create_index("by_day", "bloom", ["day"])

    assert table.count("day = DATE'2024-01-09'") == 50
    assert_same_rows(table, source.scan().to_arrow(), ["id = 33", "day = DATE'2024-01-09'", "day IS NULL"])


def test_rows_that_are_deleted_by_their_positions_are_followed(tmp_path: Path, catalog: OneTable) -> None:
    source = lake(tmp_path, catalog)
    table = attached(tmp_path)
    table.create_index("by_name", "bloom", ["name"])
    conditions = [*CONDITIONS, "name = 'n7'", "name IS NULL", "id IN (3, 8, 9)"]
    for number, positions in enumerate([[3, 8], [0, 9, 40], list(range(50))]):
        delete_rows_at(source, tmp_path / f"{number}.parquet", positions)
        result = table.sync(indexes=False)
        assert result.added_files == (number > 1)  # of a file without rows nothing stays, and it is looked into again
        assert table.inspect.index("by_name")["blocks_indexed"] == table.snapshot.block_count
        assert_same_rows(table, source.scan().to_arrow(), conditions)
    snapshots = [each.snapshot_id for each in source.snapshots()]
    for snapshot in (*reversed(snapshots), snapshots[-1]):
        table.sync(to=snapshot)
        assert_same_rows(table, source.scan(snapshot_id=snapshot).to_arrow(), conditions)
    with source.update_schema() as update:
        update.add_column("more", LongType())
    delete_rows_at(source, tmp_path / "last.parquet", [1, 2])
    table.sync()
    assert_same_rows(table, source.scan().to_arrow(), [*conditions, "more IS NULL AND id < 60"])


def test_deletes_that_rewrite_files_are_followed(tmp_path: Path, catalog: OneTable) -> None:
    source = lake(tmp_path, catalog)
    table = attached(tmp_path)
    table.create_index("by_name", "bloom", ["name"])
    before = table.snapshot.id
    source.delete("id >= 10 and id < 60")
    source.overwrite(some_rows(200, 20), "id < 3")

    table.sync()
    assert_same_rows(table, source.scan().to_arrow(), [*CONDITIONS, "name = 'n7'"])
    assert table.changes(before).to_arrow().column("_change_type").to_pylist().count("delete") == 53
    for wrong in (17, -1, 2**70, "²", "1" * 5000):
        with pytest.raises(fuse.InputError, match=f"to={wrong!r}: .* has the snapshots"):
            table.sync(to=wrong)


def test_a_metadata_file_and_a_folder_with_a_hint_are_sources(tmp_path: Path, catalog: OneTable) -> None:
    source = lake(tmp_path, catalog)
    place = tmp_path / "lake"
    one = fuse.attach(source.metadata_location.removeprefix("file://"), tmp_path / "one", format="iceberg")
    assert one.count() == 100
    with pytest.raises(fuse.NotFound, match=r"no metadata/version-hint\.text"):
        fuse.attach(place, tmp_path / "two", format="iceberg")
    (place / "metadata" / "version-hint.text").write_text(Path(source.metadata_location).name)
    two = fuse.attach(place, tmp_path / "two", format="iceberg")
    source.append(some_rows(300, 10))
    assert two.sync().added_files == 0
    (place / "metadata" / "version-hint.text").write_text(Path(source.metadata_location).name)
    assert two.sync().added_files == 1
    assert_same_rows(two, StaticTable.from_metadata(source.metadata_location).scan().to_arrow(), CONDITIONS)


def test_an_attachment_that_is_refused_leaves_no_table(tmp_path: Path, catalog: OneTable) -> None:
    source = catalog.create(tmp_path / "lake", pa.schema([("id", pa.int64())]))
    pq.write_table(pa.table({"id": [1]}), tmp_path / "without-ids.parquet")
    source.add_files([str(tmp_path / "without-ids.parquet")])

    for _ in range(2):
        with pytest.raises(fuse.Unsupported, match="no field ids"):
            attached(tmp_path)
        with pytest.raises(fuse.NotFound):
            fuse.open_table(tmp_path / "table")

    catalog.create(tmp_path / "other", pa.schema([("id", pa.int64())])).append(pa.table({"id": [7]}))
    assert attached(tmp_path).to_arrow().to_pylist() == [{"id": 7}]


def test_what_cannot_be_honoured_is_refused_by_name(tmp_path: Path, catalog: OneTable) -> None:
    source = lake(tmp_path, catalog)
    table = attached(tmp_path)
    foreign = tmp_path / "plain.parquet"
    pq.write_table(some_rows(900, 5), foreign)
    source.add_files([f"file://{foreign}"])
    with pytest.raises(fuse.Unsupported, match=r"plain\.parquet: its columns have no field ids"):
        table.sync()
    assert table.count() == 100

    metadata = json.loads(Path(source.metadata_location.removeprefix("file://")).read_text())
    newer = tmp_path / "newer.metadata.json"
    newer.write_text(json.dumps(metadata | {"format-version": 4}))
    with pytest.raises(fuse.StorageError, match=r"newer\.metadata\.json cannot be read as an Iceberg table"):
        fuse.attach(newer, tmp_path / "v4", format="iceberg")


def test_a_snapshot_that_cannot_be_planned_is_an_error_of_ours(tmp_path: Path, catalog: OneTable) -> None:
    source = lake(tmp_path, catalog)
    table = attached(tmp_path)
    source.append(some_rows(200, 10))
    now = source.current_snapshot()
    assert now is not None
    Path(now.manifest_list.removeprefix("file://")).unlink()

    with pytest.raises(fuse.StorageError, match=f"the files of snapshot {now.snapshot_id} cannot be listed"):
        table.sync()
    assert table.count() == 100


def test_columns_whose_names_are_alike_in_files_stay_apart(tmp_path: Path, catalog: OneTable) -> None:
    numbers = pa.int64()
    inner = pa.struct([("c.d", numbers), ("c_d", numbers)])
    schema = pa.schema([("a.b", numbers), ("a_b", numbers), ("A_B_1", numbers), ("s", inner), ("#9", numbers)])
    rows = [{"a.b": 1, "a_b": 2, "A_B_1": 3, "s": {"c.d": 4, "c_d": 5}, "#9": 6}]
    source = catalog.create(tmp_path / "lake", schema)
    source.append(pa.Table.from_pylist(rows, schema))
    table = attached(tmp_path)

    assert table.to_arrow().to_pylist() == rows
    assert table.count("a_b = 2 AND A_B_1 = 3") == 1
    assert table.count("A_B_1 = 2 OR a_b = 1") == 0
    with source.update_schema() as update:
        update.delete_column("A_B_1")
    table.sync()
    rows[0].pop("A_B_1")
    assert table.to_arrow().to_pylist() == rows


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_column_that_comes_back_takes_no_siblings_name(tmp_path: Path, catalog: OneTable, name: str) -> None:
    """Its name in files gets its id, and a sibling may be called just that."""
    numbers = pa.int64()
    source = catalog.create(tmp_path / "lake", pa.schema([("a", numbers), ("a_3", numbers)]))
    source.append(pa.table({"a": [1], "a_3": [2]}))
    table = attached(tmp_path)
    if name == "b":
        with source.update_schema() as update:
            update.rename_column("a_3", "b")
        table.sync()
    with source.update_schema() as update:
        update.delete_column("a")
    with source.update_schema() as update:
        update.add_column("a", LongType())
    table.sync()
    source.append(pa.Table.from_pylist([{"a_3": 5, "b": 5, "a": 6}], source.scan().to_arrow().schema))
    table.sync()

    assert_same_rows(table, source.scan().to_arrow(), ["a = 6", "a IS NULL", "a = 2"])


def test_values_of_partitions_that_paths_escape_are_found(tmp_path: Path, catalog: OneTable) -> None:
    rows = pa.table({"id": [1, 2, 3, 4], "p": ["é", "a/b", "x+y", "50% #?"]})
    source = catalog.create(tmp_path / "lake", rows.schema, partition_by="p")
    source.append(rows)

    assert_same_rows(attached(tmp_path), rows, ["p = 'é'", "p = 'a/b'", "id > 2"])


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (UUIDType(), "u"),
        *((FixedType(16), path) for path in ("u", "s.u", "l.element", "m.value")),
    ],
    ids=str,
)
def test_uuids_and_fixed_bytes_are_bytes(tmp_path: Path, catalog: OneTable, kind: IcebergType, path: str) -> None:
    source = lake(tmp_path, catalog)
    made: dict[str, IcebergType] = {
        "u": kind,
        "s.u": StructType(NestedField(90, "u", kind, required=False)),
        "l.element": ListType(91, kind, element_required=False),
        "m.value": MapType(92, StringType(), 93, kind, value_required=False),
    }
    name, value = "new_" + path.partition(".")[0], UUID(int=77).bytes
    with source.update_schema() as update:
        update.add_column(name, made[path])
    values = {"u": value, "s.u": {"u": value}, "l.element": [value], "m.value": [("k", value)]}
    schema = source.schema().as_arrow()
    rows = [dict.fromkeys(schema.names) | {"id": 500, name: values[path]}, dict.fromkeys(schema.names) | {"id": 501}]
    source.append(pa.Table.from_pylist(rows, schema))
    table = attached(tmp_path)

    found = table.scan("id > 400", columns=["id", name]).to_arrow().sort_by("id").to_pylist()
    assert found == [{"id": 500, name: values[path]}, {"id": 501, name: None}]
    if path == "u":
        table.create_index("by_u", "bloom", [name])
        assert table.count(f"{name} = X'{value.hex()}'") == 1
        assert table.count(f"{name} IS NULL") == 101


def test_columns_of_types_that_nobody_knows_are_left_out_by_name(tmp_path: Path, catalog: OneTable) -> None:
    source = lake(tmp_path, catalog)
    metadata = json.loads(Path(source.metadata_location.removeprefix("file://")).read_text())
    for schema in metadata["schemas"]:
        for number, kind in enumerate(("variant", "geometry(OGC:CRS84)", "timestamp_ns", "unknown", "newest")):
            schema["fields"].append({"id": 90 + number, "name": f"c{number}", "type": kind, "required": False})
    place = tmp_path / "newer.metadata.json"
    place.write_text(json.dumps(metadata | {"format-version": 3, "next-row-id": 100}))

    with pytest.warns(fuse.LeftOutWarning, match=r"'c4' .*column 'c4' is of Iceberg's type newest"):
        table = fuse.attach(place, tmp_path / "table", format="iceberg")
    known = pa.table(
        {"c0": pa.nulls(100, pa.string()), "c2": pa.nulls(100, pa.timestamp("us")), "c3": pa.nulls(100, pa.string())}
    )
    rows = source.scan().to_arrow()
    for name in known.schema.names:
        rows = rows.append_column(name, known.column(name))
    assert_same_rows(table, rows, [*CONDITIONS, "c2 IS NULL AND id < 7"])
    assert {"c4"} <= set(table.inspect.left_out()) <= {"c1", "c4"}


def rows_of(source: Table, first: int, count: int) -> pa.Table:
    """Rows in the columns that a table has now."""
    values: dict[str, list[Any]] = {}
    for column in source.schema().fields:
        numbers = range(first, first + count)
        as_text = isinstance(column.field_type, StringType)
        values[column.name] = [None if n % 5 == 4 else f"n{n % 30}" if as_text else n % 90 for n in numbers]
    values["id"], values["part"] = list(range(first, first + count)), [n % 2 for n in range(first, first + count)]
    return pa.table({name: pa.array(found) for name, found in values.items()}).cast(source.schema().as_arrow())


@pytest.mark.filterwarnings("ignore:Delete operation did not match")
@pytest.mark.parametrize("seed", range(2))
def test_random_walks_of_a_table_are_followed(tmp_path: Path, catalog: OneTable, seed: int) -> None:
    draw = random.Random(seed)
    columns = [("id", pa.int64()), ("part", pa.int32()), ("name", pa.string()), ("n", pa.int32())]
    catalog.create(tmp_path / "lake", pa.schema(columns)).append(
        pa.table({"id": [0], "part": [0], "name": ["n0"], "n": [0]}).cast(pa.schema(columns))
    )
    table = attached(tmp_path)
    table.create_index("by_id", "bloom", ["id"])
    table.create_index("by_name", "bloom", ["name"])
    walked: list[str] = []
    for number in range(1, 11):
        source = catalog.load_table("")
        step = draw.choice(["append", "append", "delete", "overwrite", "rename", "add", "widen", "partition"])
        low = draw.randrange(number * 20)
        renamed = next(field for field in source.schema().fields if field.name.startswith("name"))
        match step:
            case "append":
                source.append(rows_of(source, number * 20, draw.randrange(1, 20)))
            case "delete":
                source.delete(f"id >= {low} and id < {low + 15}")
            case "overwrite":
                source.overwrite(rows_of(source, number * 20, 5), f"id >= {low} and id < {low + 5}")
            case "rename":
                with source.update_schema() as schema:
                    schema.rename_column(renamed.name, f"name{number}")
            case "add":
                with source.update_schema() as schema:
                    schema.add_column(f"more{number}", draw.choice([StringType(), LongType()]))
            case "widen":
                with source.update_schema() as schema:
                    schema.update_column("n", LongType())
            case _:
                with source.update_spec() as spec:
                    if source.spec().fields:
                        spec.remove_field(source.spec().fields[0].name)
                    else:
                        spec.add_identity("part")
        walked.append(step)
        if draw.random() < 0.6 or number == 10:
            table.sync()
            now = catalog.load_table("")
            name = next(field.name for field in now.schema().fields if field.name.startswith("name"))
            conditions = [f"id = {low}", f"id BETWEEN {low} AND {low + 9}", f"{name} = 'n7'", "n > 40 AND part = 1"]
            assert_same_rows(table, now.scan().to_arrow(), conditions)
    assert len(set(walked)) > 3


@pytest.mark.parametrize("votes_only", [False, True])
def test_a_column_that_comes_with_a_default_has_it_in_files_that_were_there(
    tmp_path: Path, catalog: OneTable, votes_only: bool
) -> None:
    source = lake(tmp_path, catalog)
    described = json.loads(Path(source.metadata_location.removeprefix("file://")).read_text())
    folder = tmp_path / "lake" / "metadata"

    def publish(number: int) -> None:
        (folder / f"v{number}.metadata.json").write_text(json.dumps(described))
        (folder / "version-hint.text").write_text(str(number))

    publish(1)
    table = fuse.attach(tmp_path / "lake", tmp_path / "table", "iceberg", votes_only=votes_only)
    (schema,) = described["schemas"]
    schema["fields"].append(
        {"id": 71, "name": "more", "type": "int", "required": False, "initial-default": 5, "write-default": 7}
    )
    described |= {"format-version": 3, "next-row-id": 100, "last-column-id": 71}
    publish(2)
    assert table.sync().kept_files == 0
    assert table.explain("more = 5").blocks.kept == 2
    assert table.explain("more = 7").blocks.kept == table.explain("more IS NULL").blocks.kept == 0
    if not votes_only:
        assert table.count("more = 5") == table.count() == 100
    assert table.sync().kept_files == 2


def test_the_write_default_of_a_source_is_the_tables_once_it_is_converted(tmp_path: Path, catalog: OneTable) -> None:
    source = lake(tmp_path, catalog)
    described = json.loads(Path(source.metadata_location.removeprefix("file://")).read_text())
    folder = tmp_path / "lake" / "metadata"
    columns = [
        ("text", "string", "old", "new"),
        ("day2", "date", "2020-02-03", "2020-02-29"),
        ("at2", "timestamptz", "2020-02-03T01:02:03.000004+00:00", "2021-02-03T01:02:03.000004+00:00"),
        ("fixed2", "fixed[2]", "0001", "0002"),
        ("uuid2", "uuid", "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"),
        ("price2", "decimal(9, 2)", "1.25", "2.50"),
        ("later", "int", None, None),
        ("only_written", "int", None, 3),
    ]

    def publish(number: int, *defaults: tuple[str, str, Any, Any]) -> None:
        (schema,) = described["schemas"]
        fields = [field for field in schema["fields"] if field["id"] < 70]
        for place, (name, kind, initial, write) in enumerate(defaults):
            made = {"id": 70 + place, "name": name, "type": kind, "required": False}
            given = {"initial-default": initial, "write-default": write}
            fields.append(made | {key: value for key, value in given.items() if value is not None})
        schema["fields"] = fields
        described.update({"format-version": 3, "next-row-id": 100, "last-column-id": 80})
        (folder / f"v{number}.metadata.json").write_text(json.dumps(described))
        (folder / "version-hint.text").write_text(str(number))

    publish(1, *columns)
    table = fuse.attach(tmp_path / "lake", tmp_path / "table", "iceberg")
    assert set(table.snapshot.writer_features) == {"write-defaults"}
    publish(2, *(each if each[0] != "later" else ("later", "int", None, 9) for each in columns))
    table.sync()
    initial = table.scan("id = 3").to_arrow().to_pylist()[0]
    table.convert()
    table.append([{"id": 1000}])
    written = table.scan("id = 1000").to_arrow().to_pylist()[0]

    second = bytes(15)
    assert {name: (initial[name], written[name]) for name, *_ in columns} == {
        "text": ("old", "new"),
        "day2": (date(2020, 2, 3), date(2020, 2, 29)),
        "at2": (datetime(2020, 2, 3, 1, 2, 3, 4, UTC), datetime(2021, 2, 3, 1, 2, 3, 4, UTC)),
        "fixed2": (b"\x00\x01", b"\x00\x02"),
        "uuid2": (second + b"\x01", second + b"\x02"),
        "price2": (Decimal("1.25"), Decimal("2.50")),
        "later": (None, 9),
        "only_written": (None, 3),
    }
    assert table.count("text = 'old'") == 100
    table.maintenance.compact()
    assert (table.count("text = 'old'"), table.count("text = 'new'")) == (100, 1)
