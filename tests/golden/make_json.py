"""Asks Spark what ``get_json_object`` answers, once, and writes it down: ``json_objects.json`` holds documents, paths
and answers.

    PYTHONPATH=. python tests/golden/make_json.py

Run it again only for another Spark, or for more cases; the answers of old cases must stay. ``differs`` lists the
answers of another version of Spark that was asked the same (``make_json.py --compare``).
"""
# ruff: noqa: E501  -- tables of cases are easier to read wide

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

GOLDEN = Path(__file__).with_name("json_objects.json")

SCALARS = [
    "1",
    "-0",
    "0",
    "01",
    "-",
    "+1",
    ".5",
    "1.",
    "1.0",
    "1.10",
    "-0.0",
    "1e5",
    "1E5",
    "1e-5",
    "1e2",
    "123456789.5",
    "0.001",
    "0.00099",
    "9999999.0",
    "10000000.0",
    "1e400",
    "-1e400",
    "1e-400",
    "12345678901234567890",
    "123456789012345678901234567890123456789012345678901234567890",
    "9007199254740993",
    "9007199254740993.0",
    "0.1",
    "0.5",
    "3.14159",
    "100.25",
    "1234567.125",
    "NaN",
    "Infinity",
    "true",
    "false",
    "null",
    "True",
    '"x"',
    '""',
    '"1"',
    '"1.0"',
    '"true"',
    '"null"',
    '" a "',
    '"a\\nb"',
    '"a\\u0041"',
    '"\\u00e9"',
    '"é"',
    '"\\ud83d\\ude00"',
    '"😀"',
    '"\\/"',
    '"\\\\"',
    '"\\""',
    '"\\q"',
    '"\\\'"',
    '"\\u00"',
    '"\\u12G4"',
    '"a\tb"',
    '"a\nb"',
    '"\x01"',
    '"\x7f"',
    "'x'",
    "'it\\'s'",
    "'say \"x\"'",
    '"it\'s"',
    "[]",
    "{}",
    "[1,2]",
    "[1, [2, 3]]",
    "[null]",
    '{"b": null}',
    '{"b":[1.0,"x\\u0001",{"c":1e7}]}',
    '["\\u001f\\b\\f\\"\\\\/é😀"]',
    "[1,]",
    "[,1]",
    "[1 2]",
    '{"b" 1}',
    '{"b":1,}',
    "\u00a01",
    "\x001",
    "1 2",
    "1a",
    "truex",
    "true1",
    "1//c",
    "/*c*/1",
    "#1",
    "1" * 400,
    "1" * 1000,
    "1" * 1001,
    "1." + "5" * 999,
    "1." + "5" * 1000,
    "1e" + "0" * 998,
    '"' + "y" * 3000 + '"',
]
DOCUMENTS = [
    *(f'{{"a":{scalar}}}' for scalar in SCALARS),
    *(f'{{"x":{scalar},"a":1}}' for scalar in SCALARS),
    *(f'{{"a":1,"x":{scalar}}}' for scalar in SCALARS),
    *(f"[{scalar}]" for scalar in SCALARS),
    *SCALARS,
    "",
    " ",
    "{",
    "}",
    "{}",
    "[]",
    "[",
    "null",
    '{"a":1',
    '{"a":1}}',
    '{"a":1} garbage',
    ' \n\t{"a":1}',
    '\ufeff{"a":1}',
    '{"a":1}{"a":2}',
    '{"a"}',
    "{a:1}",
    "{'a':1}",
    "{'a':'x'}",
    "{'a':\"x\"}",
    '{"a":1,"a":2}',
    '{"a":null,"a":2}',
    '{"a":1,"a":null}',
    '{"a":{"b":1},"a":{"b":2}}',
    '{"a":{},"a":{"b":2}}',
    '{"a":{"b":null},"a":{"b":2}}',
    '{"a":5,"a":{"b":2}}',
    '{"a":[],"a":[[1]]}',
    '{"a":[[]],"a":[[1]]}',
    '{"\\u0061":1}',
    '{"\\u0061":1,"a":2}',
    '{"a":{"b":{"c":"deep"}}}',
    '{"a":{"b":[1,2,{"c":3}]}}',
    '{"a":[{"b":1},{"b":2}]}',
    '{"a":[{"b":1},{"b":null}]}',
    '{"a":[{"b":1},{"c":2}]}',
    '{"a":[{"b":[1,2]},{"b":[3]}]}',
    '{"a":[{"b":["x"]},{"b":["y","z"]}]}',
    '{"a":[[1,2],[3,[4]]]}',
    '{"a":[["x"],["y"]]}',
    '{"a":["x"]}',
    '{"a":["x","y"]}',
    '{"a":[null,"x"]}',
    '{"a":[null]}',
    '{"a":[[[1],[2]],[[3]]]}',
    '{"a '
    'b":1,"a.b":2,"a[0]":3,"":4,"a\'b":5,"*":6,"é":7,"😀":8,"a?":9,"A":10,"$":11,"a-b":12,"@t":13,"0":14, " a":15,"a '
    '":16}',
    '{"A":1}',
    '[{"a":1},{"a":2}]',
    '[{"a":{"b":1}},{"a":{"b":[2]}}]',
    "[[1,2],[3]]",
    '[["x"]]',
    '[[[["x"]]]]',
    '[1,"x",null,true,1.50,{"a":1}]',
    '"a"',
    "'a'",
    '"a"garbage',
    "5 x",
    "5,",
    "true,",
    "true x",
    '{"a":"\\ud800"}',
    '{"x":"\\ud800","a":1}',
    '{"a":"\\ud800x"}',
    '{"a":"\\udc00\\ud800"}',
    '{"a":["\\ud800"]}',
    '{"a":' * 999 + "1" + "}" * 999,
    '{"a":' * 1000 + "1" + "}" * 1000,
    '{"a":' * 1001 + "1" + "}" * 1001,
    "[" * 1000 + "]" * 1000,
    "[" * 1001 + "]" * 1001,
    '{"a":1,"x":' + "[" * 1001 + "]" * 1001 + "}",
    '{"a":1,"' + "n" * 50_000 + '":2}',
    '{"a":1,"' + "n" * 50_001 + '":2}',
    '{"a":1 , "b" : [ ] }',
    '{"a":1;"b":2}',
    '{"a"=1}',
    '{"a":1\x00}',
    '{"a":1}\x00',
    '{"a" :\r\n 1}',
    '{"a":1\u2028}',
    "{\"a\":'x\ty'}",
    "{'a\\'b':1,'a':2}",
    "{'a\"b':1,'a':2}",
    '{"a":undefined}',
    '{"a":0x10}',
    '{"a":1_000}',
    '{"a":--1}',
    '{"a":-01}',
    '{"a":1e}',
    '{"a":1e+}',
    '{"a":-}',
    '{"a":1.5.5}',
    '{"a":2020-01-01}',
]
PATHS = [
    "$",
    "$.a",
    "$['a']",
    "$.a.b",
    "$['a']['b']",
    "$.a['b']",
    "$.a.b.c",
    "$.a[0]",
    "$.a[1]",
    "$.a[99]",
    "$.a[*]",
    "$.a[*].b",
    "$.a[*][*]",
    "$.a[0][*]",
    "$.a[*][0]",
    "$.a[*].b[*]",
    "$.a[*].b[0]",
    "$.a[*][*][*]",
    "$.a[0][*][*]",
    "$.a[*][0][*]",
    "$.a[0][0]",
    "$[0]",
    "$[1]",
    "$[*]",
    "$[*].a",
    "$[0].a",
    "$[*][*]",
    "$[*][*][*]",
    "$[*][*].a",
    "$[*].a.b",
    "$[*].a[*]",
    "$[0][0]",
    "$[0][*]",
    "$[*][0]",
    "$.*",
    "$['*']",
    "$.a.*",
    "$.*.a",
    "$..a",
    "$.",
    "$a",
    "a",
    "",
    " $.a",
    "$ .a",
    "$. a",
    "$.a ",
    "$.a b",
    "$['a b']",
    "$[' a']",
    "$['a ']",
    "$ ['a']",
    "$[ 'a']",
    "$[ 0]",
    "$[0 ]",
    "$.a[ 0]",
    "$.a [0]",
    "$[-1]",
    "$[0:1]",
    "$[0,1]",
    "$['a','b']",
    '$["a"]',
    "$['a.b']",
    "$.a.b ",
    "$['a[0]']",
    "$['']",
    "$.''",
    "$['a\\'b']",
    "$.a'b",
    "$.é",
    "$['😀']",
    "$['a?']",
    "$.a?",
    "$.A",
    "$.$",
    "$.a-b",
    "$.@t",
    "$.0",
    "$[?(@.a)]",
    "$.a.",
    "$.a..b",
    "$.a[]",
    "$[]",
    "$.a]",
    "$.[a]",
    "$.a[b]",
    "$\n.a",
    "$.\ta",
    "$.a\n",
    "$['*'].a",
    "$.a[*].*",
    "$[00]",
    "$[01]",
    "@.a",
    "$.a[*].b.c",
    "$.b",
]


def answers(spark: SparkSession) -> dict[str, dict[str, str]]:
    """By path, the text that is found in each document, by number; documents in which nothing is found are left out."""
    rows = spark.createDataFrame(list(enumerate(DOCUMENTS)), "row int, c string").repartition(1).cache()
    found = {}
    for path in PATHS:
        literal = "r'" + path + "'" if "'" not in path else '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'
        listed = (
            rows.selectExpr("row", f"hex(cast(get_json_object(c, {literal}) as binary)) AS found")
            .where("found IS NOT NULL")
            .collect()
        )
        found[path] = {
            str(row): bytes.fromhex(text).decode("utf-8", "backslashreplace") for row, text in sorted(listed)
        }
    return found


def lines(golden: dict[str, Any]) -> str:
    """A line for each document and each path."""
    pack = partial(json.dumps, separators=(",", ":"))
    documents = ",\n".join(map(pack, golden["documents"]))
    found = ",\n".join(f"{pack(path)}:{pack(listed)}" for path, listed in golden["answers"].items())
    return f'{{"spark":{pack(golden["spark"])},\n"documents":[\n{documents}],\n"answers":{{\n{found}}},\n"differs":{pack(golden["differs"])}}}'


def main() -> None:
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    found = answers(spark)
    if "--compare" in sys.argv:
        golden = json.loads(GOLDEN.read_text("utf-8"))
        assert golden["documents"] == DOCUMENTS
        golden["differs"][spark.version] = {
            path: listed for path, listed in found.items() if listed != golden["answers"].get(path)
        }
    else:
        golden = {"spark": spark.version, "documents": DOCUMENTS, "answers": found, "differs": {}}
    GOLDEN.write_text(lines(golden) + "\n", "utf-8")
    print(
        f"\n{spark.version}: {len(DOCUMENTS)} documents, {len(PATHS)} paths, other than before: {golden['differs']}",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
