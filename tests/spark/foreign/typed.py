"""Rows of many types, with the values that are compared wrongly most easily, and conditions on them.

Names of columns are given by ``names``, since a table's may have been exchanged.
"""

import random
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta

FILES, ROWS = 6, 120

COLUMNS = {
    "id": "BIGINT",
    "a": "STRING",
    "b": "STRING",
    "n": "INT",
    "x": "DOUBLE",
    "f": "FLOAT",
    "d": "DATE",
    "ts": "TIMESTAMP",
    "nt": "TIMESTAMP_NTZ",
    "m": "DECIMAL(10,2)",
    "t": "BOOLEAN",
    "s": "STRUCT<x: INT, y: STRING>",
    "c": "CHAR(6)",
    "v": "VARCHAR(8)",
    "bin": "BINARY",
    "arr": "ARRAY<INT>",
    "sm": "SMALLINT",
}
WITHOUT_ODD_TYPES = COLUMNS | {"c": "STRING", "v": "STRING", "sm": "INT"}
"""What Iceberg has."""

INDEXED = ["a", "b", "n", "x", "d", "m", "v"]
_DAY, _SECOND, _LOCAL = date(2020, 2, 25), datetime(2021, 3, 27, 23), datetime(2021, 3, 28, 0, 30)

OF_FEW_FILES = {
    "a = 'a43283'": 1,
    "a IN ('a43283', NULL)": 1,
    "a <=> 'a43283'": 1,
    "NOT (a <> 'a43283')": 1,
    "n = 867": 1,
    "n + 1 = 868": 1,
    "n = 867.0": 1,
    "n = '867'": 1,
    "d = DATE'2020-07-31'": 2,
    "m = 96.25": 2,
    "a = 'a43283' OR n = 867": 1,
    "a = 'a43283' AND length(b) > 0": 1,
    "a = 'nobody' AND x > 0": 0,
}
"""Conditions of which indexes know in how many files they may be true: no more of these are read."""


def rows_sql(first: int, last: int, files: int = 1) -> str:
    """A query of the rows from one id up to another, which so many tasks give, and write to as many files."""
    return f"""SELECT id, concat('a', lpad(CAST(id * 7919 % 100000 AS STRING), 5, '0')) a,
      CASE WHEN id % 11 = 3 THEN NULL WHEN id % 13 = 4 THEN '' WHEN id % 17 = 2 THEN concat('Ä', id % 40)
        ELSE concat(IF(id % 2 = 0, 'B', 'b'), id % 40) END b,
      CAST(id * 31 % 1000 AS INT) n,
      CASE WHEN id % 19 = 1 THEN CAST('NaN' AS DOUBLE) WHEN id % 23 = 1 THEN -0.0D WHEN id % 29 = 1 THEN 0.0D
        WHEN id % 31 = 2 THEN CAST('Infinity' AS DOUBLE) WHEN id % 37 = 0 THEN NULL ELSE id % 50 / 4.0D - 5 END x,
      CASE WHEN id % 19 = 2 THEN CAST('NaN' AS FLOAT) WHEN id % 23 = 2 THEN CAST(-0.0D AS FLOAT)
        WHEN id % 37 = 0 THEN NULL ELSE CAST(id % 60 / 8.0 AS FLOAT) END f,
      CASE WHEN id % 41 = 0 THEN NULL WHEN id % 53 = 5 THEN DATE'1582-10-04' WHEN id % 59 = 5 THEN DATE'1500-03-01'
        ELSE date_add(DATE'{_DAY}', CAST(id % 400 AS INT)) END d,
      CASE WHEN id % 43 = 0 THEN NULL WHEN id % 61 = 5 THEN TIMESTAMP'1500-03-01 00:00:00Z'
        ELSE timestamp_seconds(1616886000 + id * 3607) END ts,
      TIMESTAMP_NTZ'{_LOCAL}' + make_dt_interval(0, 0, 0, CAST(id * 1801 AS DECIMAL(18,6))) nt,
      CASE WHEN id % 47 = 0 THEN NULL ELSE CAST(id % 300 * 1.25 - 100 AS DECIMAL(10,2)) END m,
      CASE WHEN id % 7 = 0 THEN NULL ELSE id % 3 = 0 END t,
      CASE WHEN id % 9 = 0 THEN NULL
        WHEN id % 9 = 1 THEN named_struct('x', CAST(NULL AS INT), 'y', concat('y', id % 70))
        ELSE named_struct('x', CAST(id % 200 AS INT), 'y', CAST(NULL AS STRING)) END s,
      CASE WHEN id % 15 = 0 THEN NULL ELSE concat('c', id % 80) END c,
      concat('v', id % 90, IF(id % 4 = 0, '  ', '')) v, CAST(concat('x', id % 100) AS BINARY) bin,
      CASE WHEN id % 8 = 0 THEN NULL ELSE array(CAST(id % 30 AS INT), NULL, 7) END arr, CAST(id % 99 AS SMALLINT) sm
      FROM range({first}, {last}, 1, {files})"""


_LEAVES = [
    "{a} = '{av}' | {a} IN ('{av}', NULL) | {a} NOT IN ('{av}', 'zz') | {a} <=> '{av}' | {a} LIKE '{as}%'",
    "{b} = 'b{i40}' | {b} = 'B{i40}' | lower({b}) = 'b{i40}' | {b} COLLATE UTF8_LCASE = 'B{i40}' | {b} <=> NULL",
    "{b} COLLATE UNICODE_CI IN ('ä{i40}', 'x') | coalesce({b}, 'q') = 'q' | {b} > 'b3' | length({b}) = 0 | {b} = ''",
    "trim({b}) = 'b{i40}' | substr({a}, 1, 4) = '{as}' | concat({a}, '!') = '{av}!' | {b} <> '' AND {b} IS NOT NULL",
    "{n} = {iv} | {n} + 1 = {i} | {n} % 100 = {i100} | {n} = {i}.0 | {n} = '{i}' | {n} = {i}.5D | {n} = 30000000000",
    "{n} BETWEEN {i} AND {i} + 9 | CAST({n} AS STRING) LIKE '{i9}%' | - {n} > -3 | abs({n} - 500) < 2",
    "{x} = 'NaN' | isnan({x}) | {x} = 0.0 | {x} = -0.0D | {x} > 7 | {x} > CAST('Infinity' AS DOUBLE) | {x} <> 0",
    "{x} IN (0.0D, CAST('NaN' AS DOUBLE)) | NOT ({x} < 100) | {x} <=> -0.0D | CAST({x} AS STRING) = '-0.0'",
    "{x} IS NULL | nanvl({x}, 3.0D) = 3 | {x} >= 1e300 | {f} = 'NaN' | {f} = 0.1 | {f} < 0.5 | {f} >= 7.25D",
    "{f} = CAST(-0.0D AS FLOAT) | {d} = DATE'{day}' | {d} < DATE'1582-10-15' | {d} <= DATE'1500-03-01'",
    "year({d}) = 2020 | month({d}) = {i9} | date_trunc('month', {d}) = TIMESTAMP'2020-03-01' | {d} = '{day}'",
    "CAST({d} AS STRING) LIKE '2020-02%' | date_add({d}, 3) > DATE'{day}' | {d} = TIMESTAMP'{day} 00:00:00'",
    "{ts} = TIMESTAMP'{sec}' | {ts} < TIMESTAMP'2021-03-28 03:30:00' | hour({ts}) = {i9} | {ts} > DATE'{secday}'",
    "{ts} BETWEEN TIMESTAMP'{sec}' AND TIMESTAMP'{sec}' + INTERVAL 2 HOURS | CAST({ts} AS DATE) = DATE'{secday}'",
    "date_trunc('day', {ts}) = TIMESTAMP'{secday}' | CAST({ts} AS STRING) LIKE '{secday}%' | year({ts}) = 1500",
    "{ts} = TIMESTAMP_NTZ'{sec}' | {ts} < TIMESTAMP'1600-01-01' | {ts} = TIMESTAMP'{sec}+02:00'",
    "{nt} = TIMESTAMP_NTZ'{local}' | {nt} = TIMESTAMP'{local}' | CAST({nt} AS TIMESTAMP) = TIMESTAMP'{local}'",
    "{nt} < TIMESTAMP_NTZ'2021-03-28 03:00:00' | {nt} = '{local}'",
    "{m} = {mv} | {m} = {mv}D | {m} > 270 | {m} + 1 = {i} | {m} = '{mv}' | {m} IN (1.25, 2.5, NULL) | {m} IS NULL",
    "CAST({m} AS INT) = {i100} | {m} = CAST({i} AS DECIMAL(38,18)) | round({m}, 1) = {i100}.3",
    "{t} | NOT {t} | {t} IS NULL | {t} <=> false | {t} IS NOT TRUE | {t} = 'true'",
    "{s}.x = {i100} | {s} IS NULL | {s}.y IS NULL | {s}.y = 'y{i40}' | {s}.x IS NULL AND {s} IS NOT NULL | {s}.x > 190",
    "{c} = 'c{i40}' | {c} = 'c{i40}    ' | {c} IN ('c{i40}', 'c1') | {c} > 'c7' | length({c}) = 6 | {c} LIKE 'c{i9}%'",
    "{c} <=> 'c5' | rtrim({c}) = 'c{i40}' | {c} = {v} | {v} = 'v{i40}' | {v} = 'v{i40}  ' | rtrim({v}) = 'v{i40}'",
    "{bin} = CAST('x{i100}' AS BINARY) | {bin} > X'7839' | CAST({bin} AS STRING) = 'x{i100}'",
    "array_contains({arr}, {i9}) | {arr}[0] = {i9} | {arr} IS NULL | size({arr}) = 3 | exists({arr}, e -> e = {i9})",
    "{sm} = {i40} | {sm} = {i40}L | {sm} > 97 | {sm} = 70000 | {sm} IN (1, 2, 70000) | greatest({n}, {sm}) < 9",
    "id = {i} | id BETWEEN {i} AND {i} + 30 | id = {i}.0D | id IN ({i}, {i} + 200, NULL) | id % 100 = {i100}",
    "CASE WHEN {a} = '{av}' THEN true ELSE {n} < 5 END | if({t}, {a} = '{av}', {b} IS NULL)",
    "nullif({b}, 'b{i40}') IS NULL | ({a}, {n}) IN (('{av}', {iv})) | hash({a}) % 100 = {i100}",
    "({a} = '{av}') = ({n} = {iv}) | ({b} = 'b1') IS NULL | NOT (({b} = 'b1') <=> true) AND {a} = '{av}'",
]


def _leaf(chosen: random.Random, names: Mapping[str, str]) -> str:
    i = chosen.randrange(FILES * ROWS + 60)
    second, value = _SECOND + timedelta(seconds=i * 3607), f"a{i * 7919 % 100_000:05d}"
    constants = {"i": i, "i9": i % 9, "i40": i % 40, "i100": i % 100, "iv": i * 31 % 1000, "av": value, "as": value[:4]}
    times = {"day": _DAY + timedelta(days=i % 400), "sec": second, "secday": second.date()}
    more = {"local": _LOCAL + timedelta(seconds=i * 1801), "mv": f"{i % 300 * 1.25 - 100:.2f}"}
    columns = {name: names.get(name, name) for name in COLUMNS}
    return chosen.choice(chosen.choice(_LEAVES).split(" | ")).format_map({**columns, **constants, **times, **more})


def condition(chosen: random.Random, names: Mapping[str, str] | None = None) -> str:
    """A condition on the columns, by the names that they have by now."""
    return combined(chosen, lambda: _leaf(chosen, names or {}))


def combined(chosen: random.Random, leaf: Callable[[], str]) -> str:
    """Some leaves under AND, OR and NOT."""
    text = leaf()
    for _ in range(chosen.choice([0, 0, 1, 1, 2, 3])):
        text = f"({text}) {chosen.choice(['AND', 'OR'])} ({leaf()})"
        if chosen.random() < 0.2:
            text = f"NOT ({text})"
    return text
