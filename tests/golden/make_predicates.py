"""Asks Spark what it answers, once, and writes it down: ``predicates.json`` holds rows, predicates and Spark's answers.

Each case has the predicate as people write it, the session it was asked in, one letter per row (t, f or n for NULL;
none at all where Spark raised an error or refused the text), and the trees of the filter, as analysed and as optimised,
in the form in which the native scan sends them. ``coercion`` holds the type as which Spark compares each pair of types.

    PYTHONPATH=. python tests/golden/make_predicates.py

Run it again only for another Spark, or for more cases; the answers of old cases must stay.
"""

from __future__ import annotations

import itertools
import json
import logging
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from fuse_index.spark.native.java_compiler import java_sources, load_java_classes

INF, NAN = float("inf"), float("nan")
WALLS = [
    "0001-01-01 00:00:00",
    "1582-10-10 12:00:00",
    "1899-12-31 23:59:59.999999",
    "1969-12-31 23:59:59.999999",
    "1970-01-01 00:00:00",
    "2024-03-10 01:30:00",
    "2024-03-10 02:30:00",
    "2024-03-10 03:30:00",
    "2024-03-10 06:59:59.999999",
    "2024-03-10 07:00:00",
    "2024-11-03 01:30:00",
    "2024-11-03 05:30:00",
    "2024-11-03 06:30:00",
    "2024-06-15 00:00:00",
    "2024-06-15 12:34:56.789",
    "9999-12-31 00:00:00",
]
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "b": (pa.bool_(), [True, False]),
    "i8": (pa.int8(), [-128, -1, 0, 1, 5, 100, 127]),
    "i16": (pa.int16(), [-32768, -1, 0, 1, 5, 300, 32767]),
    "i32": (pa.int32(), [-(2**31), -1, 0, 1, 5, 6, 300, 16777217, 2**31 - 1]),
    "i64": (pa.int64(), [-(2**63), -1, 0, 1, 5, 300, 2**53, 2**53 + 1, 2**53 + 2, 2**63 - 1]),
    "f": (pa.float32(), [-INF, -1.5, -0.0, 0.0, 0.1, 1.0, 5.0, 16777216.0, 3.4e38, INF, NAN]),
    "d": (
        pa.float64(),
        [-INF, -1.5, -0.0, 0.0, 0.1, 0.10000000149011612, 1.0, 5.0, 5.5, 2.0**53, 2.0**63, -(2.0**63), 1e300, INF, NAN],
    ),
    "dec": (
        pa.decimal128(10, 2),
        [
            Decimal(x)
            for x in (
                "-99999999.99",
                "-2.50",
                "-0.01",
                "0.00",
                "0.50",
                "2.50",
                "1.00",
                "1.01",
                "5.00",
                "5.50",
                "99999999.99",
            )
        ],
    ),
    "wide": (
        pa.decimal128(38, 10),
        [
            Decimal(x)
            for x in (
                "-9999999999999999999999999999.9999999999",
                "0.0000000000",
                "0.0000000001",
                "5.0000000000",
                "9007199254740993.0000000000",
                "9999999999999999999999999999.0000000000",
            )
        ],
    ),
    "da": (
        pa.date32(),
        [
            date(1, 1, 1),
            date(1582, 10, 10),
            date(1969, 12, 31),
            date(1970, 1, 1),
            date(2024, 3, 10),
            date(2024, 6, 15),
            date(2024, 11, 3),
            date(9999, 12, 31),
        ],
    ),
    "ts": (pa.timestamp("us", "UTC"), [datetime.fromisoformat(wall).replace(tzinfo=UTC) for wall in WALLS]),
    "ntz": (pa.timestamp("us"), [datetime.fromisoformat(wall) for wall in WALLS]),
    "s": (
        pa.string(),
        [
            "",
            " ",
            "a",
            "a ",
            "A",
            "ab",
            "abc",
            "ab%",
            "a%c",
            "a_c",
            "a\\c",
            "axc",
            "é",
            "e\u0301",
            "\ud7ff",
            "\uffff",
            "\U0001f600",
            "a\U0001f600c",
            "x\ny",
            "5",
            "it's",
        ],
    ),
    "n": (
        pa.string(),
        [
            "5",
            "5.0",
            "5.7",
            " 5 ",
            "+5",
            "-5",
            "05",
            "1e2",
            "300",
            "99999999999",
            "1.5d",
            "NaN",
            "inf",
            "-Infinity",
            "",
            ".",
            "+",
            "5.",
            ".5",
            "true",
            "no",
            "T",
            "2024-03-10",
            "2024-3-10 1:30:0",
            "2024-03-10T07:00:00Z",
            "2024-03-10 02:30:00",
            "2024-06",
            "2024",
            "abc",
            "0.1",
        ],
    ),
    "w": (
        pa.string(),
        [
            "2024-03-10",
            " 2024-3-10\t",
            "2024-03-10 ",
            "2024-03-10T",
            "2024-03-10 07",
            "2024-03-10 7:5",
            "2024-03-10T07:00:00",
            "2024-03-10 07:00:00.",
            "2024-03-10 07:00:00.5",
            "2024-03-10 07:00:00.1234567",
            "2024-03-10 07:00:00Z",
            "2024-03-10 07:00:00 UTC",
            "2024-03-10 07:00:00+1:30",
            "2024-03-10 07:00:00 -0800",
            "2024-03-10 07:00:00 Europe/Berlin",
            "2024-03-10 07:00:00GMT+1",
            "2024-03-10 07:00 UTC",
            "2024-03-10 24:00:00",
            "2024-03-10 07:60:00",
            "2024-02-30",
            "2024-13-01",
            "2024 10:00",
            "2024-03 10:00",
            "+2024-03-10",
            "02024-03-10",
            "2024-03-10 and more",
            "2024-03-10x",
            "20240310",
            "2024/03/10",
            "2024-11-03 01:30:00",
            "２０２４-03-10",
        ],
    ),
    "bin": (pa.binary(), [b"", b"\x00", b"\xff", b"a", b"\x00\xff", b"ab"]),
    "st": (
        pa.struct([("x", pa.int32()), ("Y", pa.struct([("z", pa.string())]))]),
        [{"x": 1, "Y": {"z": "a"}}, {"x": None, "Y": {"z": None}}, {"x": 5, "Y": None}],
    ),
}
COUNT = 32
ROWS = pa.table(
    {"row": pa.array(range(COUNT), pa.int32())}
    | {
        name: pa.array([[*values, None][i % (len(values) + 1)] for i in range(COUNT)], kind)
        for name, (kind, values) in VALUES.items()
    }
)

OPERATORS = ["=", "<=>", "<>", "<", "<=", ">", ">="]
LITERALS = {
    "b": ["TRUE", "false", "NULL", "'true'", "'N'", "1"],
    "i8": ["5", "300", "5.5", "-128", "127.0", "5L", "5.0D", "0.1F", "'5'", "-0.5", "1e30", "NULL"],
    "i16": ["5", "-32769", "300.00", "5.5D"],
    "i32": [
        "5",
        "2147483648",
        "5.5",
        "6.0",
        "5.5D",
        "16777217.0F",
        "16777216D",
        "5S",
        "'5'",
        "' 5 '",
        "'6.5'",
        "NULL",
        "-2147483648",
        "99999999999999999999",
    ],
    "i64": [
        "5",
        "9007199254740992",
        "9007199254740992D",
        "9007199254740993.0",
        "9007199254740994D",
        "9223372036854775807",
        "9223372036854775808",
        "9223372036854775807D",
        "-9223372036854775808",
        "5.5",
        "'5'",
        "16777217F",
        "1e-5",
    ],
    "f": [
        "0.1",
        "0.1F",
        "0.1D",
        "0.10000000149011612D",
        "1",
        "0",
        "-0.0D",
        "float('NaN')",
        "double('NaN')",
        "double('inf')",
        "1e300",
        "'0.1'",
        "'NaN'",
        "16777217",
        "5L",
        "NULL",
    ],
    "d": [
        "0.1",
        "0.1F",
        "0.1D",
        "0",
        "-0.0D",
        "double('NaN')",
        "float('NaN')",
        "double('-inf')",
        "'Infinity'",
        "5",
        "5.5",
        "9007199254740993",
        "1e300",
        "NULL",
    ],
    "dec": [
        "1",
        "1.00",
        "1.005",
        "1.01BD",
        "5.5D",
        "1.01D",
        "0.1F",
        "'1.01'",
        "5L",
        "99999999.99",
        "100000000",
        "-0.010",
        "12345678901234567890.5",
        "NULL",
    ],
    "wide": ["5", "0.0000000001", "9007199254740993", "9007199254740993D", "5L", "'5'", "0.00000000005"],
    "da": [
        "DATE'2024-03-10'",
        "'2024-03-10'",
        "'2024-6-15'",
        "'2024'",
        "'2024-03-10 23:00'",
        "TIMESTAMP'2024-03-10 00:00:00'",
        "TIMESTAMP'2024-03-10 05:00:00'",
        "TIMESTAMP_NTZ'2024-03-10 00:00:00'",
        "TIMESTAMP_NTZ'2024-03-10 00:00:00.000001'",
        "DATE'0001-01-01'",
        "DATE'9999-12-31'",
        "'garbage'",
        "NULL",
    ],
    "ts": [
        "TIMESTAMP'2024-03-10 07:00:00'",
        "TIMESTAMP'2024-03-10 02:30:00'",
        "TIMESTAMP'2024-11-03 01:30:00'",
        "TIMESTAMP'2024-11-03 01:30:00 America/New_York'",
        "TIMESTAMP'2024-11-03T06:30:00Z'",
        "DATE'2024-06-15'",
        "DATE'2024-03-10'",
        "'2024-03-10 07:00:00'",
        "'2024-06-15'",
        "'2024-03-10T07:00:00+01:00'",
        "TIMESTAMP_NTZ'2024-03-10 02:30:00'",
        "TIMESTAMP_NTZ'2024-11-03 01:30:00'",
        "TIMESTAMP'2024-06-15 12:34:56.789'",
        "TIMESTAMP'1899-12-31 23:59:59.999999'",
        "NULL",
    ],
    "ntz": [
        "TIMESTAMP_NTZ'2024-03-10 02:30:00'",
        "TIMESTAMP'2024-03-10 07:00:00'",
        "TIMESTAMP'2024-03-10 03:30:00'",
        "DATE'2024-06-15'",
        "'2024-03-10 02:30:00'",
        "'2024-06-15'",
    ],
    "s": [
        "'a'",
        "'a '",
        "''",
        "'é'",
        "'\\uD7FF'",
        "'\\U0001F600'",
        "'\\uFFFF'",
        "'a\\\\c'",
        "r'a\\c'",
        "'it''s'",
        "'a' 'b'",
        '"abc"',
        "NULL",
        "X'61'",
    ],
    "n": [
        "5",
        "5L",
        "5.0",
        "5D",
        "5F",
        "100Y",
        "TRUE",
        "DATE'2024-03-10'",
        "TIMESTAMP'2024-03-10 07:00:00'",
        "TIMESTAMP_NTZ'2024-03-10 02:30:00'",
        "'5'",
    ],
    "bin": ["X''", "X'FF'", "X'0'", "X'00ff'", "'a'", 'x"61"', "NULL"],
    "st.x": ["1", "5", "5.5", "NULL"],
    "ST.y.Z": ["'a'", "'b'"],
}
LISTS = {
    "i8": ["(1, 5)", "(1, 300)", "(1, NULL)", "(5.0, 1.5)", "('5', 1)", "(5)", "(NULL)", "(300, 301)", "(1.5)"],
    "i32": [
        "(1, 5L, 6.0)",
        "(1, 5.5D)",
        "('1', '5')",
        "(5, 5, 5)",
        "(1e0, NULL)",
        "(" + ", ".join(map(str, range(-5, 20))) + ")",
    ],
    "i64": ["(9007199254740992D)", "(9007199254740993, 5)", "(9007199254740992D, 5D, NULL)"],
    "f": ["(0.1)", "(0.1F, 0.0F)", "(double('NaN'), 1)", "(-0.0D)", "(0.1, NULL)"],
    "d": ["(0.1, 5)", "(double('NaN'), 0)", "(-0.0D, NULL)", "('NaN')"],
    "dec": ["(1, 5.5)", "(1.005)", "(1.005, NULL)", "(1.01D)"],
    "da": ["('2024-03-10', '1970-01-01')", "(DATE'2024-03-10', NULL)", "(TIMESTAMP'2024-03-10 00:00:00')"],
    "ts": [
        "(TIMESTAMP'2024-03-10 07:00:00', TIMESTAMP'2024-06-15 00:00:00')",
        "('2024-06-15')",
        "(DATE'2024-06-15', NULL)",
    ],
    "ntz": ["(TIMESTAMP_NTZ'2024-06-15 00:00:00', '2024-03-10 02:30:00')"],
    "s": ["('a', 'A')", "('a', NULL)", "('')", "('\\U0001F600', 'é')"],
    "n": ["(5, 300)", "('5', 300)"],
    "bin": ["(X'FF', X'00')", "('a')"],
    "b": ["(TRUE)", "(TRUE, NULL)", "(TRUE, FALSE)"],
    "st.x": ["(1, 2)"],
}
TEXTS = [
    "s LIKE 'a%'",
    "s LIKE '%c'",
    "s LIKE 'a_c'",
    "s LIKE 'a%c'",
    "s LIKE 'ab\\\\%'",
    "s LIKE 'a\\\\_c'",
    "s LIKE 'ab!%' ESCAPE '!'",
    "s LIKE 'a!_c' ESCAPE '!'",
    "s LIKE '!!%' ESCAPE '!'",
    "s LIKE '_'",
    "s LIKE '__'",
    "s LIKE ''",
    "s LIKE '%'",
    "s LIKE '%%'",
    "s LIKE 'abc'",
    "s LIKE '%b%'",
    "s LIKE 'x_y'",
    "s LIKE 'x%y'",
    "s LIKE 'a\\\\\\\\c'",
    "s LIKE r'a\\\\c'",
    "s NOT LIKE 'a%'",
    "NOT s LIKE 'a%'",
    "s LIKE NULL",
    "s LIKE 'a\\\\x'",
    "s LIKE 'a\\\\'",
    "s LIKE '%\\U0001F600%'",
    "s LIKE 'a_%'",
    "s LIKE '_%_'",
    "s LIKE '.*'",
    "s LIKE '(a)'",
    "s LIKE 'a%b%c'",
    "s LIKE '%a%_'",
    "like(s, 'ab%')",
    "s LIKE s",
    "n LIKE '5%'",
    "i32 LIKE '%0%'",
    "da LIKE '2024-%'",
    "ts LIKE '%06%'",
    "b LIKE 't%'",
    "dec LIKE '%.00'",
    "startswith(s, 'a')",
    "startswith(s, '')",
    "startswith(s, NULL)",
    "startswith(s, 'a ')",
    "endswith(s, 'c')",
    "contains(s, 'b')",
    "contains(s, '%')",
    "contains(s, '\\U0001F600')",
    "endswith(s, '')",
    "startswith(s, 'é')",
    "NOT startswith(s, 'ab')",
    "startswith(bin, X'00')",
    "endswith(bin, X'FF')",
    "contains(bin, X'61')",
    "startswith(s, st.y.z)",
    "contains(s, substring(s, 1, 1))",
    "s RLIKE 'a.*'",
    "s ILIKE 'A%'",
    "s LIKE ANY ('a%', 'x%')",
    "length(s) = 1",
    "lower(s) = 'a'",
    "UPPER(s) = 'A'",
    "upper(s) = 'É'",
    "lower(s) IN ('a', 'abc')",
    "length(i32) = 1",
    "char_length(s) > 1",
    "year(da) = 2024",
    "month(da) = 3",
    "day(da) = 10",
    "year(ts) = 2024",
    "year(ntz) > 1969",
    "year(w) = 2024",
    "upper(s) LIKE 'A%'",
    "startswith(lower(s), 'a')",
    "lower(NULL) = 'a'",
    "lower('A') = s",
    "reverse(s) = 'a'",
    "i32 LIKE 5",
    "startswith(i32, '3')",
]
LOGIC = [
    "i32 IS NULL",
    "i32 IS NOT NULL",
    "isnull(s)",
    "isnotnull(s)",
    "st IS NULL",
    "st.x IS NULL",
    "st.y IS NULL",
    "st.y.z IS NOT NULL",
    "NOT (i32 IS NULL)",
    "b",
    "NOT b",
    "!b",
    "b IS TRUE",
    "b IS NOT TRUE",
    "b IS FALSE",
    "b IS NULL",
    "b = b",
    "b AND i32 > 1",
    "b OR i32 > 1",
    "NOT (b AND i32 > 1)",
    "NOT (b OR i32 > 1)",
    "b AND NULL",
    "b OR NULL",
    "NOT NULL",
    "TRUE",
    "FALSE",
    "NULL",
    "1 = 1",
    "1 > 2",
    "NULL = 1",
    "NULL <=> NULL",
    "TRUE AND b",
    "FALSE OR b",
    "i32 BETWEEN 1 AND 5",
    "i32 NOT BETWEEN 1 AND 5",
    "i32 BETWEEN 5 AND 1",
    "d BETWEEN 0 AND double('NaN')",
    "i32 BETWEEN NULL AND 5",
    "i32 NOT BETWEEN NULL AND 5",
    "da BETWEEN '2024-01-01' AND '2024-12-31'",
    "i32 > 1 AND i32 < 300 AND i32 <> 5",
    "NOT (i32 > 1 AND i32 < 300)",
    "i32 > 5 OR i64 < 5 AND b",
    "(i32 > 5 OR i64 < 5) AND b",
    "NOT NOT b",
    "i32 = i64",
    "i32 < i64",
    "i32 <=> i64",
    "i8 = i32",
    "f = d",
    "f < d",
    "f <=> d",
    "i64 = d",
    "i64 > d",
    "i32 = f",
    "dec = wide",
    "dec = i32",
    "dec > d",
    "da = ts",
    "da = ntz",
    "ts = ntz",
    "da < ts",
    "s = n",
    "s <=> st.y.z",
    "s = bin",
    "i32 <> i32",
    "i32 IS DISTINCT FROM 5",
    "i32 IS NOT DISTINCT FROM NULL",
    "NOT (i32 IN (1, NULL))",
    "NOT (i32 <> 5)",
    "NOT (d > 1)",
    "NOT (d <= 1)",
    "NOT (d = double('NaN'))",
    "isnan(d)",
    "NOT isnan(d)",
    "isnan(f) OR f = 1",
    "5 < i32",
    "5 = i8",
    "0.1 >= f",
    "NULL = i32",
    "'a' = s",
    "5.5 <> i32",
    "i32 + 1 = 6",
    "abs(i32) = 1",
    "coalesce(i32, 5) = 5",
    "CASE WHEN b THEN i32 = 5 ELSE i32 = 1 END",
    "i32 = 5 OR i32 + 1 = 2",
    "if(b, i32, 1) = 1",
    "i32 IN (i64, 5)",
    "5 IN (1, 5)",
    "1 IN (i32)",
    "get_json_object(n, '$.a') = 'x'",
    "(i32, i64) = (5, 5)",
    "i32 = 5 = b",
    "i32 IS NULL = b",
    "(i32 IS NULL) = b",
    "i32 ==5",
    "i32 != 5",
    "i32 !> 5",
    "i32 !< 5",
    "NOT i32 = 5 AND b",
    "NOT b = TRUE",
    "i32 = 5 OR i32 = 6 AND b",
    "NOT i32 IN (1, 5)",
    "NOT i32 BETWEEN 1 AND 5 OR b",
    "NOT s LIKE 'a%' OR b",
    "b = NOT b",
    "i32 > - 5",
    "i32 = -1",
    "i32 BETWEEN 1 AND 5 = b",
    "s LIKE 'a%' = b",
    "i32 IN (1, 5) = b",
    "b = i32 IN (1, 5)",
    "b = s LIKE 'a%'",
    "b <> i32 IS NULL",
    "b = (i32 > 1)",
    "i32 > 1 = b",
    "NOT NOT NOT b",
    "NOT (NOT b)",
    "b = b IS NULL",
    "i32 = 5 IS NULL",
    "NOT i32 IS NULL",
    "i32 IS NULL IS NULL",
    "b IS TRUE = b",
    "i32 BETWEEN 1 AND 5 AND b OR i32 = 6",
    "i32 <> 5 <> b",
    "s = 'a' || 'b'",
    "i32 = 2 + 3",
    "i32 = - - 5",
    "startswith(s, 'a') = b",
    "isnull(i32) = b",
    "b IN (TRUE) AND NOT b IN (FALSE)",
    "s = '\\'",
    "s = 'a\\\\c'",
    "s = 'x\ny'",
    "s = 'x\012y'",
    "i32 = +5",
    "i32 = 5 AND (s = 'a' OR (b AND NOT b))",
    "i32 > (SELECT 1)",
    "i32 IN (SELECT 5)",
    "`i32` = 5",
    "I32 = 5",
    "`s` = 'a' -- a comment",
    "/* a comment */ s = 'a'",
    "st.`x` = 1",
    "nosuch = 1",
    "i32 = ",
    "i32 = 5 5",
]
CASTS = (
    [
        f"{function}({column} AS {kind}) {rest}"
        for function in ("CAST", "TRY_CAST")
        for column, kind, rest in [
            ("i32", "BIGINT", "= 5"),
            ("i32", "DOUBLE", "> 5.5"),
            ("i32", "FLOAT", "= 16777216"),
            ("i64", "DOUBLE", "= 9007199254740992"),
            ("i64", "DOUBLE", ">= 9007199254740993"),
            ("i64", "FLOAT", "< 5"),
            ("i32", "DECIMAL(12,2)", "= 5.5"),
            ("i32", "DECIMAL(12,2)", "= 5.00"),
            ("i32", "TINYINT", "= 44"),
            ("i64", "INT", "= 1"),
            ("i32", "STRING", "= '5'"),
            ("i32", "BOOLEAN", "= TRUE"),
            ("d", "INT", "= 5"),
            ("d", "BIGINT", "= 0"),
            ("d", "TINYINT", "= 1"),
            ("d", "FLOAT", "= 0.1F"),
            ("f", "INT", "= 0"),
            ("d", "DECIMAL(10,2)", "= 0.10"),
            ("d", "BOOLEAN", ""),
            ("d", "STRING", "= '0.1'"),
            ("f", "DOUBLE", "> 0.1"),
            ("f", "DOUBLE", "= 0.1D"),
            ("f", "DOUBLE", "<=> 0.1D"),
            ("dec", "INT", "= 1"),
            ("dec", "TINYINT", "= 1"),
            ("dec", "DOUBLE", "> 1.005"),
            ("dec", "DECIMAL(12,4)", "= 1.01"),
            ("dec", "DECIMAL(5,1)", "= 1.0"),
            ("dec", "DECIMAL(9,0)", "= 6"),
            ("dec", "STRING", "= '1.01'"),
            ("wide", "DOUBLE", "= 5"),
            ("wide", "DOUBLE", "= 9007199254740992"),
            ("wide", "STRING", "= '0.0000000001'"),
            ("wide", "BIGINT", "= 5"),
            ("b", "INT", "= 1"),
            ("b", "STRING", "= 'true'"),
            ("b", "DECIMAL(3,1)", "= 1"),
            ("da", "TIMESTAMP", "= TIMESTAMP'2024-03-10 00:00:00'"),
            ("da", "TIMESTAMP", "> TIMESTAMP'2024-03-10 00:00:00.000001'"),
            ("da", "TIMESTAMP_NTZ", "< TIMESTAMP_NTZ'2024-03-10 12:00:00'"),
            ("da", "STRING", "= '2024-03-10'"),
            ("ts", "DATE", "= DATE'2024-03-10'"),
            ("ts", "DATE", "> DATE'2024-03-10'"),
            ("ts", "DATE", "<> DATE'2024-03-10'"),
            ("ts", "DATE", "IN (DATE'2024-03-10', DATE'2024-06-15')"),
            ("ts", "DATE", "IN (DATE'2024-03-10', NULL)"),
            ("ts", "DATE", "<=> DATE'2024-11-03'"),
            ("ts", "STRING", "= '2024-06-15 12:34:56.789'"),
            ("ts", "TIMESTAMP_NTZ", "= TIMESTAMP_NTZ'2024-03-10 03:30:00'"),
            ("ts", "TIMESTAMP_NTZ", "<= TIMESTAMP_NTZ'2024-11-03 01:30:00'"),
            ("ts", "BIGINT", "> 0"),
            ("ts", "BIGINT", "= -1"),
            ("ntz", "TIMESTAMP", "= TIMESTAMP'2024-03-10 03:30:00'"),
            ("ntz", "TIMESTAMP", "< TIMESTAMP'2024-03-10 03:15:00'"),
            ("ntz", "DATE", ">= DATE'2024-03-10'"),
            ("ntz", "DATE", "= DATE'2024-06-15'"),
            ("ntz", "STRING", "LIKE '%02:30:00'"),
            ("s", "BINARY", "= X'61'"),
            ("bin", "STRING", "= 'a'"),
            ("s", "BINARY", "> X'61'"),
            ("i64", "TIMESTAMP", "> TIMESTAMP'1970-01-01 00:00:02'"),
            ("i32", "TIMESTAMP", "= TIMESTAMP'1970-01-01 00:00:05'"),
            ("d", "BIGINT", "= 9223372036854775807"),
            ("d", "BIGINT", "IS NULL"),
            ("dec", "DECIMAL(9,0)", "= 3"),
            ("dec", "DECIMAL(9,0)", "= -3"),
            ("dec", "DECIMAL(9,0)", "= 1"),
            ("n", "INT", "= 5"),
            ("n", "BIGINT", "IS NULL"),
            ("n", "DOUBLE", "= 5"),
            ("n", "DECIMAL(5,1)", "= 5.7"),
            ("n", "BOOLEAN", "IS NULL"),
            ("w", "DATE", "= DATE'2024-03-10'"),
            ("w", "DATE", "IS NULL"),
            ("w", "TIMESTAMP", "IS NULL"),
            ("w", "TIMESTAMP", "= TIMESTAMP'2024-03-10 07:00:00'"),
            ("w", "TIMESTAMP", "< TIMESTAMP'2024-03-10 07:00:00Z'"),
            ("w", "TIMESTAMP", "> TIMESTAMP'2024-03-10 07:00:00.3'"),
            ("w", "TIMESTAMP_NTZ", "IS NULL"),
            ("w", "TIMESTAMP_NTZ", "= TIMESTAMP_NTZ'2024-03-10 07:00:00'"),
            ("w", "TIMESTAMP_NTZ", "> TIMESTAMP_NTZ'2024-03-10 07:00:00.123455'"),
            ("f", "STRING", "= '0.1'"),
            ("i32", "VARCHAR(1)", "= '5'"),
            ("i32", "INT", "= 5"),
            ("i32", "BIGINT", "IS NULL"),
            ("i32", "TINYINT", "IS NULL"),
            ("i32", "BIGINT", "IN (1, 5, 4294967296)"),
            ("f", "DOUBLE", "IN (0.1D, 1D, NULL)"),
            ("i64", "DOUBLE", "IN (9007199254740992D)"),
            ("i64", "DOUBLE", "NOT IN (9007199254740992D, NULL)"),
            ("i32", "SMALLINT", "= 300"),
            ("f", "DECIMAL(4,2)", "= 0.1"),
        ]
    ]
    + [
        f"TRY_CAST(n AS {kind}) {rest}"
        for kind, rest in [
            ("INT", "= 5"),
            ("INT", "IS NULL"),
            ("TINYINT", "> 4"),
            ("BIGINT", ">= 300"),
            ("DOUBLE", "= 5"),
            ("DOUBLE", "IS NULL"),
            ("DOUBLE", "> 100"),
            ("FLOAT", "= 0.1F"),
            ("DECIMAL(5,1)", "= 5.7"),
            ("DECIMAL(5,1)", "IS NULL"),
            ("BOOLEAN", ""),
            ("BOOLEAN", "IS NULL"),
            ("DATE", "= DATE'2024-03-10'"),
            ("DATE", "IS NULL"),
            ("TIMESTAMP", "IS NULL"),
            ("TIMESTAMP", "= TIMESTAMP'2024-03-10 07:00:00Z'"),
            ("TIMESTAMP_NTZ", "= TIMESTAMP_NTZ'2024-03-10 01:30:00'"),
            ("BINARY", "= X'35'"),
        ]
    ]
    + [
        "i32::BIGINT = 5",
        "ts::date = '2024-06-15'",
        "date(ts) = '2024-03-10'",
        "int(n) = 5",
        "string(i32) = '5'",
        "double(f) = 0.1D",
    ]
)

UTC_ANSI, UTC_LEGACY, NEW_YORK = ("UTC", True), ("UTC", False), ("America/New_York", True)


def texts() -> Iterator[tuple[str, list[tuple[str, bool]]]]:
    """Every predicate, with the sessions to ask it in."""
    for column, literals in LITERALS.items():
        zoned = column in ("da", "ts", "ntz", "n")
        for literal, operator in itertools.product(literals, OPERATORS):
            sessions = [
                UTC_ANSI,
                *([UTC_LEGACY] if operator in ("=", "<=>", ">") else []),
                *([NEW_YORK] if zoned else []),
            ]
            yield f"{column} {operator} {literal}", sessions
    for column, lists in LISTS.items():
        for listed in lists:
            yield f"{column} IN {listed}", [UTC_ANSI, UTC_LEGACY]
            yield f"{column} NOT IN {listed}", [UTC_ANSI]
    for text in TEXTS + LOGIC:
        yield text, [UTC_ANSI, UTC_LEGACY]
    for text in CASTS:
        zoned = any(word in text for word in ("(ts", "(ntz", "(da", "(w", "TIMESTAMP", "ts::"))
        yield text, [UTC_ANSI, UTC_LEGACY, *([NEW_YORK] if zoned else [])]


class Asker:
    def __init__(self, spark: SparkSession, folder: str) -> None:
        path = str(Path(folder) / "rows.parquet")
        pq.write_table(ROWS, path)
        self.spark, self.frame = spark, spark.read.parquet(path)
        self.jvm: Any = spark.sparkContext._jvm
        classes = load_java_classes(self.jvm, *java_sources())
        methods = classes["ExpressionJson"].getMethods()
        self.trees = next(method for method in methods if method.getName() == "of")
        self.columns = self.jvm.java.util.TreeSet()
        for name in ROWS.column_names:
            self.columns.add(name)

    def _array(self, kind: str, values: list[Any]) -> Any:
        java_class = self.jvm.java.lang.Class.forName(kind)
        made = self.jvm.java.lang.reflect.Array.newInstance(java_class, len(values))
        for i, value in enumerate(values):
            made[i] = value
        return made

    def cases(self, texts: list[str], zone: str, ansi: bool) -> Iterator[dict[str, Any]]:
        """All that one session answers; many in one query, unless one of them fails."""
        self.spark.conf.set("spark.sql.session.timeZone", zone)
        self.spark.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
        made = [self._case(text, zone, ansi) for text in texts]
        asked = [case for case in made if "refused" not in case]
        for start in range(0, len(asked), 40):
            self._answer(asked[start : start + 40])
        yield from made

    def _answer(self, cases: list[dict[str, Any]]) -> None:
        try:
            rows = self.frame.selectExpr(
                "row", *(f"({case['sql'].split('--')[0]}) AS c{i}" for i, case in enumerate(cases))
            ).collect()
        except PySparkException as refusal:
            if len(cases) == 1:
                cases[0]["refused"] = refusal.getCondition() or type(refusal).__name__
            for case in cases if len(cases) > 1 else ():
                self._answer([case])
            return
        found = {row["row"]: row for row in rows}
        for i, case in enumerate(cases):
            case["answers"] = "".join({True: "t", False: "f", None: "n"}[found[row][f"c{i}"]] for row in range(COUNT))

    def _case(self, text: str, zone: str, ansi: bool) -> dict[str, Any]:
        case: dict[str, Any] = {"sql": text} | ({} if (zone, ansi) == UTC_ANSI else {"zone": zone, "ansi": ansi})
        try:
            filtered = self.frame.where(text)
            case["analyzed"] = self._filters(filtered._jdf.queryExecution().analyzed())
            case["optimized"] = self._filters(filtered._jdf.queryExecution().optimizedPlan())
        except PySparkException as refusal:
            return case | {"refused": refusal.getCondition() or type(refusal).__name__}
        return case

    def _filters(self, plan: Any) -> Any:
        filters = self.jvm.java.util.ArrayList()
        self._collect(plan, filters)
        if not filters:
            return None
        seq = self.jvm.org.apache.spark.api.python.PythonUtils.toSeq(filters)
        return json.loads(self.trees.invoke(None, self._array("java.lang.Object", [seq, self.columns])))

    def _collect(self, plan: Any, filters: Any) -> None:
        if plan.nodeName() == "Filter":
            filters.add(plan.condition())
        children = plan.children()
        for i in range(children.length()):
            self._collect(children.apply(i), filters)


TYPES = [
    "boolean",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "decimal(10,2)",
    "decimal(20,4)",
    "decimal(38,10)",
    "date",
    "timestamp",
    "timestamp_ntz",
    "string",
    "binary",
]


def coercion(spark: SparkSession, ansi: bool) -> dict[str, str | None]:
    """The type as which Spark compares each pair, and looks each up in a list of the other; None where it refuses."""
    spark.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    frame = spark.sql("SELECT " + ", ".join(f"CAST(NULL AS {kind}) AS c{i}" for i, kind in enumerate(TYPES)))
    found: dict[str, str | None] = {}
    for (i, left), (j, right) in itertools.product(enumerate(TYPES), repeat=2):
        for word, text in (("=", f"c{i} = c{j}"), ("IN", f"c{i} IN (c{j}, c{j})")):
            try:
                tree = frame.where(text)._jdf.queryExecution().analyzed().condition()
                found[f"{left} {word} {right}"] = tree.children().apply(0).dataType().simpleString()
            except PySparkException:
                found[f"{left} {word} {right}"] = None
    return found


def as_json(value: Any) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case dict():
            return {name: as_json(part) for name, part in value.items()}
        case bytes():
            return value.hex()
        case datetime() | date():
            return value.isoformat()
        case _:
            return str(value)


def main() -> None:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.parquet.filterPushdown", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    logging.getLogger("SQLQueryContextLogger").disabled = True  # Spark refuses some cases, as it should
    with tempfile.TemporaryDirectory() as folder:
        asker = Asker(spark, folder)
        asked = [(session, text) for text, sessions in texts() for session in sessions]
        sessions = {session: [text for given, text in asked if given == session] for session, _ in asked}
        cases = [case for (zone, ansi), listed in sessions.items() for case in asker.cases(listed, zone, ansi)]
    columns = {name: [as_json(value) for value in ROWS.column(name).to_pylist()] for name in ROWS.column_names}
    golden = {
        "spark": spark.version,
        "columns": columns,
        "coercion": {"ansi": coercion(spark, True), "legacy": coercion(spark, False)},
    }
    lines = ",\n".join(json.dumps(case, ensure_ascii=False, separators=(",", ":")) for case in cases)
    head = json.dumps(golden, ensure_ascii=False, separators=(",", ":")).removesuffix("}")
    Path(__file__).with_name("predicates.json").write_text(f'{head},\n"cases":[\n{lines}\n]}}\n', "utf-8")
    print(len(cases), "cases,", sum("answers" in case for case in cases), "with answers", file=sys.stderr)


if __name__ == "__main__":
    main()
