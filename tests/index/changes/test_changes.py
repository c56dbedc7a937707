"""Changes between snapshots: what makes the rows of the one those of the other, and no row more."""

import random
from collections import Counter
from datetime import date
from decimal import Decimal
from uuid import uuid4

import pyarrow as pa
import pytest

import fuse_index as fuse
from fuse_index.changes.row_hash import row_hashes
from fuse_storage import meter_requests

SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string()), ("n", pa.int32())])
CITIES = ["Bonn", "Oslo", "Rome", None]
IN, OUT, WAS, IS = "insert", "delete", "update_preimage", "update_postimage"


def rows(*ids, **values):
    return [{"id": row_id, "city": CITIES[row_id % 4], "n": row_id % 3, **values} for row_id in ids]


def told(changes):
    """What happened to which id, in the order in which it is told."""
    return [(row["_change_type"], row["id"]) for row in changes.to_arrow().to_pylist()]


@pytest.fixture
def table():
    """Ten blocks of four rows."""
    made = fuse.create_table(f"memory://changes-{uuid4().hex}", SCHEMA, properties={"block_rows": 4})
    made.append(pa.Table.from_pylist(rows(*range(40)), SCHEMA))
    return made


def opened(table, work):
    """Blocks that were opened meanwhile."""
    store = meter_requests(table.stored.store)
    work(fuse.open_table(store))
    return {key for _, key, _ in store.reads if key.startswith("_b/")}


def test_what_was_appended_is_inserted_and_no_other_block_is_opened(table):
    since = table.snapshot.id
    table.append(rows(50, 51))
    until = table.snapshot.id
    table.append(rows(60))

    new = set(table.stored.blocks().locations[10:11])
    assert opened(table, lambda same: same.changes(since, until).to_arrow()) == new
    assert table.changes(since, until).to_arrow().drop_columns("_change_type").to_pylist() == rows(50, 51)
    assert told(table.changes(since)) == [(IN, 50), (IN, 51), (IN, 60)]
    assert table.changes(since, columns=["city"]).schema.names == ["city", "_change_type"]
    assert table.changes(table.snapshot.id).count() == 0


def test_rows_beside_those_that_changed_are_no_change(table):
    since = table.snapshot.id
    table.update("id IN (5, 30)", {"city": "'Kyiv'"})
    table.delete("id = 6 OR id BETWEEN 8 AND 11")
    table.append(rows(41))

    assert told(table.changes(since)) == [
        *((OUT, row_id) for row_id in (5, 6, 8, 9, 10, 11, 30)),
        (IN, 5),
        (IN, 30),
        (IN, 41),
    ]
    assert table.changes(since).count() == 10
    found = table.changes(since, key=["id"]).to_arrow()
    assert told(table.changes(since, key=["ID"])) == [
        *((OUT, row_id) for row_id in (6, 8, 9, 10, 11)),
        (WAS, 5),
        (IS, 5),
        (WAS, 30),
        (IS, 30),
        (IN, 41),
    ]
    assert [row["city"] for row in found.to_pylist()[5:9]] == ["Oslo", "Kyiv", "Rome", "Kyiv"]


def test_what_keeps_rows_is_no_change(table):
    for row_id in range(40, 46):
        table.append(rows(row_id))
    since = table.snapshot.id
    table.maintenance.compact()
    table.create_index("by_city", "bloom", ["city"])
    assert table.changes(since).count() == 0
    table.delete("id < 20")
    table.restore(since)
    assert table.changes(since).count() == 0
    assert opened(table, lambda same: same.changes(since).to_arrow()) == set()


def test_what_was_appended_and_compacted_is_read_once_and_not_compared(table):
    for row_id in range(40, 46):
        table.append(rows(row_id))
    since = table.snapshot.id
    table.append(rows(50))
    between = table.snapshot
    table.add_column("note", "string")
    table.maintenance.compact()
    table.append([{"id": 51, "city": "Rome", "n": 1, "note": "new"}])
    table.create_index("by_city", "bloom", ["city"])

    def look(same):
        assert told(same.changes(since)) == [(IN, 50), (IN, 51)]
        assert told(same.changes(since, where="note = 'new'", key=["id"])) == [(IN, 51)]

    appended = {
        f"_b/{fuse.open_table(table.stored.store, at=one.id).stored.blocks().ids[-1]}.parquet"
        for one in (between, table.snapshot)
    }
    assert opened(table, look) == appended
    table.stored.store.delete([f"_ss/{between.id}.json"])  # then rows are compared
    assert len(opened(table, look)) > 2
    table.stored.store.create(f"_ss/{between.id}.json", between.encode())
    table.delete("id = 50")
    assert told(table.changes(since)) == [(IN, 51)]


def test_rows_that_came_and_went_are_no_change(table):
    since = table.snapshot.id
    table.append(rows(77))
    table.update("id = 3", {"n": 9})
    table.delete("id = 77")
    table.update("id = 3", {"n": 0})

    assert table.changes(since, key=["id"]).count() == 0


def test_a_tables_own_key_makes_pairs_and_matches_sources(table):
    since = table.snapshot.id
    with pytest.raises(
        fuse.InputError, match=r"the table has no key: say by which columns rows are matched, on=\['id'\]"
    ):
        table.merge(rows(3))
    table.key_by(["id"])
    table.rename_column("id", "number")
    table.rename_column("n", "id")
    table.merge([{"number": 5, "city": "Kyiv"}, {"number": 41, "city": "Kyiv"}])
    pair = [(WAS, 5), (IS, 5), (IN, 41)]

    def found(**how):
        return [(row["_change_type"], row["number"]) for row in table.changes(since, **how).to_arrow().to_pylist()]

    assert found() == found(key=["number"]) == pair
    assert found(columns=["number"]) == pair
    assert found(key=[]) == [(OUT, 5), (IN, 5), (IN, 41)]
    made = fuse.create_table(f"memory://changes-{uuid4().hex}", SCHEMA, key=["id", "city"])
    assert made.snapshot.key == made.clone(f"memory://changes-{uuid4().hex}").snapshot.key == ("id", "city")
    assert made.key_by(None).key == ()
    for wrong in ("id", [3], 3):
        with pytest.raises(fuse.InputError, match="give a list of texts"):
            table.key_by(wrong)
        with pytest.raises(fuse.InputError, match="give a list of texts"):
            table.changes(since, key=wrong)


def test_equal_rows_are_counted(table):
    table.append(rows(7, 7, 7))
    since = table.snapshot.id
    table.overwrite(rows(7, 7), "id = 7")
    assert told(table.changes(since)) == [(OUT, 7), (OUT, 7)]
    table.overwrite(rows(7, 7, 7, 7, 7), "id = 7")
    assert told(table.changes(since)) == [(IN, 7)]


def test_keys_that_are_null_or_not_unique(table):
    table.overwrite([{"id": None, "city": "a", "n": 1}, *rows(1, 1, 1), *rows(2)])
    since = table.snapshot.id
    table.overwrite([{"id": None, "city": "b", "n": 1}, *rows(1, 1, n=8), *rows(2)])

    assert told(table.changes(since, key=["id"])) == [
        (OUT, None),
        (OUT, 1),
        (WAS, 1),
        (IS, 1),
        (WAS, 1),
        (IS, 1),
        (IN, None),
    ]
    assert [kind for kind, _ in told(table.changes(since, key=["id", "n"]))] == [OUT] * 4 + [IN] * 3


def test_with_a_condition_they_are_changes_of_the_rows_that_it_is_true_on(table):
    since = table.snapshot.id
    table.update("id = 1", {"city": "'Bonn'"})
    table.update("id = 4", {"n": 7})
    table.append(rows(44, 45))

    assert told(table.changes(since, where="city = 'Bonn'", key=["id"])) == [(IN, 1), (WAS, 4), (IS, 4), (IN, 44)]
    assert told(table.changes(since, where="city = 'Oslo'")) == [(OUT, 1), (IN, 45)]
    blocks = table.stored.blocks().locations
    assert opened(table, lambda same: same.changes(since, where="id > 40").to_arrow()) == {blocks[10]}


def test_pairs_are_found_over_blocks(table):
    since = table.snapshot.id
    every = table.scan().to_arrow().to_pylist()
    table.overwrite([row | {"n": row["id"] + 100} for row in reversed(every)])

    found = table.changes(since, columns=["id", "n"], key=["id"]).to_arrow().to_pylist()
    assert [(row["_change_type"], row["id"]) for row in found] == [
        (kind, row_id) for row_id in reversed(range(40)) for kind in (WAS, IS)
    ]
    assert all(row["n"] == (row["id"] + 100 if row["_change_type"] == IS else row["id"] % 3) for row in found)


def test_rows_come_in_the_columns_of_the_later_snapshot(table):
    since = table.snapshot.id
    table.add_column("country", "string", default="DE")
    table.change_type("n", "bigint")
    table.rename_column("city", "town")
    assert table.changes(since).count() == 0

    table.update("id = 1", {"country": "'NO'"})
    table.append([{"id": 50, "town": "Lima", "n": 1 << 40, "country": None}])
    found = table.changes(since, key=["id"]).to_arrow()
    assert told(table.changes(since, where="n > 5 OR country = 'NO'")) == [(IN, 1), (IN, 50)]
    assert told(table.changes(since, where="town = 'Oslo' AND country = 'DE'")) == [(OUT, 1)]
    assert found.schema.names == ["id", "town", "n", "country", "_change_type"]
    assert found.schema.field("n").type == pa.int64()
    assert [tuple(row.values()) for row in found.to_pylist()] == [
        (1, "Oslo", 1, "DE", WAS),
        (1, "Oslo", 1, "NO", IS),
        (50, "Lima", 1 << 40, None, IN),
    ]
    table.delete("id = 50")
    table.drop_column("country")
    assert table.changes(since).count() == 0

    wide = table.snapshot.id
    table.restore(since)
    with pytest.raises(fuse.SchemaError, match="'n' had a wider type"):
        table.changes(wide)


def test_snapshots_that_cannot_be_compared_are_refused_by_name(table):
    first, now = table.stored.history()[-1].snapshot_id, table.snapshot.id
    side = table.branch("side")
    side.append(rows(90))
    table.append(rows(91))

    assert told(side.changes(now)) == [(IN, 90)]
    assert side.changes(first).count() == 41
    for since, until in ((side.snapshot.id, None), (table.snapshot.id, now)):
        with pytest.raises(fuse.InvalidArgument, match=f"did not come of {since}"):
            table.changes(since, until)
    with pytest.raises(fuse.NotFound, match="no snapshot 0000"):
        table.changes("0" * 32)
    with pytest.raises(fuse.NotFound, match="no tag 'nihgtly'"):
        table.changes("nihgtly")
    side.drop_branch("side")
    with pytest.raises(fuse.InvalidArgument, match="did not come of"):
        table.branch("side").changes(side.snapshot.id)


def test_a_snapshot_that_was_collected_is_refused(table):
    since = table.snapshot.id
    table.tag("kept")
    between = table.append(rows(50)).id
    table.append(rows(51))
    table.stored.store.delete([f"_ss/{between}.json"])  # as a vacuum does, before all else that only this one leads to

    assert told(table.changes("kept")) == told(table.changes(since)) == [(IN, 50), (IN, 51)]
    with pytest.raises(fuse.NotFound, match=f"{between}.*collected"):
        table.changes(between)


def test_what_cannot_be_asked_is_refused(table):
    since = table.snapshot.id
    for arguments, error, says in (
        ({"key": ["nn"]}, fuse.SchemaError, "did you mean"),
        ({"key": "id"}, fuse.InputError, "list of texts"),
        ({"columns": ["i"]}, fuse.SchemaError, "did you mean"),
        ({"where": "rand() > 1"}, fuse.OpaqueError, "only Spark"),
        ({"where": "nn > 1"}, fuse.WhereError, "nn"),
    ):
        with pytest.raises(error, match=says):
            table.changes(since, **arguments)
    table.add_column("weight", "double")
    with pytest.raises(fuse.InputError, match="'weight' is double, which cannot be in a key"):
        table.changes(since, key=["weight"])
    table.rename_column("weight", "_change_type")
    with pytest.raises(fuse.SchemaError, match="rename it"):
        table.changes(since)


@pytest.mark.alike
@pytest.mark.parametrize("seed", range(8))
def test_applied_to_the_rows_of_then_they_give_the_rows_of_now(seed):
    """Any two snapshots of any life, judged by multisets of rows."""
    draw = random.Random(seed)
    table = fuse.create_table(f"memory://life-{uuid4().hex}", SCHEMA, properties={"block_rows": 5})
    known = {table.snapshot.id: Counter()}
    for _ in range(12):
        low = draw.randrange(20)
        some = rows(*(draw.randrange(20) for _ in range(draw.randrange(1, 12))), n=draw.randrange(3))
        unique = list({row["id"]: row for row in some}.values())
        draw.choice(
            [
                lambda some=some: table.append(some),
                lambda some=some: table.append(some),
                lambda low=low: table.delete(f"id BETWEEN {low} AND {low + 3}"),
                lambda low=low: table.update(f"id >= {low}", {"n": draw.randrange(3)}),
                lambda unique=unique: table.merge(unique, ["id"], matched=draw.choice(["update", "delete"])),
                lambda low=low: table.overwrite(rows(low, low), f"id = {low}"),
                lambda: table.maintenance.compact(),
                lambda: table.restore(draw.choice(list(known))),
            ]
        )()
        known[table.snapshot.id] = Counter(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())

    for _ in range(12):
        first, last = sorted(draw.choices(range(len(known)), k=2))
        since, until = list(known)[first], list(known)[last]
        for key in ((), ("id",)):
            found = table.changes(since, until, key=key).to_arrow().to_pylist()
            gone, came = Counter(), Counter()
            for row in found:
                side = gone if row.pop("_change_type") in (OUT, WAS) else came
                side[tuple(row.values())] += 1
            assert known[since] - gone + came == known[until]
            assert gone <= known[since]
            assert not gone & came


VALUES = [
    (pa.int32(), [None, 0, 1, -1]),
    (pa.bool_(), [None, False, True]),
    (pa.float64(), [None, 0.0, -0.0, float("nan"), 1.0]),
    (pa.decimal128(20, 2), [None, Decimal("0.00"), Decimal("0.01"), Decimal("-99999999999999.01")]),
    (pa.date32(), [None, date(1970, 1, 1), date(2020, 1, 1)]),
    (pa.timestamp("us", "UTC"), [None, 0, 1]),
    (pa.string(), [None, "", "a", "\0", "a\0"]),
    (pa.binary(), [None, b"", b"a", bytes(16)]),
    (pa.list_(pa.string()), [None, [], [None], [""], ["", ""], ["a", "b"], ["ab"]]),
    (pa.list_(pa.list_(pa.int8())), [None, [], [[]], [None], [[1], [2]], [[1, 2]], [[], []]]),
    (pa.map_(pa.string(), pa.int32()), [None, [], [("a", 1)], [("a", None)], [("a", 1), ("b", 1)]]),
    (
        pa.struct([("a", pa.int32()), ("b", pa.string())]),
        [None, {"a": None, "b": None}, {"a": 0, "b": None}, {"a": 0, "b": ""}],
    ),
]


@pytest.mark.parametrize(
    ("kind", "values"), VALUES, ids=lambda value: str(value) if isinstance(value, pa.DataType) else ""
)
def test_rows_have_one_fingerprint_if_they_are_equal(kind, values):
    array = pa.array([values[-1], *values, *reversed(values), values[0]], kind)
    places = [*range(len(values)), *reversed(range(len(values)))]
    sliced = pa.table({"x": array.slice(1, len(places)), "y": pa.nulls(len(places))})
    chunked = pa.concat_tables([sliced.slice(0, 3), sliced.slice(3)])

    found = row_hashes(sliced).to_pylist()
    assert found == row_hashes(chunked).to_pylist()
    assert [[a == b for b in places] for a in places] == [[a == b for b in found] for a in found]


def test_what_lies_in_memory_under_null_means_nothing():
    some = pa.array([1, 2, 3, 4], pa.int64())
    masked = pa.Array.from_buffers(pa.int64(), 4, [pa.py_buffer(b"\x05"), some.buffers()[1]])
    assert masked.to_pylist() == [1, None, 3, None]

    assert (
        row_hashes(pa.table({"x": masked})).to_pylist() == row_hashes(pa.table({"x": masked.to_pylist()})).to_pylist()
    )


def test_columns_are_told_apart():
    one, other = (
        pa.table({"a": ["x"], "b": pa.array([None], pa.string())}),
        pa.table({"a": pa.array([None], pa.string()), "b": ["x"]}),
    )

    assert row_hashes(one) != row_hashes(other)
    assert row_hashes(one.slice(0, 0)).to_pylist() == []
