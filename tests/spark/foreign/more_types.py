"""Rows of further types, and conditions on them for indexes of many kinds: wide decimals, old days, parts of parts."""

import importlib.util
import random
import re
from collections.abc import Collection
from pathlib import Path
from types import ModuleType

from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from fuse_index.indexes.registry import Host
from tests.docs.pages import ROOT
from tests.spark.foreign import typed

FILES, ROWS = 6, 120

COLUMNS = {
    "id": "BIGINT",
    "y": "TINYINT",
    "l": "BIGINT",
    "d5": "DECIMAL(5,0)",
    "d18": "DECIMAL(18,6)",
    "d20": "DECIMAL(20,4)",
    "d38": "DECIMAL(38,18)",
    "od": "DATE",
    "ot": "TIMESTAMP",
    "on": "TIMESTAMP_NTZ",
    "bin": "BINARY",
    "lc": "STRING COLLATE UTF8_LCASE",
    "mp": "MAP<STRING, INT>",
    "ls": "ARRAY<STRUCT<k: STRING, v: INT>>",
    "st": "STRUCT<a: STRUCT<b: STRING, c: DECIMAL(20,2)>, e: FLOAT>",
    "line": "STRING",
    "doc": "STRING",
    "v": "ARRAY<FLOAT>",
    "few": "STRING",
    "vr": "VARIANT",
    "ym": "INTERVAL YEAR TO MONTH",
    "dt": "INTERVAL DAY TO SECOND",
}
"""Types of columns, as Parquet tables of Spark have them."""
OF_ICEBERG = {name: kind for name, kind in COLUMNS.items() if name not in ("ym", "dt", "vr")} | {
    "y": "INT",
    "lc": "STRING",
}

INDEXES: list[tuple[str, str, dict[str, object]]] = [
    *(("bloom", name, {}) for name in ("y", "l", "d5", "d18", "d20", "d38", "od", "ot", "on", "bin", "few")),
    ("bloom", "st.a.b", {}),
    ("bloom", "st.a.c", {}),
    ("bloom", "st.e", {}),
    ("bloom", "lower(line)", {}),
    ("full_text", "line", {}),
    ("json_path", "doc", {"paths": ["$.u.n", "$.t[*]", "$.k"]}),
    ("trigram", "line", {}),
    ("roaring", "few", {}),
    ("roaring", "id", {}),
    ("vector", "v", {}),
]
"""Kinds, and on what; those that a source's types refuse are left out."""


def host() -> Host:
    """The kinds that are installed, and those of the examples."""
    return Host([*Host.discover().plugins, *map(_example, ("roaring", "trigram", "vector"))])


def _example(name: str) -> ModuleType:
    place = ROOT / "examples" / "plugins" / f"fuse-index-{name}" / f"fuse_index_{name}.py"
    spec = importlib.util.spec_from_file_location(place.stem, place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_VALUES = {
    "id": "id",
    "y": "CAST(IF(id % 23 = 3, NULL, id * 37 % 250 - 125) AS TINYINT)",
    "l": """CASE WHEN id % 29 = 0 THEN NULL WHEN id % 31 = 1 THEN 9223372036854775807 - id
      WHEN id % 31 = 2 THEN -9223372036854775808 + id ELSE 9007199254740993 + id * 31 % 700 END""",
    "d5": "CAST(IF(id % 19 = 4, NULL, id * 1009 % 99999 - 50000) AS DECIMAL(5,0))",
    "d18": "CAST(id * 7919 % 100000 / 64 AS DECIMAL(18,6))",
    "d20": "CAST(IF(id % 27 = 5, NULL, id * 31 % 1000 - 500) AS DECIMAL(20,4)) * 1000000000001",
    "d38": "CAST(concat(id * 7919 % 100000 - 50000, '.', lpad(id % 300, 18, '7')) AS DECIMAL(38,18))",
    "od": """CASE WHEN id % 37 = 6 THEN NULL WHEN id % 41 = 0 THEN DATE'9999-12-31'
      WHEN id % 11 = 2 THEN date_add(DATE'0001-01-01', CAST(id % 100 AS INT))
      ELSE date_add(DATE'1582-09-01', CAST(id * 7 % 90 AS INT)) END""",
    "ot": """CASE WHEN id % 39 = 7 THEN NULL WHEN id % 11 = 3 THEN timestamp_micros(-62135596800000000 + id * 1001)
      ELSE timestamp_micros(-2717650800000000 + id * 7919 % 900 * 3607000001) END""",
    "on": "TIMESTAMP_NTZ'1890-03-28 01:30:00' + make_dt_interval(0, 0, 0, id * 7919 % 900 * 1801)",
    "bin": "CASE WHEN id % 13 = 0 THEN X'' WHEN id % 17 = 0 THEN NULL ELSE unhex(hex(id * 7919 % 65536 + 4096)) END",
    "lc": "concat(IF(id % 2 = 0, 'Key', 'kEY'), id * 7919 % 1000)",
    "mp": "IF(id % 14 = 0, NULL, map('k', CAST(id % 90 AS INT), concat('m', id % 60), NULL))",
    "ls": """CASE WHEN id % 15 = 0 THEN NULL WHEN id % 15 = 1 THEN array()
      ELSE array(NULL, named_struct('k', concat('k', id % 70), 'v', CAST(id % 50 AS INT))) END""",
    "st": """CASE WHEN id % 16 = 0 THEN NULL WHEN id % 16 = 1 THEN named_struct('a', NULL, 'e', CAST('NaN' AS FLOAT))
      ELSE named_struct('a', named_struct('b', concat('b', id * 7919 % 500), 'c', CAST(id % 300 AS DECIMAL(20,2))),
        'e', CAST(IF(id % 16 = 2, -0.0D, id % 77 / 8.0D) AS FLOAT)) END""",
    "line": """IF(id % 18 = 0, NULL,
      concat(IF(id % 3 = 0, 'GET', 'put'), ' /item/', id * 7919 % 1000, ' Zürich took ', id))""",
    "doc": """CASE WHEN id % 21 = 0 THEN NULL WHEN id % 21 = 1 THEN '{broken'
      ELSE concat('{"u": {"n": "u', id * 31 % 400, '"}, "t": ["t', id % 50, '", ', id % 40,
        '], "k": ', id % 60, IF(id % 2 = 0, '.0', ''), '}') END""",
    "v": "IF(id % 22 = 0, NULL, array(CAST(id % 30 AS FLOAT), CAST(id * 7 % 31 AS FLOAT)))",
    "few": "CASE id % 7 WHEN 0 THEN NULL WHEN 1 THEN '' ELSE concat('few', id DIV 120 + id % 3) END",
    "vr": """IF(id % 24 = 0, NULL, parse_json(concat('{"n": ', id % 80, ', "s": "s', id % 33, '"}')))""",
    "ym": "IF(id % 25 = 0, NULL, make_ym_interval(0, CAST(id * 7 % 500 - 250 AS INT)))",
    "dt": "IF(id % 26 = 0, NULL, make_dt_interval(0, 0, 0, id * 7919 % 900 * 1801.5))",
}


def rows_sql(first: int, last: int, columns: dict[str, str], files: int = 1) -> str:
    """A query of the rows from one id up to another, which so many tasks give, and write to as many files."""
    listed = ", ".join(f"{_VALUES[name]} `{name}`" for name in columns)
    return f"SELECT {listed} FROM range({first}, {last}, 1, {files})"


_LEAVES = [
    "y = {y} | y + 1 = {i100} | y IN ({y}, NULL, 300) | y <=> {y}",
    "y BETWEEN {y} AND {y} + 2 | CAST(y AS STRING) = '{y}'",
    "l = {l} | l = {l}D | l > 9223372036854775000 | l IN ({l}, 1)",
    "CAST(l AS DOUBLE) = 9007199254740992D | l <=> {l}",
    "l = CAST({l} AS DECIMAL(38,2)) | l = {l}.0 | CAST(l AS DECIMAL(20,0)) = {l}",
    "l < -9223372036854775000 | l = '{l}'",
    "d5 = {d5} | d5 = {d5}.0D | d5 IN ({d5}, NULL) | CAST(d5 AS INT) = {d5} | d5 * 2 = {d5} * 2",
    "d5 = '{d5}' | d5 <=> {d5}",
    "d18 = {d18} | d18 = {d18}D | d18 > 1561.9 | d18 = CAST({d18} AS DECIMAL(38,10))",
    "round(d18, 2) = {d18} | d18 <> {d18}",
    "d20 = {d20} | d20 IN ({d20}, {i}) | d20 < {d20} AND d20 > {d20} - 1",
    "d20 = {d20}D | CAST(d20 AS STRING) = '{d20}.0000'",
    "d38 = {d38} | d38 BETWEEN {d38} AND {d38} | d38 > 49990 | CAST(d38 AS DECIMAL(38,2)) = {i}",
    "d38 = '{d38}' | d38 <=> {d38}",
    "CAST(d38 AS BIGINT) = {i} | floor(d38) = {i} | CAST(d38 AS DOUBLE) < -49990 | abs(d38) < 9 | d38 <> {d38}",
    "od = DATE'{od}' | od < DATE'0001-02-01' | od = DATE'1582-10-04' | od <= DATE'1582-10-15'",
    "year(od) = 1 | od = '{od}'",
    "od IN (DATE'{od}', DATE'9999-12-31') | CAST(od AS TIMESTAMP) = TIMESTAMP'{od} 00:00:00'",
    "od > DATE'9999-01-01'",
    "ot < TIMESTAMP'1883-11-18 12:03:58' | ot = timestamp_micros({ot})",
    "year(ot) = 1883 | CAST(ot AS DATE) = DATE'1883-11-18'",
    "ot IN (timestamp_micros({ot}), NULL) | CAST(ot AS STRING) LIKE '1883-11-{i9}%'",
    "hour(ot) = {i9} | ot < DATE'0001-01-02'",
    "unix_micros(ot) = {ot} | date_trunc('hour', ot) = TIMESTAMP'1883-11-18 12:00:00'",
    "CAST(ot AS BIGINT) = {ot} DIV 1000000",
    "`on` = TIMESTAMP_NTZ'{on}' | `on` IN (TIMESTAMP_NTZ'{on}', NULL)",
    "CAST(`on` AS TIMESTAMP) < TIMESTAMP'1893-04-01'",
    "`on` = TIMESTAMP'{on}' | CAST(`on` AS DATE) = DATE'1890-03-{d28}'",
    "second(`on`) = {i9} | `on` > TIMESTAMP_NTZ'{on}'",
    "bin = X'{bin}' | bin = X'' | bin > X'{bin}' | bin IN (X'{bin}', NULL) | hex(bin) = '{bin}'",
    "length(bin) = 0 | bin <=> X''",
    "lc = 'KEY{k}' | lc IN ('key{k}', 'x') | lc COLLATE UTF8_BINARY = 'Key{k}' | lc > 'KEY9'",
    "lower(lc) = 'key{k}' | lc LIKE 'Key{i9}%'",
    "mp['k'] = {i9} | mp IS NULL | element_at(mp, 'm{i9}') IS NULL",
    "map_contains_key(mp, 'm{i40}') | size(mp) = 2",
    "get(ls, 1).k = 'k{i40}' | exists(ls, e -> e.v = {i9}) | get(ls.v, 1) = {i9} | size(ls) = 0",
    "ls IS NULL | array_contains(ls.k, 'k{i9}')",
    "st.a.b = 'b{b}' | st.a.b IN ('b{b}', NULL) | st.a.c = {i40} | st.a.c > 297.5",
    "st.a IS NULL | st.a.b <=> 'b{b}'",
    "st.e = 'NaN' | st.e = 0.0 | st.e = -0.0F | st.e > 9.5D | isnan(st.e) | st.e IN (0.125F, 0.1F)",
    "st.e = 0.1D | NOT (st.e < 9)",
    "line LIKE '%item/{k} %' | line RLIKE 'item/{k} .*took'",
    "line ILIKE '%ZÜRICH TOOK {i}' | contains(line, '/{k} ')",
    "lower(line) = 'put /item/{k} zürich took {i}' | upper(line) LIKE '%TOOK {i9}%'",
    "endswith(line, 'took {i}') | line IS NULL",
    "match(line, 'item {k}') | startswith(line, 'GET /item/{i9}')",
    "regexp_extract(line, 'took ([0-9]+)', 1) = '{i}'",
    "split(line, ' ')[1] = '/item/{k}' | substring_index(line, ' ', -1) = '{i}'",
    "length(line) > 32 | instr(line, '/{k} ') > 0",
    "get_json_object(doc, '$.u.n') = 'u{n}' | json_contains(doc, '$.t[*]', 't{i40}')",
    "get_json_object(doc, '$.k') = '{i40}.0'",
    "get_json_object(doc, '$.u.n') IN ('u{n}', 'u1') | get_json_object(doc, '$.t[1]') = '{i9}'",
    "get_json_object(doc, '$.k') IS NULL",
    "CAST(get_json_object(doc, '$.k') AS DOUBLE) = {i9} | from_json(doc, 'k DOUBLE').k > 58 | doc = '{{broken'",
    "few = 'few{i9}' | few IN ('', 'few1') | few NOT IN ('few{i9}', '') | few IS NULL | few <> 'few2'",
    "few >= 'few7' | few <=> ''",
    "l2_distance(v, array({i9}, 3)) < 1.5 | v[0] = {i9} | v IS NULL",
    "array_contains(v, CAST({i9} AS FLOAT)) | aggregate(v, 0D, (a, b) -> a + b) > 58",
    "variant_get(vr, '$.n', 'int') = {i40} | variant_get(vr, '$.s', 'string') = 's{i9}'",
    "vr IS NULL | try_variant_get(vr, '$.s', 'int') = 3",
    "ym = INTERVAL '{i9}' MONTH | ym > INTERVAL '20-1' YEAR TO MONTH",
    "DATE'2020-01-31' + ym = DATE'2021-01-31' | ym IS NULL",
    "dt = make_dt_interval(0, 0, 0, {n9} * 1801.5) | dt > INTERVAL '18' DAY",
    "dt IN (INTERVAL '1801.5' SECOND, NULL) | dt <=> NULL",
    "id = {i} | id IN ({i}, {i} + 200) | odd(line) | odd(line) AND few = 'few{i9}'",
    "xxhash64(line) % 100 = {i40} | id % 90 = {i40}",
    "(y, few) IN (({y}, 'few{i9}'), (1, NULL)) | greatest(y, {i9}) = {i9}",
    "coalesce(few, 'q') = 'q' | nvl2(few, y, l) = {y}",
]
"""``odd`` is a function of Python. Of one that a table's types do not know, another is drawn."""


def condition(chosen: random.Random) -> str:
    """A condition on the columns."""
    return typed.combined(chosen, lambda: _leaf(chosen))


def _leaf(chosen: random.Random) -> str:
    i = chosen.randrange(FILES * ROWS + 60)
    seconds = i * 7919 % 900
    constants = {
        "i": i,
        "i9": i % 9,
        "i40": i % 40,
        "i100": i % 100,
        "d28": f"{i % 28 + 1:02}",
        "y": i * 37 % 250 - 125,
        "l": 9007199254740993 + i * 31 % 700,
        "d5": i * 1009 % 99999 - 50000,
        "d18": f"{i * 7919 % 100000 / 64:.6f}",
        "d20": (i * 31 % 1000 - 500) * 1000000000001,
        "d38": f"{i * 7919 % 100000 - 50000}.{i % 300!s:7>18}",
        "od": "1582-10-04" if i % 5 == 0 else f"1582-{9 + i % 3:02}-{i % 30 + 1:02}",
        "ot": -2717650800000000 + seconds * 3607000001,
        "on": f"1890-{3 + seconds % 3:02}-28 0{seconds % 9}:30:00",
        "bin": f"{i * 7919 % 65536 + 4096:X}",
        "k": i * 7919 % 1000,
        "b": i * 7919 % 500,
        "n": i * 31 % 400,
        "n9": seconds,
    }
    return chosen.choice(chosen.choice(_LEAVES).split(" | ")).format_map(constants)


def odd(text: str | None) -> bool:
    """The function of Python in conditions."""
    return text is not None and len(text) % 2 == 1


def use_kinds(
    spark: SparkSession, source: str | Path, place: Path, format_: str, columns: Collection[str]
) -> fuse.Table:
    """Attach a table for votes alone with all kinds of indexes, and have queries of the source ask it."""
    kinds = host()
    fuse_spark.install(spark, kinds)
    spark.udf.register("odd", odd, "boolean")
    table = fuse.attach(source, place, format=format_, votes_only=True, host=kinds)
    known = {field.name for field in table.snapshot.schema.fields}
    for number, (kind, term, options) in enumerate(INDEXES):
        if re.split(r"[.()]", term)[-2 if "(" in term else 0] in known & set(columns):
            table.create_index(f"index{number}", kind, [term], **options)
    fuse_spark.use(spark, place)
    return table
