"""Asks Spark about the conditions that people type, once, and writes it down in ``conditions.json``.

``conditions.txt`` has one condition a line. Each is asked in three sessions, row by row: t, f or n (NULL), e where
Spark raises, and r where it refuses the text. Of conditions that compare a term with something, the term's type and
values are kept too. The answers of an older Spark stand beside those of the newer where the two differ.

    PYTHONPATH=. python tests/golden/make_conditions.py part.json               # once with each Spark
    PYTHONPATH=. python tests/golden/make_conditions.py new.json old.json       # joins both into conditions.json
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).parent
SESSIONS = {"ansi": ("UTC", True), "legacy": ("UTC", False), "new york": ("America/New_York", True)}
"""Time zone, and whether the session is ANSI."""
NAN, INF = float("nan"), float("inf")
COLUMNS: Mapping[str, tuple[pa.DataType, Sequence[Any]]] = {
    "n": (pa.int32(), [5, 1, None, 0, -5, 2**31 - 1, -(2**31), 7, 300, 2]),
    "i8": (pa.int8(), [5, 127, None, 0, -128, 100, -1, 64, 1, -100]),
    "big": (pa.int64(), [5, 2**63 - 1, None, 0, -(2**63), 3_000_000_000, -1, 10, 300, 1_700_000_000]),
    "x": (pa.float64(), [1.5, 2.5, None, 0.0, -1.0, NAN, INF, -2.25, 0.125, 100.0]),
    "f": (pa.float32(), [0.5, 0.1, None, -0.0, 3.4e38, NAN, -INF, 1.5, -1.5, 7.0]),
    "price": (
        pa.decimal128(10, 2),
        ["9.99", "10.05", None, "0.00", "-2.50", "99999999.99", "5.00", "0.01", "-9.95", "3.15"],
    ),
    "wide": (
        pa.decimal128(38, 10),
        [
            "1.5",
            "1234567890123456789012345678.0123456789",
            None,
            "0",
            "-0.0000000001",
            "10",
            "2.5",
            "7",
            "-3.3333333333",
            "1",
        ],
    ),
    "ok": (pa.bool_(), [True, False, None, True, False, True, False, None, True, False]),
    "city": (
        pa.string(),
        ["Bonn", "Köln", None, "", "bonn", "Aachen", "B%_\\n", " Bonn ", "o'neil smith-jones", "Bonn\n"],
    ),
    "s": (pa.string(), ["  a b ", "100", None, "", "a,b,c", "100%", "x100y", "1.5", "2024-02-29", "79927398713"]),
    "raw": (pa.binary(), [b"\x00\xff", b"", None, b"abc", b"\x00\xff\x01", b"Bonn", b"\x80", b"a", b"b", b"c"]),
    "day": (
        pa.date32(),
        [
            "2024-02-29",
            "2024-01-31",
            None,
            "1970-01-01",
            "1969-12-31",
            "9999-12-31",
            "0001-01-01",
            "2023-12-31",
            "2024-03-10",
            "1582-10-15",
        ],
    ),
    "ts": (
        pa.timestamp("us", "UTC"),
        [
            "2024-02-29 12:34:56.789",
            "2024-01-31 23:59:59.999999",
            None,
            "1970-01-01 00:00:00",
            "1969-12-31 23:59:59.999999",
            "2099-12-31 23:00:00",
            "1900-01-01 00:00:01",
            "2024-03-10 07:30:00",
            "2024-11-03 05:30:00",
            "2024-11-03 06:30:00",
        ],
    ),
    "wall": (
        pa.timestamp("us"),
        [
            "2024-02-29 12:34:56.789",
            "2024-01-31 23:59:59.999999",
            None,
            "1970-01-01 00:00:00",
            "1969-12-31 23:59:59.999999",
            "2099-12-31 23:00:00",
            "1900-01-01 00:00:01",
            "2024-03-10 02:30:00",
            "2024-11-03 01:30:00",
            "2024-11-03 06:30:00",
        ],
    ),
    "tags": (
        pa.list_(pa.string()),
        [["a", "b"], [], None, ["b", None], ["z"], [None], ["b", "a"], ["a"], ["a", "a"], ["c", "a"]],
    ),
    "nums": (pa.list_(pa.int32()), [[1, 2, 3], [], None, [5], [None, 5], [2**31 - 1], [-1, 1], [3, 1, 2], [1], [None]]),
    "props": (
        pa.map_(pa.string(), pa.string()),
        [
            {"k": "v"},
            {},
            None,
            {"k": None},
            {"a": "v"},
            {"k": "w", "l": "v"},
            {"": "v"},
            {"k": "v", "z": "z"},
            {"K": "v"},
            {"v": "k"},
        ],
    ),
    "place": (
        pa.struct([("lat", pa.float64()), ("city", pa.string())]),
        [
            (50.7, "Bonn"),
            (50.9, None),
            None,
            (None, "Köln"),
            (NAN, "Bonn"),
            (0.0, ""),
            (-50.0, "x"),
            (51.0, "Bonn"),
            (50.0, "b"),
            (None, None),
        ],
    ),
    "js": (
        pa.string(),
        ['{"a": 1}', '{"a": "1"}', None, "{", '{"b": 1}', '{"a": null}', "[]", '{"a": 1.0}', '{"a": 1, "b": 2}', ""],
    ),
}
_COMPARED = re.compile(r"(?P<term>.*) (?:=|<>|>|<|>=|<=) [^=<>]*")


def rows() -> pa.Table:
    """What the conditions are asked of, with the number of each row."""
    arrays = {
        name: pa.array([_value(value, kind) for value in values], kind) for name, (kind, values) in COLUMNS.items()
    }
    count = len(COLUMNS["n"][1])
    return pa.table({"row": pa.array(range(count), pa.int32()), **arrays})


def write_rows(path: str) -> None:
    """The rows as a Parquet file."""
    pq.write_table(rows(), path)


def conditions() -> list[str]:
    """The conditions, in the order of their file."""
    lines = (HERE / "conditions.txt").read_text("utf-8").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def compared_term(condition: str) -> str | None:
    """The term that a condition compares with something."""
    found = _COMPARED.fullmatch(condition)
    return None if found is None or re.search(r"\b(AND|OR|NOT|BETWEEN|now|current_\w+)\b", condition) else found["term"]


def written(value: Any) -> Any:
    """A value as JSON has it: one text for equal values of one type."""
    match value:
        case None | bool() | int() | str():
            return value
        case bytes():
            return value.hex()
        case datetime():
            return (value.astimezone(UTC) if value.tzinfo else value).isoformat(" ")
        case list() | tuple():
            return [written(each) for each in value]
        case _:
            return str(value)


def _value(value: Any, kind: pa.DataType) -> Any:
    if isinstance(value, str) and pa.types.is_decimal(kind):
        return Decimal(value)
    if isinstance(value, str) and pa.types.is_date(kind):
        return date.fromisoformat(value)
    if isinstance(value, str) and pa.types.is_timestamp(kind):
        return datetime.fromisoformat(value).replace(tzinfo=UTC if kind.tz else None)
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, tuple):
        return dict(zip(("lat", "city"), value, strict=True))
    return value


class Asked:
    """One session of Spark, over the rows."""

    def __init__(self, spark: Any, table: pa.Table, folder: str) -> None:
        self.rows = table
        path = f"{folder}/rows.parquet"
        pq.write_table(table, path)
        spark.read.parquet(path).createOrReplaceTempView("t")
        self.spark = spark
        for row in range(table.num_rows):
            pq.write_table(table.slice(row, 1), f"{folder}/{row}.parquet")
            spark.read.parquet(f"{folder}/{row}.parquet").createOrReplaceTempView(f"t{row}")

    def values(self, expression: str) -> tuple[str, list[Any]] | None:
        """The type, and a value a row, ``{"raises": …}`` where Spark raises; None for what it refuses."""
        try:
            df = self.spark.sql(f"SELECT row, {expression} AS value FROM t")
        except Exception:  # Spark's many classes of refusals
            return None
        kind = df.schema[1].dataType.simpleString()
        try:
            found = sorted(zip(*df.toArrow().to_pydict().values(), strict=True), key=lambda pair: pair[0])
            return kind, [written(value) for _, value in found]
        except Exception:
            return kind, [self._one(expression, row) for row in range(self.rows.num_rows)]

    def _one(self, expression: str, row: int) -> Any:
        try:
            return written(self.spark.sql(f"SELECT {expression} AS value FROM t{row}").toArrow()[0][0].as_py())
        except Exception as raised:
            found = re.match(r"\s*\[([A-Z_.0-9]+)\]", str(raised))
            return {"raises": found[1] if found else type(raised).__name__}


def ask(spark: Any) -> dict[str, Any]:
    """What this Spark says of all conditions and terms in all sessions."""
    cases: dict[str, Any] = {}
    table = rows()
    for session, (zone, ansi) in SESSIONS.items():
        spark.conf.set("spark.sql.session.timeZone", zone)
        spark.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
        with tempfile.TemporaryDirectory() as folder:
            asked = Asked(spark, table, folder)
            for condition in conditions():
                case = cases.setdefault(condition, {})
                found = asked.values(condition)
                case[session] = "r" if found is None else "".join(map(letter, found[1]))
                term = compared_term(condition)
                if found is not None and term is not None and (values := asked.values(term)) is not None:
                    case.setdefault("term", term)
                    case[f"{session} type"], case[f"{session} values"] = values
    return cases


def letter(value: Any) -> str:
    """What an answer is written as."""
    return "n" if value is None else "e" if isinstance(value, dict) else "t" if value else "f"


def join(new: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    """Both answers as one, those of the older Spark under ``older`` where they differ."""
    joined = {}
    for condition, case in new.items():
        older = old[condition]
        differing = {name: older.get(name) for name in case if older.get(name) != case[name]}
        joined[condition] = {**case, **({"older": differing} if differing else {})}
    return joined


def main(arguments: Sequence[str]) -> None:
    """Asks the Spark that is installed, or joins what two of them said."""
    if len(arguments) == 2:
        both = [json.loads(Path(path).read_text("utf-8")) for path in arguments]
        lines = ",\n".join(
            f"{json.dumps(condition)}: {json.dumps(case, ensure_ascii=False)}"
            for condition, case in join(*both).items()
        )
        (HERE / "conditions.json").write_text(f"{{\n{lines}\n}}\n", "utf-8")
        return
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = (
        builder.config("spark.sql.shuffle.partitions", 1)
        .config("spark.sql.sources.useV1SourceList", "parquet")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    Path(arguments[0]).write_text(json.dumps(ask(spark)), "utf-8")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
