"""The one promise: an index never changes an answer.

Random tables of small blocks, random predicates, random subsets of indexes and of indexed blocks, sound and damaged
files: a scan gives the rows that the oracle gives on the whole table, or an error that says what is broken.
"""

import math
import random
from uuid import uuid4

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fuse_index as fuse
from fuse_index.expressions.evaluate import evaluate
from fuse_index.predicate import And, Column, Compare, In, IsNull, Literal, Not, Or, StartsWith
from fuse_storage import StorageError, open_store
from tests.effort import effort

SCHEMA = pa.schema(
    [("id", pa.int64()), ("n", pa.int32()), ("d", pa.float64()), ("s", pa.string()), ("t", pa.timestamp("us", "UTC"))]
)
VALUES = {
    "id": st.integers(0, 40),
    "n": st.sampled_from([None, -1, 0, 1, 2, 7]),
    "d": st.sampled_from([None, math.nan, -0.0, 0.0, 1.5, math.inf, -math.inf]),
    "s": st.sampled_from([None, "", "a", "ab", "b", "～", "😀", "x" * 40, "x" * 40 + "y"]),
    "t": st.sampled_from([None, 0, 1, 10**15]),
}
COLUMNS = {field.name: Column((field.name,), field.type) for field in SCHEMA}
SMALL = {"block_rows": 4, "zone_rows": 2}

rows = st.lists(st.fixed_dictionaries(VALUES), min_size=1, max_size=12)


def literal(name: str):
    field = SCHEMA.field(name)
    return (
        VALUES[name]
        .filter(lambda value: value is not None)
        .map(lambda value: Literal(pa.scalar(value, field.type).as_py(), field.type))
    )


def leaves_on(name: str):
    column = COLUMNS[name]
    found = [
        st.builds(Compare, st.sampled_from(["=", "<=>", "<>", "<", "<=", ">", ">="]), st.just(column), literal(name)),
        st.builds(lambda values: In(column, tuple(values)), st.lists(literal(name), min_size=1, max_size=3)),
        st.builds(
            lambda values: In(column, (*values, Literal(None, column.type))),
            st.lists(literal(name), min_size=1, max_size=2),
        ),
        st.just(IsNull(column)),
    ]
    if name == "s":
        found.append(st.builds(StartsWith, st.just(column), literal(name)))
    return st.one_of(found)


predicates = st.recursive(
    st.one_of([leaves_on(name) for name in VALUES]),
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(lambda terms: And(tuple(terms)), st.lists(inner, min_size=2, max_size=3)),
        st.builds(lambda terms: Or(tuple(terms)), st.lists(inner, min_size=2, max_size=3)),
    ),
    max_leaves=5,
)


def as_table(values: list[dict]) -> pa.Table:
    return pa.Table.from_pylist(values, SCHEMA)


def keys(table: pa.Table) -> list[str]:
    return sorted(repr(row) for row in table.to_pylist())


def expected(values: list[dict], predicate) -> list[str]:
    whole = as_table(values)
    return keys(whole.filter(evaluate(predicate, whole)))


def made(first: list[dict], second: list[dict], bloomed: list[str], late: list[str]):
    """A table in two appends, some indexes made before the first, some between, never refreshed."""
    table = fuse.create_table(f"memory://promise-{uuid4().hex}", SCHEMA, properties=SMALL)
    for name in bloomed:
        table.create_index(f"{name}_bloom", "bloom", [name])
    table.append(as_table(first))
    for name in set(late) - set(bloomed):
        table.create_index(f"{name}_late", "bloom", [name], build=False)
    table.append(as_table(second))
    return table


names = st.lists(st.sampled_from(list(VALUES)), unique=True, max_size=3)


@settings(max_examples=effort(12), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows, rows, names, names, st.lists(predicates, min_size=1, max_size=4))
def test_a_scan_gives_the_rows_that_the_oracle_gives(first, second, bloomed, late, asked):
    table = made(first, second, bloomed, late)

    for predicate in asked:
        right = expected(first + second, predicate)

        assert right == keys(table.scan(predicate).to_arrow())
        assert len(right) == table.scan(predicate).count()
        assert right == keys(table.scan(predicate, indexes=False).to_arrow())


def some_rows(count: int) -> list[dict]:
    pick = random.Random(7)
    ns, ds = [None, 1, 2, 7], [None, math.nan, 0.0, 1.5]
    return [{"id": i, "n": pick.choice(ns), "d": pick.choice(ds), "s": f"s{i % 13}", "t": i} for i in range(count)]


QUESTIONS = [
    Compare("=", COLUMNS["id"], Literal(17, pa.int64())),
    Compare("=", COLUMNS["s"], Literal("s3", pa.string())),
    And((Compare(">", COLUMNS["id"], Literal(5, pa.int64())), Compare("<", COLUMNS["id"], Literal(9, pa.int64())))),
    Not(In(COLUMNS["n"], (Literal(1, pa.int32()), Literal(2, pa.int32())))),
    Compare(">=", COLUMNS["d"], Literal(1.5, pa.float64())),
]


def outcome(url: str, predicate) -> list[str] | None:
    """The rows, or None for an error of ours that says what is broken."""
    try:
        return keys(fuse.open_table(url).scan(predicate).to_arrow())
    except StorageError:
        return None


def folder_of(key: str) -> str:
    return key.split("/", 1)[0]


DAMAGES = [
    (folder, damage) for folder in ("_ss", "_sg", "_x", "_b", "_i", "_refs") for damage in ("flip", "cut", "gone")
]
CASES = effort(3)
"""So often each file is damaged, each time in another place."""
DAMAGES.remove(("_refs", "gone"))  # without its newest entry a branch is what it was before that commit


@pytest.mark.parametrize(("folder", "damage"), DAMAGES)
def test_damage_gives_the_right_rows_or_an_error_and_never_wrong_rows(tmp_path, folder, damage):
    values = some_rows(48)
    whole = fuse.create_table(str(tmp_path / "whole"), SCHEMA, properties={"block_rows": 12, "zone_rows": 4})
    for name in ("id", "s"):
        whole.create_index(f"{name}_bloom", "bloom", [name])
    whole.append(as_table(values))
    store = open_store(str(tmp_path / "whole"))
    contents = {entry.key: store.read(entry.key) for entry in store.list("")}
    right = [expected(values, question) for question in QUESTIONS]
    pick = random.Random(f"{folder}{damage}")
    answered = 0

    for key in contents:
        if folder_of(key) != folder or key.endswith("_hint"):
            continue
        for case in range(1 if damage == "gone" else CASES):
            copy = open_store(f"memory://damage-{uuid4().hex}")
            for other, bytes_ in contents.items():
                if other != key:
                    copy.create(other, bytes_)
                elif damage != "gone":
                    copy.create(other, damaged(bytes_, damage, pick, case))
            for question, answer in zip(QUESTIONS, right, strict=True):
                found = outcome(copy.url, question)
                assert found is None or found == answer, f"{damage} in {key}"
                answered += found is not None

    if folder in ("_x", "_i"):
        assert answered == sum(
            len(QUESTIONS) * (1 if damage == "gone" else CASES) for key in contents if folder_of(key) == folder
        )


def damaged(data: bytes, damage: str, pick: random.Random, case: int) -> bytes:
    place = pick.randrange(len(data))
    if damage == "cut":
        return data[:place]
    return data[:place] + bytes([data[place] ^ (1 << case % 8)]) + data[place + 1 :]
