"""DELETE, UPDATE and MERGE do to a table what they do to a list of dicts."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_storage.testing import check_invariants
from tests.effort import effort

Rows = list[dict[str, Any]]
Change = Callable[[Rows], Rows]


class Walk:
    """A table, and the list of dicts that it is to equal."""

    def __init__(self, spark: SparkSession, path: Path, indexed: bool = True) -> None:
        self.spark, self.path = spark, str(path / "t")
        self.name = f"fuse.`{self.path}`"
        properties = {"block_rows": 5, "delete_mode": "merge-on-read" if indexed else "copy-on-write"}
        made = fuse.create_table(self.path, "id BIGINT, kind STRING, n INT", properties=properties)
        if indexed:
            made.create_index("by_kind", "bloom", ["kind"])
        self.rows: Rows = [{"id": i, "kind": f"k{i % 3}", "n": None if i % 4 == 0 else i} for i in range(20)]
        made.append(self.rows)

    def run(self, statement: str, change: Change) -> None:
        self.spark.sql(statement.replace("$T", self.name)).collect()
        self.rows = change(self.rows)

    def check(self) -> None:
        found = [row.asDict() for row in self.spark.table(self.name).collect()]
        assert sorted(map(repr, found)) == sorted(map(repr, self.rows))
        check_invariants(fuse.open_table(self.path).stored)


@pytest.fixture
def walk(sql_spark: SparkSession, tmp_path: Path) -> Walk:
    return Walk(sql_spark, tmp_path)


def deleting(condition: Callable[[dict[str, Any]], Any]) -> Change:
    return lambda rows: [row for row in rows if condition(row) is not True]


def updating(condition: Callable[[dict[str, Any]], Any], values: Callable[[dict[str, Any]], dict[str, Any]]) -> Change:
    return lambda rows: [{**row, **values(row)} if condition(row) is True else row for row in rows]


def above(row: dict[str, Any], least: int) -> bool | None:
    return None if row["n"] is None else row["n"] > least


STATEMENTS: dict[str, tuple[str, Change]] = {
    "delete by a predicate": (
        "DELETE FROM $T WHERE kind = 'k1' AND n > 5",
        deleting(lambda r: r["kind"] == "k1" and above(r, 5)),
    ),
    "delete where NULL": ("DELETE FROM $T WHERE n IS NULL", deleting(lambda r: r["n"] is None)),
    "delete where not": ("DELETE FROM $T WHERE NOT n > 5", deleting(lambda r: r["n"] is not None and r["n"] <= 5)),
    "delete by what only Spark knows": (
        "DELETE FROM $T WHERE length(repeat(kind, CAST(id AS INT))) > 20",
        deleting(lambda r: 2 * r["id"] > 20),
    ),
    "delete by a function and an alias": (
        "DELETE FROM $T AS x WHERE pmod(x.id, 3) = 1",
        deleting(lambda r: r["id"] % 3 == 1),
    ),
    "delete by a subquery": (
        "DELETE FROM $T WHERE id IN (SELECT id * 2 FROM range(4))",
        deleting(lambda r: r["id"] in (0, 2, 4, 6)),
    ),
    "delete by a subquery of itself": (
        "DELETE FROM $T WHERE id > (SELECT avg(id) FROM $T)",
        deleting(lambda r: r["id"] > 9.5),
    ),
    "delete where none exists": (
        "DELETE FROM $T t WHERE NOT EXISTS (SELECT 1 FROM range(10) r WHERE r.id = t.id)",
        deleting(lambda r: r["id"] >= 10),
    ),
    "delete all": ("DELETE FROM $T", deleting(lambda r: True)),
    "delete none": ("DELETE FROM $T WHERE id = 999", deleting(lambda r: False)),
    "update": (
        "UPDATE $T SET n = n + 1 WHERE kind = 'k2'",
        updating(lambda r: r["kind"] == "k2", lambda r: {"n": r["n"] and r["n"] + 1}),
    ),
    "update without a condition": (
        "UPDATE $T SET kind = concat(kind, '!')",
        updating(lambda r: True, lambda r: {"kind": r["kind"] + "!"}),
    ),
    "update by other columns": (
        "UPDATE $T SET n = id, kind = CAST(n AS STRING), id = id * 2 WHERE id < 7",
        updating(lambda r: r["id"] < 7, lambda r: {"n": r["id"], "kind": r["n"] and str(r["n"]), "id": r["id"] * 2}),
    ),
    "update by a subquery": (
        "UPDATE $T SET n = (SELECT CAST(max(id) AS INT) FROM range(8)) WHERE id IN (SELECT id FROM range(3))",
        updating(lambda r: r["id"] < 3, lambda r: {"n": 7}),
    ),
    "update where NULL": (
        "UPDATE $T SET n = 0 WHERE n > 3 IS NULL",
        updating(lambda r: r["n"] is None, lambda r: {"n": 0}),
    ),
}


@pytest.mark.every_spark
@pytest.mark.parametrize("case", STATEMENTS)
def test_a_statement_does_what_a_list_of_dicts_does(walk: Walk, case: str) -> None:
    walk.run(*STATEMENTS[case])
    walk.check()


Clause = tuple[str, Callable[..., Any], Callable[..., dict[str, Any] | None]]
"""Words, when it is about a row (of the target, of the source), and what the row becomes: None if it goes."""


def merging(source: Rows, matched: list[Clause], missing: list[Clause], lonely: list[Clause]) -> Change:
    def change(rows: Rows) -> Rows:
        keys = {row["id"] for row in rows}
        after = []
        for row in rows:
            mates = [mate for mate in source if mate["id"] is not None and mate["id"] == row["id"]]
            clauses, arguments = (matched, (row, mates[0])) if mates else (lonely, (row,))
            clause = next((each for each in clauses if each[1](*arguments) is True), None)
            made = row if clause is None else clause[2](*arguments)
            after += [made] if made is not None else []
        for mate in source:
            if mate["id"] is None or mate["id"] not in keys:
                clause = next((each for each in missing if each[1](mate) is True), None)
                after += [clause[2](mate)] if clause is not None else []
        return after

    return change


MATCHED: list[Clause] = [
    ("WHEN MATCHED AND s.n > 12 THEN DELETE", lambda t, s: above(s, 12), lambda t, s: None),
    (
        "WHEN MATCHED AND t.n IS NULL THEN UPDATE SET n = s.n",
        lambda t, s: t["n"] is None,
        lambda t, s: {**t, "n": s["n"]},
    ),
    ("WHEN MATCHED THEN UPDATE SET *", lambda t, s: True, lambda t, s: s),
]
MISSING: list[Clause] = [
    (
        "WHEN NOT MATCHED AND s.id IS NULL THEN INSERT (kind) VALUES ('none')",
        lambda s: s["id"] is None,
        lambda s: {"id": None, "kind": "none", "n": None},
    ),
    (
        "WHEN NOT MATCHED AND s.id % 2 = 0 THEN INSERT *",
        lambda s: s["id"] is not None and s["id"] % 2 == 0,
        lambda s: s,
    ),
    (
        "WHEN NOT MATCHED THEN INSERT (n, id) VALUES (s.n + 1, s.id)",
        lambda s: True,
        lambda s: {"id": s["id"], "kind": None, "n": s["n"] and s["n"] + 1},
    ),
]
LONELY: list[Clause] = [
    (
        "WHEN NOT MATCHED BY SOURCE AND t.id < 3 THEN DELETE",
        lambda t: t["id"] is not None and t["id"] < 3,
        lambda t: None,
    ),
    (
        "WHEN NOT MATCHED BY SOURCE AND t.id < 6 THEN UPDATE SET n = -1",
        lambda t: t["id"] is not None and t["id"] < 6,
        lambda t: {**t, "n": -1},
    ),
]
SOURCE: Rows = [{"id": i if i != 26 else None, "kind": f"s{i}", "n": None if i % 5 == 0 else i} for i in range(8, 27)]


def run_merge(walk: Walk, source: Rows, matched: list[Clause], missing: list[Clause], lonely: list[Clause]) -> None:
    frame = walk.spark.createDataFrame([tuple(row.values()) for row in source], "id BIGINT, kind STRING, n INT")
    frame.createOrReplaceTempView("merge_source")
    words = " ".join(clause[0] for clause in (*matched, *missing, *lonely))
    walk.run(
        f"MERGE INTO $T AS t USING (SELECT * FROM merge_source) AS s ON t.id = s.id {words}",
        merging(source, matched, missing, lonely),
    )


@pytest.mark.every_spark
@pytest.mark.parametrize(
    ("matched", "missing", "lonely"),
    [
        (MATCHED, [], []),
        ([], MISSING, []),
        ([], [], LONELY),
        (MATCHED[2:], MISSING[1:2], []),
        (MATCHED[1:], [], LONELY[1:]),
        (MATCHED, MISSING, LONELY),
    ],
)
def test_a_merge_does_what_its_clauses_say(
    walk: Walk, matched: list[Clause], missing: list[Clause], lonely: list[Clause]
) -> None:
    run_merge(walk, SOURCE, matched, missing, lonely)
    walk.check()


def test_a_merge_may_join_by_any_condition(walk: Walk) -> None:
    walk.run(
        "MERGE INTO $T t USING (SELECT max(id) AS top FROM $T) s ON t.id > s.top - 3 AND t.kind <> 'k1'"
        " WHEN MATCHED THEN UPDATE SET n = s.top * 2",
        updating(lambda r: r["id"] > 16 and r["kind"] != "k1", lambda r: {"n": 38}),
    )
    walk.check()


def test_blocks_that_change_nothing_stay(walk: Walk) -> None:
    before = set(fuse.open_table(walk.path).stored.blocks().ids)
    walk.run(
        "UPDATE $T SET n = 1 WHERE length(repeat(kind, 2)) = 4 AND id = 7",
        updating(lambda r: r["id"] == 7, lambda r: {"n": 1}),
    )
    after = set(fuse.open_table(walk.path).stored.blocks().ids)
    assert (len(before - after), len(after - before)) == (1, 2)  # its row goes by a vector, and comes in another block
    walk.check()


def draw(random_: random.Random) -> Iterator[tuple[str, Change]]:
    while True:
        low, kind, add = random_.randrange(40), random_.choice(["k0", "k1", "k2", "s9"]), random_.randrange(9)
        yield random_.choice(
            [
                (f"DELETE FROM $T WHERE id = {low}", deleting(lambda r, low=low: r["id"] == low)),
                (
                    f"UPDATE $T SET n = coalesce(n, 0) + {add} WHERE kind = '{kind}'",
                    updating(lambda r, kind=kind: r["kind"] == kind, lambda r, add=add: {"n": (r["n"] or 0) + add}),
                ),
                (
                    f"DELETE FROM $T WHERE id IN (SELECT id + {low} FROM range(2)) AND n > 3",
                    deleting(lambda r, low=low: r["id"] in (low, low + 1) and above(r, 3)),
                ),
                (
                    f"INSERT INTO $T SELECT id + {low}, '{kind}', {add} FROM range(3)",
                    lambda rows, low=low, kind=kind, add=add: (
                        rows + [{"id": low + i, "kind": kind, "n": add} for i in range(3)]
                    ),
                ),
                (
                    f"INSERT INTO $T REPLACE WHERE kind = '{kind}' VALUES ({low}L, '{kind}', NULL)",
                    lambda rows, low=low, kind=kind: (
                        [r for r in rows if r["kind"] != kind] + [{"id": low, "kind": kind, "n": None}]
                    ),
                ),
            ]
        )


def test_a_walk_of_statements_ends_where_a_list_of_dicts_does(walk: Walk) -> None:
    random_ = random.Random(12)
    for number, (statement, change) in zip(range(effort(8)), draw(random_), strict=False):
        walk.run(statement, change)
        if number % 4 == 3:
            run_merge(walk, random_.sample(SOURCE, 6), MATCHED, MISSING, LONELY[1:])
        walk.check()


@pytest.mark.every_spark
def test_rows_behind_zones_that_are_passed_over_are_the_ones_that_change(
    sql_spark: SparkSession, tmp_path: Path
) -> None:
    table = fuse.create_table(tmp_path / "t", "id BIGINT, n INT", properties={"block_rows": 4000, "zone_rows": 1000})
    table.append([{"id": i, "n": 0} for i in range(4000)])
    name = f"fuse.`{tmp_path}/t`"
    sql_spark.sql(f"UPDATE {name} SET n = hash(id) WHERE id IN (3500, 1500) AND length(repeat('x', n)) = 0")
    sql_spark.sql(
        f"MERGE INTO {name} t USING (SELECT 2500L AS id) s ON t.id = s.id AND t.id > 2400 WHEN MATCHED THEN DELETE"
    )

    assert len(table.refresh().stored.blocks()) == 1
    rows = {row.id: row.n for row in sql_spark.table(name).collect()}
    assert [i for i in range(4000) if i not in rows] == [2500]
    assert sorted(i for i, n in rows.items() if n != 0) == [1500, 3500]
