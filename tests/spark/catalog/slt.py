"""Files of statements and what becomes of them, as sqllogictest has them, so that anybody can add to them.

A record is some lines, and a blank line ends it. It begins with one of

- ``statement ok``: the SQL that follows is done
- ``statement error <regex>``: it raises, and the regex is found in the first line of the message
- ``query`` or ``query rowsort``: its rows follow after ``----``, a line each, columns joined by `` | ``; ``rowsort``
  if their order is of no account
- ``halt``: what follows is of kinds that came before, and is done where EFFORT says more

Lines with ``#`` before a record are comments. ``{tmp}`` is a folder of the test's own; ids of 32 hexadecimal digits
are ``<id>`` in rows.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

_ID = re.compile(r"\b[0-9a-f]{32}\b")


@dataclass(frozen=True)
class Record:
    where: str
    head: str
    sql: str
    rows: list[str]


def records(path: Path) -> Iterator[Record]:
    for match in re.finditer(r"(?:^[^\n]+\n?)+", path.read_text("utf-8"), re.MULTILINE):
        lines = match[0].splitlines()
        while lines and lines[0].startswith("#"):
            del lines[0]
        if not lines:
            continue
        number = path.read_text("utf-8")[: match.start()].count("\n") + 1
        body = lines[1:]
        end = body.index("----") if "----" in body else len(body)
        yield Record(f"{path.name}:{number}", lines[0], "\n".join(body[:end]), body[end + 1 :])


def follow(spark: SparkSession, path: Path, tmp: Path, halts: bool = False) -> list[str]:
    """Do what a file says, and tell where it is not so: the line, what was expected and what came."""
    said = [*records(path)]
    heads = [record.head for record in said]
    end = heads.index("halt") if halts and "halt" in heads else len(said)
    return [difference for record in said[:end] for difference in _differences(spark, record, tmp)]


def _differences(spark: SparkSession, record: Record, tmp: Path) -> Iterator[str]:
    kind, _, rest = record.head.partition(" ")
    if kind == "halt":
        return
    sql = record.sql.replace("{tmp}", str(tmp))
    if rest.startswith("error"):
        message = _refusal(spark, sql)
        if not re.search(rest.removeprefix("error").strip(), message):
            yield f"{record.where}: {rest}, and it raised {message or 'nothing'}"
        return
    try:
        rows = [_shown(row, tmp) for row in spark.sql(sql).collect()]
    except PySparkException as problem:
        yield f"{record.where}: {str(problem)[:1000]}"
        return
    expected = record.rows
    if rest == "rowsort":
        rows, expected = sorted(rows), sorted(expected)
    if kind == "query" and rows != expected:
        yield "\n".join([f"{record.where}: these rows", *expected, "are expected, and these came", *rows])


def _refusal(spark: SparkSession, sql: str) -> str:
    """The first line of what a statement raises; nothing if it is done."""
    try:
        spark.sql(sql).collect()
    except PySparkException as refusal:
        return str(refusal).split("\n")[0]
    return ""


def _shown(row: object, tmp: Path) -> str:
    cells = ["NULL" if value is None else str(value) for value in row]  # type: ignore[attr-defined]
    return _ID.sub("<id>", " | ".join(cells)).replace(str(tmp), "{tmp}").rstrip()


def make_filled_table(tmp: Path) -> None:
    """The table ``{tmp}/filled`` that files read: three rows, two of them at the tag ``monday``, four in a branch."""
    import fuse_index as fuse  # which clients that only follow files lack

    filled = fuse.create_table(tmp / "filled", "id BIGINT, name STRING")
    filled.append([{"id": 1, "name": "a"}, {"id": 2, "name": "b"}])
    filled.tag("monday")
    filled.append([{"id": 3, "name": "c"}])
    filled.branch("try").append([{"id": 4, "name": "d"}])
