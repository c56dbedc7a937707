"""No block of the base of a partitioned table mixes values, whoever writes it, and whatever else is refused by name."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fuse_storage as storage
from fuse_storage import InvalidArgument, SchemaError, StagedSegment, StorageError, StoredTable, Unsupported
from fuse_storage.partitions.spec import MAX_PARTITION_VALUE_BYTES
from fuse_storage.testing import check_invariants
from fuse_storage.validation import features

COLUMNS = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("city", pa.string())])
CITIES = ["Bonn", "", None, "null", "Bonn "]


def rows(count: int) -> pa.Table:
    days = [None if n % 5 == 0 else date(2026, 1, n % 3 + 1) for n in range(count)]
    return pa.table([range(count), days, [CITIES[n % 5] for n in range(count)]], COLUMNS)


def created(url: str, *partitions: str, schema: pa.Schema = COLUMNS, **properties: Any) -> StoredTable:
    return StoredTable.create(url, schema, properties=properties, partitions=partitions)


def staged(table: StoredTable, data: pa.Table, **options: Any) -> list[StagedSegment]:
    with table.writer(**options) as writer:
        for batch in data.to_batches(max_chunksize=7):
            writer.write(batch)
        return writer.finish()


def appended(table: StoredTable, data: pa.Table) -> StoredTable:
    return table.transaction().append(staged(table, data)).commit()


def block_values(table: StoredTable, name: str) -> list[list[Any]]:
    blocks = table.blocks()
    return [table.read_block(blocks, n, [name]).column(0).to_pylist() for n in range(len(blocks))]


def test_blocks_are_filled_by_partition_in_whatever_order_rows_come(url: str) -> None:
    table = appended(created(url, "day", block_rows=10), rows(100))

    counts = dict.fromkeys(table.blocks().partitions, 0)
    for partition, count in zip(table.blocks().partitions, table.blocks().row_counts.tolist(), strict=True):
        counts[partition] += count
    assert counts == {'["2026-01-01"]': 27, '["2026-01-02"]': 27, '["2026-01-03"]': 26, "[null]": 20}
    assert len(table.blocks()) == 3 + 3 + 3 + 2
    assert sorted(chain.from_iterable(block_values(table, "id"))) == list(range(100))
    check_invariants(table)


def test_several_columns_make_one_partition_and_like_values_do_not_meet(url: str) -> None:
    """An empty text, "null" and NULL are three, and a comma in one value is not one between two."""
    schema = pa.schema([("a", pa.string()), ("b", pa.string())])
    pairs = [("x,y", "z"), ("x", "y,z"), (None, "null"), ("null", None), ("", None), ('"', "'"), ("x", "Y,z")]
    table = appended(created(url, "a", "b", schema=schema), pa.table([*zip(*pairs * 2, strict=True)], schema))

    assert sorted(map(json.loads, table.blocks().partitions), key=str) == sorted(map(list, pairs), key=str)
    check_invariants(table)


@pytest.mark.parametrize(
    ("data_type", "values"),
    [
        (pa.bool_(), [True, False, None]),
        (pa.int8(), [-128, 0, 127]),
        (pa.decimal128(38, 3), [Decimal("1.000"), Decimal("-1.000"), Decimal("9" * 35 + ".999"), None]),
        (pa.timestamp("us", "UTC"), [datetime(2026, 3, 29, 0, 59, 59, 999999, UTC), datetime(1, 1, 1, tzinfo=UTC)]),
        (pa.timestamp("us"), [datetime(9999, 12, 31, 23, 59), None]),
        (pa.date32(), [date(1582, 10, 10), date(9999, 12, 31)]),
        (pa.binary(), [b"", b"\x00\xff", None]),
        (pa.string(), ["ä" * (MAX_PARTITION_VALUE_BYTES // 2), "ä" * 127, "\u0000", "a\u0308", "ä", "\U0010ffff" * 60]),
    ],
    ids=lambda each: str(each) if isinstance(each, pa.DataType) else "",
)
def test_values_come_back_from_metadata_as_they_are(url: str, data_type: pa.DataType, values: list[Any]) -> None:
    schema = pa.schema([("p", data_type)])
    table = appended(created(url, "p", schema=schema), pa.table([values * 3], schema))
    spec, blocks = storage.PartitionSpec.from_snapshot(table.snapshot), table.blocks()
    assert spec is not None
    statistics = blocks.statistics(1)
    assert statistics is not None

    found = [spec.decode(str(text))[0].as_py() for text in blocks.partitions]
    assert found == values
    assert [(low, high) for low, high in zip(statistics.min.to_pylist(), statistics.max.to_pylist(), strict=True)] == [
        (value, value) for value in values
    ]
    check_invariants(table)


@pytest.mark.parametrize(
    "data_type", [pa.float32(), pa.float64(), pa.list_(pa.int8()), pa.struct([("x", pa.int8())])], ids=str
)
def test_columns_without_exact_plain_values_are_refused(url: str, data_type: pa.DataType) -> None:
    """0.0 and -0.0 are equal and two values, and NaN is equal to nothing or to itself."""
    with pytest.raises(SchemaError, match="no table is partitioned by such: choose"):
        created(url, "p", schema=pa.schema([("p", data_type)]))


@pytest.mark.parametrize(
    ("names", "told"), [(["day", "day"], "'day' twice"), (["dya"], "did you mean .*'day'"), (["place.x"], "no column")]
)
def test_other_columns_are_refused(url: str, names: list[str], told: str) -> None:
    with pytest.raises(SchemaError, match=told):
        created(url, *names)


@pytest.mark.parametrize(
    ("data_type", "value", "told"),
    [
        (pa.string(), "x" * (MAX_PARTITION_VALUE_BYTES + 1), "257 bytes, 'xxx.*cluster by such"),
        (pa.string(), "ä" * 129, "258 bytes"),
        (pa.timestamp("us"), pa.scalar(1 << 62, pa.int64()).cast(pa.timestamp("us")), "no partition: .*; the table is"),
        (pa.date32(), pa.scalar(2**30, pa.int32()).cast(pa.date32()), "no partition: "),
    ],
    ids=["long", "long text", "far time", "far day"],
)
def test_values_that_metadata_cannot_hold_are_refused(url: str, data_type: pa.DataType, value: Any, told: str) -> None:
    schema = pa.schema([("p", data_type)])
    table = created(url, "p", schema=schema)

    with pytest.raises(SchemaError, match=told):
        staged(table, pa.table([pa.array([value], data_type)], schema))
    with pytest.raises(SchemaError, match=told):  # hot rows are to be tiered one day
        storage.append_hot(table, pa.table([pa.array([value], data_type)], schema))
    assert [found.key for found in table.store.list("_b")] == [found.key for found in table.store.list("_h")] == []


def test_what_waits_for_full_blocks_is_bounded(url: str) -> None:
    table, data = created(url, "city"), rows(100)
    with table.writer(sort_bytes=data.nbytes // 5) as writer:
        held = []
        for batch in data.to_batches(max_chunksize=5):
            writer.write(batch)
            held.append(sum(buffer.bytes for buffer in writer._buffers._buffers.values()))
        table = table.transaction().append(writer.finish()).commit()

    assert max(held) <= data.nbytes // 5
    assert sorted(chain.from_iterable(block_values(table, "id"))) == list(range(100))
    assert len(table.blocks()) < 40


def test_more_partitions_than_a_write_may_have_are_refused_before_they_are_written(url: str) -> None:
    table = created(url, "id")

    with pytest.raises(InvalidArgument, match=r"more than 1,000 partitions by id, .* keep rows together by cluster_by"):
        staged(table, rows(1001))
    assert not list(table.store.list("_b"))


def test_the_tasks_of_one_write_are_counted_together(url: str) -> None:
    table = created(url, "id", max_partitions=5)
    parts = [staged(table, rows(9).slice(start, 3)) for start in (0, 3)]

    with pytest.raises(InvalidArgument, match="more than 5 partitions"):
        table.transaction().append([*parts[0], *parts[1]]).commit()
    assert table.transaction().append(parts[0]).commit().snapshot.row_count == 3


def unsplit(table: StoredTable) -> list[StagedSegment]:
    """Rows as whoever knows no partitions stages them."""
    with table.writer() as writer:
        writer.partitions = writer._buffers.spec = None
        writer.write(rows(4))
        return writer.finish()


def mislabelled(table: StoredTable, *names: str) -> list[StagedSegment]:
    """Rows by other columns than the table's."""
    spec = storage.PartitionSpec(tuple(table.snapshot.schema.find([name]) for name in names))
    with table.writer() as writer:
        writer.partitions = writer._buffers.spec = spec
        writer.write(rows(4))
        return writer.finish()


def relabelled(table: StoredTable) -> list[StagedSegment]:
    """Each block says that it is of another partition."""
    return said_to_be_of_one(table, rows(4).to_batches(max_chunksize=1))


def with_null(table: StoredTable) -> list[StagedSegment]:
    """A block of one day in which one row has none."""
    return said_to_be_of_one(table, pa.table([[1, 2], [date(2026, 2, 2), None], ["", ""]], COLUMNS).to_batches())


def said_to_be_of_one(table: StoredTable, blocks: Sequence[pa.RecordBatch]) -> list[StagedSegment]:
    with table.writer() as writer:
        for block in blocks:
            writer._start_block(pa.Table.from_batches([block]), '["2026-02-02"]')
        return writer.finish()


@pytest.mark.parametrize("stage", [unsplit, mislabelled, relabelled, with_null, lambda table: mislabelled(table, "id")])
@pytest.mark.parametrize("how", ["append", "overwrite", "replace"])
def test_a_block_that_is_not_of_one_partition_is_not_committed(url: str, stage: Any, how: str) -> None:
    table = appended(created(url, "day"), rows(3))
    bad, transaction = stage(table), table.transaction()
    if how == "replace":
        replaced = storage.BlockReplacement(tuple(table.blocks().ids), sum(each.block_count for each in bad))
        transaction.replace_blocks([replaced], bad, table.segments().ids)
    else:
        getattr(transaction, how)(bad)

    with pytest.raises(
        StorageError, match=r"is no partition by day|not of one partition by day, and nothing was committed"
    ):
        transaction.commit()
    assert table.refresh() is table


def test_a_partition_column_is_renamed_and_neither_dropped_nor_given_another_type(url: str) -> None:
    table = appended(
        created(url, "id", "city", schema=pa.schema([("id", pa.int32()), ("city", pa.string())])),
        pa.table({"id": pa.array([1], pa.int32()), "city": ["x"]}),
    )
    steps = {
        "dropped": partial(storage.drop_column, path="city"),
        "made bigint": partial(storage.change_type, path="id", data_type=pa.int64()),
    }
    for told, step in steps.items():
        with pytest.raises(SchemaError, match=f"cannot be {told}: the table is partitioned by it"):
            table.transaction().evolve_schema(step).commit()

    renamed = table.transaction().evolve_schema(partial(storage.rename_column, path="id", to="number")).commit()
    after = appended(renamed, pa.table({"number": pa.array([1, 2], pa.int32()), "city": ["x", "x"]}))
    assert after.blocks().partitions == ['[1,"x"]', '[1,"x"]', '[2,"x"]']
    check_invariants(after)


def test_the_property_is_the_tables_own(url: str) -> None:
    with pytest.raises(InvalidArgument, match=r"the property partition_ids holds ids .*partition_by="):
        StoredTable.create(url, COLUMNS, properties={"partition_ids": [1]})
    snapshot = created(url, "day").snapshot
    for change in ({"updates": {"partition_ids": [1]}}, {"updates": {}, "removals": ["partition_ids"]}):
        with pytest.raises(InvalidArgument, match="partition_ids"):
            storage.update_properties(snapshot, **change)  # type: ignore[arg-type]


def test_who_does_not_know_partitions_reads_and_does_not_write(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = appended(created(url, "day"), rows(9))
    assert table.snapshot.writer_features == ("partitions",)
    assert table.snapshot.properties == {"partition_ids": [2]}
    storage.process_cache.clear()
    monkeypatch.setattr(features, "WRITER_FEATURES", frozenset())

    older = StoredTable.open(url)
    assert sorted(chain.from_iterable(block_values(older, "id"))) == list(range(9))
    with pytest.raises(Unsupported, match="'partitions'"):
        older.writer()


def test_without_partitions_nothing_of_them_is_stored(url: str) -> None:
    table = appended(created(url), rows(9))

    assert (table.snapshot.writer_features, dict(table.snapshot.properties)) == ((), {})
    assert table.blocks().partitions == [None]


def test_segments_that_merge_clones_and_restored_states_keep_partitions(url: str) -> None:
    table = created(url, "day", segment_blocks=8)
    for start in range(0, 12, 4):
        table = appended(table, rows(40).slice(start, 4))
    before = table.blocks().partitions
    table = table.transaction().compact_segments().commit()
    copy = storage.clone_table(table, storage.open_store(f"{url}-clone"))
    emptied = table.transaction().overwrite([]).commit()
    back = emptied.transaction().restore(table.snapshot).commit()

    assert table.blocks().partitions == copy.blocks().partitions == back.blocks().partitions == before
    for each in (table, back, appended(copy, rows(8)), appended(back, rows(8))):
        check_invariants(each)


def test_a_commit_that_loses_a_race_checks_its_blocks_once(url: str) -> None:
    store = storage.meter_requests(storage.open_store(url))
    table = StoredTable.create(store, COLUMNS, partitions=("day",))
    mine, base = staged(table, rows(9)), table
    appended(StoredTable.open(url), rows(3))
    store.reset()
    after = base.transaction().append(mine).commit()

    read = [key for _, key, _ in store.reads if key in [f"_sg/{segment.id}.parquet" for segment in mine]]
    assert (len(read), after.snapshot.row_count) == (1, 12)


def damaged(table: StoredTable, ids: Sequence[Any]) -> StoredTable:
    snapshot = replace(table.snapshot, properties={"partition_ids": ids})
    return StoredTable(table.store, table.branch, table.entry, snapshot)


@pytest.mark.parametrize("ids", [[], [9], ["day"], "day", None, [[2]], [True]], ids=str)
def test_columns_that_no_writer_chose_are_damage(url: str, ids: Any) -> None:
    with pytest.raises(storage.Corrupt, match="names what is no column"):
        damaged(created(url, "day"), ids).writer()


@pytest.mark.parametrize("text", ["{}", "[", "[1]", '["2026-13-01"]', "[null,null]", "[" * 9000, '["x"]', "[true]"])
def test_a_text_that_no_writer_wrote_is_damage(url: str, text: str) -> None:
    spec = storage.PartitionSpec.from_snapshot(created(url, "day").snapshot)
    assert spec is not None
    with pytest.raises(storage.Corrupt, match="is no partition by day"):
        spec.decode(text)


def test_numbers_of_rows_do_not_decide_which_are_alike() -> None:
    """Against a plain grouping, by two columns with NULLs."""
    schema = storage.Schema.create(pa.schema([("a", pa.int8()), ("b", pa.string())]))
    spec, draw = storage.PartitionSpec(schema.fields), np.random.default_rng(7)
    data = pa.table([draw.choice([None, 1, 2, -1], 300), draw.choice([None, "", "1", "[1]"], 300)], schema.arrow)
    found = {text: part.to_pylist() for text, part in spec.split(data)}

    expected: dict[str, list[Any]] = {}
    for row in data.to_pylist():
        expected.setdefault(json.dumps([row["a"], row["b"]], separators=(",", ":")), []).append(row)
    assert found == expected
