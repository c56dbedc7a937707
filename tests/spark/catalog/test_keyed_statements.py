"""Statements on tables with a primary key do what they do to a dict by key, each by one hot commit."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_storage.testing import check_invariants

Row = dict[str, Any]
STATEMENTS = [
    ("DELETE FROM $T WHERE n = 3", lambda rows: {i: r for i, r in rows.items() if r["n"] != 3}),
    (
        "DELETE FROM $T WHERE length(repeat(name, CAST(id % 3 AS INT))) = 4",  # which Spark alone knows
        lambda rows: {i: r for i, r in rows.items() if not (r["name"] == "base" and i % 3 == 1)},
    ),
    (
        "UPDATE $T SET n = n + 100, name = NULL WHERE id % 5 = 0",
        lambda rows: {i: r if i % 5 else {"id": i, "name": None, "n": r["n"] + 100} for i, r in rows.items()},
    ),
    (
        "UPDATE $T SET name = 'sub' WHERE id IN (SELECT 2 * id FROM range(10, 20))",
        lambda rows: {i: r | {"name": "sub"} if i in range(20, 40, 2) else r for i, r in rows.items()},
    ),
    (
        "MERGE INTO $T t USING (SELECT id, CAST(id AS INT) AS n FROM range(30, 50)) s ON t.id = s.id "
        "WHEN MATCHED AND s.id % 4 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET n = -s.n "
        "WHEN NOT MATCHED THEN INSERT (id, name, n) VALUES (s.id, 'merged', s.n)",
        lambda rows: (
            {i: r | {"n": -i} if 30 <= i < 50 else r for i, r in rows.items() if not (30 <= i < 50 and i % 4 == 0)}
            | {i: {"id": i, "name": "merged", "n": i} for i in range(30, 50) if i not in rows}
        ),
    ),
    (
        "MERGE INTO $T t USING (SELECT id FROM range(45, 55)) s ON t.id = s.id "
        "WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, 'new')",
        lambda rows: {i: {"id": i, "name": "new", "n": None} for i in range(45, 55)} | rows,
    ),
    ("DELETE FROM $T", lambda rows: {}),
]


@pytest.mark.every_spark
def test_statements_change_rows_by_their_keys(sql_spark: SparkSession, tmp_path: Path) -> None:
    table = fuse.create_table(
        tmp_path / "t", "id BIGINT, name STRING, n INT", primary_key=["id"], properties={"block_rows": 10}
    )
    rows: dict[int, Row] = {i: {"id": i, "name": "base", "n": i % 7} for i in range(40)}
    table.upsert(list(rows.values()))
    table.maintenance.tier()
    hot = [{"id": i, "name": "tail", "n": 3} for i in range(0, 44, 6)]
    table.upsert(hot)
    rows |= {row["id"]: row for row in hot}

    for number, (statement, change) in enumerate(STATEMENTS):
        version, rows = table.version, change(rows)
        sql_spark.sql(statement.replace("$T", f"fuse.`{tmp_path}/t`")).collect()
        found = table.refresh().to_arrow().to_pylist()
        assert sorted(found, key=lambda row: row["id"]) == sorted(rows.values(), key=lambda row: row["id"]), statement
        assert table.version == version + 1
        assert table.history().column("operation")[0].as_py() in ("upsert", "delete keys", "delete")
        check_invariants(table.stored)
        if number == 2:
            table.maintenance.tier()


def test_a_delete_of_partitions_opens_no_file_of_theirs(sql_spark: SparkSession, tmp_path: Path) -> None:
    """The files are gone before: whoever opened one would raise."""
    name, columns, key = f"fuse.`{tmp_path}/t`", "id BIGINT, day DATE, n INT", ["id", "day"]
    table = fuse.create_table(tmp_path / "t", columns, primary_key=key, partition_by=["day"])
    days = [date(2026, 1, 1 + number) for number in range(3)]
    rows = [{"id": number, "day": days[number % 3], "n": number} for number in range(30)]
    table.upsert(rows)
    table.maintenance.tier()
    hot = [rows[29] | {"n": 100}, {"id": 31, "day": days[1], "n": 0}, {"id": 5000, "day": days[0], "n": 0}]
    table.upsert(hot)
    blocks = table.stored.blocks()
    gone = blocks.partitions.index('["2026-01-01"]')
    (tmp_path / "t" / blocks.locations[gone]).unlink()
    sql_spark.sql(f"DELETE FROM {name} WHERE day = DATE'2026-01-01'").collect()

    left = [each for each in [*rows[:29], *hot] if each["day"] != days[0]]
    assert sorted(table.refresh().to_arrow().to_pylist(), key=str) == sorted(left, key=str)
    assert sql_spark.sql(f"SELECT count(*), sum(n) FROM {name}").first() == (len(left), sum(r["n"] for r in left))
    assert (table.snapshot.operation, table.snapshot.summary["deleted_rows"]) == ("delete", 11)
    assert table.snapshot.summary["removed_blocks"] == 1
    for location in table.stored.blocks().locations[:2]:
        (tmp_path / "t" / location).unlink()
    sql_spark.sql(f"TRUNCATE TABLE {name}").collect()
    assert table.refresh().count() == 0
    assert (table.stored.segments().base_block_count, table.snapshot.operation) == (0, "delete")


def test_a_statement_goes_with_tiering_and_not_with_changes(sql_spark: SparkSession, tmp_path: Path) -> None:
    table, name = fuse.create_table(tmp_path / "t", "id BIGINT, n INT", primary_key=["id"]), f"fuse.`{tmp_path}/t`"
    table.upsert([{"id": i, "n": 0} for i in range(10)])
    done = tmp_path / "tier"

    def meanwhile(row: int) -> bool:
        try:
            done.mkdir()
        except FileExistsError:
            return True
        other = fuse.open_table(tmp_path / "t")
        other.maintenance.tier()
        if row >= 5:
            other.upsert([{"id": 99, "n": 0}])
        return True

    sql_spark.udf.register("meanwhile", meanwhile, "boolean")
    sql_spark.sql(f"UPDATE {name} SET n = 1 WHERE id < 5 AND meanwhile(id)").collect()
    assert sum(table.refresh().to_arrow().column("n").to_pylist()) == 5

    done.rmdir()
    with pytest.raises(AnalysisException, match="read again"):
        sql_spark.sql(f"UPDATE {name} SET n = 1 WHERE id >= 5 AND meanwhile(id)").collect()
    assert sum(table.refresh().to_arrow().column("n").to_pylist()) == 5
