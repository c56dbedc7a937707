"""A table's columns as Spark writes them in DDL: ``id BIGINT NOT NULL, tags ARRAY<STRING> COMMENT 'as typed'``."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field

import pyarrow as pa

from fuse_index.errors import WhereError
from fuse_index.expressions import types
from fuse_index.sql.tokenizer import error_at, unescape_string
from fuse_storage import SPARK_TYPES_BY_NAME

_TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)+`)|('(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\")|(\w+)|(.))", re.DOTALL)


def parse_schema(ddl: str) -> pa.Schema:
    """The Arrow schema of ``name type [NOT NULL] [COMMENT 'text'], …``, types nested or not.

    Raises WhereError with the place.
    """
    reader = _Reader(ddl)
    fields = reader.fields(colon=False)
    reader.expect("")
    return pa.schema(fields)


_OTHERS_TYPES = {
    **dict.fromkeys(("VARCHAR", "CHAR", "NVARCHAR", "VARCHAR2"), "STRING, or VARCHAR(20) with a length"),
    **dict.fromkeys(("TEXT", "UUID", "JSON", "JSONB", "CLOB", "STR", "UTF8", "OBJECT", "ENUM"), "STRING"),
    **dict.fromkeys(("DATETIME", "TIMESTAMPTZ"), "TIMESTAMP"),
    **dict.fromkeys(("SERIAL", "BIGSERIAL", "INT64", "INT8", "UINT32", "HUGEINT"), "BIGINT"),
    **dict.fromkeys(("INT32", "INT4", "MEDIUMINT", "UINT16"), "INT"),
    **dict.fromkeys(("FLOAT64", "FLOAT8", "MONEY"), "DOUBLE"),
    **dict.fromkeys(("BLOB", "BYTEA", "BYTES", "VARBINARY"), "BINARY"),
    **dict.fromkeys(("NUMBER", "DECIMAL", "NUMERIC", "DEC"), "DECIMAL(p, s) with p up to 38"),
    **dict.fromkeys(("LIST", "ARRAY"), "ARRAY<STRING>"),
    "TIME": "BIGINT of microseconds, or STRING",
}
"""Types that other databases and libraries have, and those of Spark to take in their place."""
_TYPE_WORDS = (*SPARK_TYPES_BY_NAME, "decimal", "struct", "array", "map")
_CLAUSES = {
    "PRIMARY": "name the columns of the key beside them, primary_key=['id']",
    "DEFAULT": "set it afterwards, table.set_default('column', value)",
    "CHECK": "rows are not checked when they are written",
    "CONSTRAINT": "only NOT NULL is checked, which is written after the type",
    "GENERATED": "compute the values before they are written",
    "UNIQUE": "only a primary key holds rows apart, primary_key=['id']",
    "REFERENCES": "no table knows of another",
    "FOREIGN": "no table knows of another",
    "AUTO_INCREMENT": "compute the values before they are written",
    "AUTOINCREMENT": "compute the values before they are written",
    "IDENTITY": "compute the values before they are written",
    **dict.fromkeys(("WITH", "WITHOUT"), "TIMESTAMP is an instant, and TIMESTAMP_NTZ a time without a zone"),
    "COLLATE": "texts are compared by their bytes",
}
"""Clauses that other databases have behind a column's type, and what there is here in their place."""


_NESTED = {"<": "ARRAY<STRING>, MAP<STRING, INT> or STRUCT<x: INT>", ",": "MAP<STRING, INT>"}
"""How types are written that have others in them, by the sign that is missing."""


@dataclass
class _Reader:
    ddl: str
    at: int = 0
    tokens: list[re.Match[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tokens = list(_TOKEN.finditer(self.ddl.rstrip()))

    @property
    def word(self) -> str:
        return self.tokens[self.at][0].strip() if self.at < len(self.tokens) else ""

    def take(self) -> str:
        word = self.word
        self.at += 1
        return word

    def expect(self, wanted: str) -> None:
        if self.word.upper() != wanted:
            nested = f", as in {_NESTED[wanted]}" if wanted in _NESTED else ""
            raise self.error(f"expected {wanted!r}{nested}" if wanted else "expected a comma or the end")
        self.at += 1

    def skip(self, wanted: str) -> bool:
        here = self.word.upper() == wanted
        self.at += here
        return here

    def error(self, message: str) -> WhereError:
        found = self.tokens[self.at] if self.at < len(self.tokens) else None
        start = found.end() - len(found[0].strip()) if found else len(self.ddl)
        return error_at(self.ddl, message, start, found.end() if found else start + 1)

    def fields(self, colon: bool) -> list[pa.Field]:
        made = [self.field(colon)]
        while self.skip(","):
            made.append(self.field(colon))
        return made

    def field(self, colon: bool) -> pa.Field:
        if not re.fullmatch(r"`.+`|\w+", self.word, re.DOTALL):
            extra = {"": ": leave out the last comma", "(": ": leave out the parentheses around all"}
            none = "" if self.tokens else ": give one at least, such as id BIGINT"
            raise self.error(f"expected the name of a column{none or extra.get(self.word, '')}")
        self.refuse_clause(constraint=True)
        name = self.take()
        name = name[1:-1].replace("``", "`") if name[0] == "`" else name
        if colon:
            self.expect(":")
        else:
            self.skip(":")
        data_type = self.data_type()
        nullable = not self.skip("NOT")
        if not nullable:
            self.expect("NULL")
        metadata = {"comment": self.text()} if self.skip("COMMENT") else None
        self.refuse_clause()
        return pa.field(name, data_type, nullable, metadata)

    def refuse_clause(self, constraint: bool = False) -> None:
        """Raise WhereError for a clause of other databases here, which says what there is in its place."""
        word = self.word.upper()
        following = self.tokens[self.at + 1][0].strip().upper() if self.at + 1 < len(self.tokens) else ""
        is_type = following in ("", ",", ":") or types.type_from_spark_name(following) is not None
        is_type = is_type or following in ("STRUCT", "ARRAY", "MAP", "DECIMAL")
        if word in _CLAUSES and not (constraint and is_type):  # a column may be called so
            raise self.error(f"{word} is no part of a column here: {_CLAUSES[word]}")

    def text(self) -> str:
        if self.word[:1] not in ("'", '"'):
            raise self.error("expected a text in quotes")
        try:
            return unescape_string(self.word)
        except ValueError as refusal:
            raise self.error(str(refusal)) from None
        finally:
            self.at += 1

    def data_type(self) -> pa.DataType:
        match self.word.upper():
            case "STRUCT":
                self.at += 1
                self.expect("<")
                made = pa.struct(self.fields(colon=False))
            case "ARRAY":
                self.at += 1
                self.expect("<")
                made = pa.list_(pa.field("element", self.data_type()))
            case "MAP":
                self.at += 1
                self.expect("<")
                key = self.data_type()
                self.expect(",")
                made = pa.map_(key, self.data_type())
            case _:
                return self.plain()
        self.expect(">")
        return made

    def plain(self) -> pa.DataType:
        start = self.at
        name = self.take()
        if self.word == "(":
            while self.word and not name.endswith(")"):
                name += self.take()
        data_type = types.type_from_spark_name(name)
        if data_type is None or data_type == pa.null():
            self.at = start
            near = difflib.get_close_matches(name.lower(), _TYPE_WORDS, n=1, cutoff=0.6)
            hint = f"; did you mean {near[0].upper()}?" if near and name else ""
            if taken := _OTHERS_TYPES.get(name.partition("(")[0].upper()):
                hint = f": take {taken}"
            elif self.ddl.lstrip()[:7].upper() == "CREATE ":
                hint = ": give the columns alone, such as 'id BIGINT, name STRING'"
            is_name = name[:1].isalnum() or name[:1] == "_"
            raise self.error(f"no column can have the type {name!r}{hint}" if is_name else "expected a type")
        return data_type
