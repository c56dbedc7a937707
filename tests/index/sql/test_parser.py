"""The SQL that people type: what it means, and what is said where it means nothing."""

from __future__ import annotations

import math
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from fuse_index.errors import OpaqueError, WhereError
from fuse_index.expressions.evaluate import evaluate
from fuse_index.expressions.to_sql import predicate_sql
from fuse_index.plugin import Function
from fuse_index.predicate import (
    And,
    Call,
    Cast,
    Column,
    Compare,
    Context,
    In,
    IsNull,
    JsonPath,
    Like,
    Literal,
    Not,
    Opaque,
    Or,
    StartsWith,
)
from fuse_index.reasons import Reason
from fuse_index.sql.ddl import parse_schema
from fuse_index.sql.parse import parse_predicate, parse_term
from fuse_storage import Schema
from tests.acme.acme_functions import fuse_index_functions

DDL = """
    id BIGINT, n INT, tiny TINYINT, f FLOAT, d DOUBLE, price DECIMAL(10,2), ok BOOLEAN, name STRING, Body STRING, day
    DATE, at TIMESTAMP,
    clock TIMESTAMP_NTZ, raw BINARY, tags ARRAY<STRING>, `odd ``name.x` INT, order INT, end_ INT, address STRUCT<city:
    STRING,
    geo: STRUCT<lat: DOUBLE>>
"""
SCHEMA = Schema.create(parse_schema(DDL))
MATCH = Function("match", (pa.string(), pa.string()), lambda values, text: pa.nulls(len(values), pa.bool_()))

ID, N, NAME, OK = (Column((name,), SCHEMA.find(name).type) for name in ("id", "n", "name", "ok"))


def on(column, operator, value):
    kind = SCHEMA.find(column).type
    return Compare(operator, Column(SCHEMA_PATHS[column.lower()], kind), Literal(value, kind))


SCHEMA_PATHS = {field.name.lower(): (field.name,) for field in SCHEMA.fields}


def test_parsed_and_normalised_every_predicate_is_what_it_was_to_spark(golden):
    wrong, judged = {}, 0
    for case, answers in golden.plain:
        predicate = parse_predicate(case.sql, golden.schema, case.context)
        try:
            ours = evaluate(predicate, golden.rows, case.context).to_pylist()
        except OpaqueError:
            continue
        judged += 1
        if ours != answers:
            wrong[str(case)] = predicate_sql(predicate)

    assert wrong == {}
    assert judged > 2_500


def test_what_spark_refuses_to_read_is_refused_here_with_the_place_or_not_understood(golden):
    refused = [case for case in golden.cases if case.unreadable]
    accepted = set()
    for case in refused:
        try:
            predicate = parse_predicate(case.sql, golden.schema, case.context)
        except WhereError as refusal:
            accepted |= set() if "^" in str(refusal) else {case.sql}
        else:
            accepted |= set() if "Opaque" in repr(predicate) else {case.sql}

    assert len(refused) > 30
    assert accepted == {"NULL", "s LIKE s"}  # the one is no row, and the other an error on some rows only


def test_everything_that_was_read_can_be_shown_and_read_again(golden):
    for case in golden.cases:
        if case.answers is not None:
            predicate = parse_predicate(case.sql, golden.schema, case.context)
            if "Opaque" not in repr(predicate):
                assert (
                    parse_predicate(predicate_sql(predicate, whole=True), golden.schema, case.context) == predicate
                ), case


@pytest.mark.parametrize(
    ("text", "predicate"),
    [
        ("id = 5", on("id", "=", 5)),
        ("ID == 5L", on("id", "=", 5)),
        ("5 < id", on("id", ">", 5)),
        ("id != 5", on("id", "<>", 5)),
        ("id <=> NULL", on("id", "<=>", None)),
        ("id = -9223372036854775808", on("id", "=", -(2**63))),
        ("n = '5'", on("n", "=", 5)),
        ("id = -9223372036854775808L", on("id", "=", -(2**63))),
        ("tiny > -128Y", on("tiny", ">", -128)),
        ("tiny >= 5Y", on("tiny", ">=", 5)),
        ("price = 1.5", on("price", "=", Decimal("1.50"))),
        ("price < 2BD", on("price", "<", Decimal("2.00"))),
        ("d = 1e3", on("d", "=", 1000.0)),
        ("d = .5", on("d", "=", 0.5)),
        ("d > -0.0D", on("d", ">", 0.0)),
        ("f = 0.5F", on("f", "=", 0.5)),
        ("name = 'it''s'", on("name", "=", "it's")),
        ("name = 'a\\'b\\n\\\\'", on("name", "=", "a'b\n\\")),
        ("name = r'a\\n'", on("name", "=", "a\\n")),
        ('name = "x"', on("name", "=", "x")),
        ("name = 'x' /* and */ 'y'", on("name", "=", "xy")),
        ("name = '\\ud83d\\ude00'", on("name", "=", "\U0001f600")),
        ("name = '\\u0041\\101\\%'", on("name", "=", "AA\\%")),
        ("day = DATE'2024-01-02'", on("day", "=", date(2024, 1, 2))),
        ("day = '2024-1-2'", on("day", "=", date(2024, 1, 2))),
        ("at < TIMESTAMP '2024-01-02 03:04:05.000006'", on("at", "<", datetime(2024, 1, 2, 3, 4, 5, 6, UTC))),
        ("at = '2024-01-02T03:00:00+02:00'", on("at", "=", datetime(2024, 1, 2, 1, tzinfo=UTC))),
        ("clock = TIMESTAMP_NTZ'2024-01-02'", on("clock", "=", datetime(2024, 1, 2))),
        ("raw = X'1f'", on("raw", "=", b"\x1f")),
        ("ok", on("ok", "=", True)),
        ("NOT ok", Not(on("ok", "=", True))),
        ("! ok", Not(on("ok", "=", True))),
        ("ok IS NOT TRUE", Not(on("ok", "<=>", True))),
        ("`odd ``name.x` = 1", on("odd `name.x", "=", 1)),
        ("order = 1 AND end_ = 2", And((on("order", "=", 1), on("end_", "=", 2)))),
        ("day > '2024' -- since then", on("day", ">", date(2024, 1, 1))),
        ("id BETWEEN 1 AND 2 AND ok", And((on("id", ">=", 1), on("id", "<=", 2), on("ok", "=", True)))),
        ("id IN (1, 2L, NULL)", In(ID, (Literal(1, pa.int64()), Literal(2, pa.int64()), Literal(None, pa.int64())))),
        ("name NOT LIKE 'a!%' ESCAPE '!'", Not(Like(NAME, Literal("a!%", pa.string()), "!"))),
        ("NOT (id = 1 OR id = 2)", Not(Or((on("id", "=", 1), on("id", "=", 2))))),
        ("id IS NULL OR id IS NOT NULL", Or((IsNull(ID), Not(IsNull(ID))))),
        ("id IS DISTINCT FROM 1", Not(on("id", "<=>", 1))),
        ("startswith(name, 'a')", StartsWith(NAME, Literal("a", pa.string()))),
        ("startswith(raw, X'00')", StartsWith(Column(("raw",), pa.binary()), Literal(b"\x00", pa.binary()))),
        ("LCASE(name) = 'a'", Compare("=", Call("lower", (NAME,), pa.string()), Literal("a", pa.string()))),
        ("isnan(d)", on("d", "<=>", math.nan)),
        ("ADDRESS.City = 'x'", Compare("=", Column(("address", "city"), pa.string()), Literal("x", pa.string()))),
        (
            "address.geo.lat > 1",
            Compare(">", Column(("address", "geo", "lat"), pa.float64()), Literal(1.0, pa.float64())),
        ),
        ("Match(body, 'a b')", Call("match", (Column(("Body",), pa.string()), Literal("a b", pa.string())))),
        (
            "get_json_object(name, '$.a') = 'x'",
            Compare("=", JsonPath(Column(("name",), pa.string()), "$.a"), Literal("x", pa.string())),
        ),
        ("TRY_CAST(name AS INT) = 5", Compare("=", Cast(NAME, pa.int32(), "try"), Literal(5, pa.int32()))),
        ("name = 5", Compare("=", Cast(NAME, pa.int64(), "ansi"), Literal(5, pa.int64()))),
    ],
)
def test_what_is_typed_is_understood(text, predicate):
    assert parse_predicate(text, SCHEMA, functions=[MATCH]) == predicate


@pytest.mark.parametrize(
    "text",
    [
        "soundex(name) = 'A'",
        "name RLIKE '(?<=a)b'",
        "name RLIKE name",
        "transform(tags, x -> x)[0] = 'a'",
        "id IN (SELECT 1)",
        "CAST(name AS VARCHAR(2)) = 'ab'",
        "name = 'a' COLLATE UTF8_LCASE",
        "at - TIMESTAMP'2024-01-01 00:00:00' > INTERVAL 1 DAY",
        "id = n = ok",
        "name LIKE 'a%' = ok",
        "id IS NULL = ok",
        "(id IS NULL) = ok",
        "n & 1 | 2 = 3",
        "day = DATE'today'",
        "exists(tags, x -> x = 'a')",
        "id = (SELECT 1)",
        "id BETWEEN SYMMETRIC 2 AND 1",
        "id IN ()",
        "map(id)",
    ],
)
def test_what_is_well_formed_but_not_understood_is_opaque(text):
    predicate = parse_predicate(text, SCHEMA)

    assert isinstance(predicate, Opaque)
    assert predicate.reason == Reason.LEAF_UNSUPPORTED


@pytest.mark.parametrize("text", ["CAST(name AS STRING COLLATE UNICODE) = 'a'", "or (id) = 2"])
def test_what_only_newer_editions_of_the_sql_parser_can_read_is_opaque_or_refused(text):
    with suppress(WhereError):
        assert isinstance(parse_predicate(text, SCHEMA), Opaque)


def test_the_rest_of_a_predicate_is_understood_around_what_is_not():
    predicate = parse_predicate("id = 5 AND NOT (soundex(name) = 'A''B' OR n < 3)", SCHEMA)

    assert predicate == And((on("id", "=", 5), Not(Or((Opaque("soundex(name) = 'A''B'"), on("n", "<", 3))))))


@pytest.mark.parametrize(
    ("text", "told", "marked"),
    [
        ("idd = 5", "did you mean ['id']?", "idd"),
        ("address.town = 'x'", "struct 'address' has no 'town'", "town"),
        ("id = 5 AND\n  nmae = 'x'", "did you mean ['name'", "nmae"),
        ("id = 'five'", "'five' is not a value of type bigint", "id = 'five'"),
        ("day > '2024-13-01'", "'2024-13-01' is not a value of type date", "day > '2024-13-01'"),
        ("day = DATE'soon'", "'soon' is not a value of type date", "day = DATE'soon'"),
        ("ok = 1", "Spark does not compare boolean with int", "ok"),
        ("id", "a predicate is boolean, and this is bigint", "id"),
        ("id = 5 AND", "cannot be read near 'AND'", "AND"),
        ("id = = 5", "cannot be read near '='", "="),
        ("id = 5 5", "", None),
        ("id = (5", "cannot be read", None),
        ("name = 'abc", "the text after ' never ends", "'"),
        ("id = 5; DROP TABLE t", "no ';'", ";"),
        ("SELECT * FROM t", "a predicate is one expression", None),
        ("", "an empty predicate: write a condition, such as id = 1, or TRUE for every row", None),
        ("name LIKE 'a\\\\x'", "the escape character", None),
        ("name LIKE 'a' ESCAPE 'ab'", "ESCAPE takes one character", None),
        ("id = ?", "parameters are not supported", "?"),
        ("id = :five", "parameters are not supported", None),
        ("match(name)", "match() takes 2 arguments, not 1", "name"),
        ("divides(id)", "divides() takes 2 arguments, not 1", "id"),
        ("divides(id, id)", "divides(): argument 2 must be a constant", "id, id"),
        ("divides(id, NULL)", "divides(): argument 2 must be a constant, and not NULL", "id"),
        ("divides(id, 'seven')", "divides(): argument 2 must be bigint: 'seven'", "id, 'seven'"),
        ("divides(id, 0)", "divides(): nothing is divided by 0", "id"),
        ("alike(name, 'x', 1, 2)", "alike() takes 2 to 3 arguments, not 4", "name, 'x'"),
        ("nosuch + 1 = 2", "no column 'nosuch'", "nosuch"),
        ("name = bob", "Is there a quote missing: 'bob'?", "bob"),
        ("name <> (bob)", "Is there a quote missing: 'bob'?", "bob"),
        ("name IN ('ann', bob)", "Is there a quote missing: 'bob'?", "bob"),
        ("name LIKE bob", "Is there a quote missing: 'bob'?", "bob"),
        ("startswith(name, bob)", "Is there a quote missing: 'bob'?", "bob"),
        ("name BETWEEN ann AND 'bob'", "Is there a quote missing: 'ann'?", "ann"),
        ("f > 1e400", "1e400 is too large for double", "1e400"),
        ("n IN (1, abs(1e400))", "1e400 is too large for double", "1e400"),
        ("f > -1e400D", "1e400 is too large for double", "1e400D"),
        ("f > 3.5e38F", "3.5e38 is too large for float", "3.5e38F"),
        ("f > 1e9999999999999999999", "exponent beyond all others", "1e9999999999999999999"),
        ("id = 9223372036854775808L", "too large for its suffix", "id = 9223372036854775808L"),
        ("name = '\\ud83d'", "half a character", "'\\ud83d'"),
        ("name = '\\U00110000'", "is no character", "'\\U00110000'"),
        ("n = 5.5L", "the suffix 'l' is for whole numbers", "5.5L"),
        ("d = 1" + "0" * 38 + ".5", "a decimal has at most 38", "1" + "0" * 38 + ".5"),
        ("n = " + "9" * 5000, "has 5000 digits; a decimal has at most 38", "9" * 5000),
    ],
)
def test_what_means_nothing_is_refused_with_its_place(text, told, marked):
    with pytest.raises(WhereError) as refused:
        parse_predicate(text, SCHEMA, functions=[MATCH, *fuse_index_functions()])

    message, line, carets = str(refused.value).rsplit("\n", 2)
    assert told in message
    assert set(carets) <= {" ", "^"}
    if marked is not None:
        assert line[carets.index("^") : carets.rindex("^") + 1] == marked


def test_case_matters_only_where_the_session_says_so():
    assert parse_predicate("NAME = 'a'", SCHEMA) == on("name", "=", "a")
    with pytest.raises(WhereError, match="no column 'NAME'"):
        parse_predicate("NAME = 'a'", SCHEMA, Context(case_sensitive=True))


def test_a_wall_clock_is_read_in_the_zone_of_the_session():
    predicate = parse_predicate("at = TIMESTAMP'2024-01-02 00:00:00'", SCHEMA, Context("America/New_York"))

    assert predicate == on("at", "=", datetime(2024, 1, 2, 5, tzinfo=UTC))


def test_outside_of_ansi_what_is_no_number_is_null():
    assert parse_predicate("n = 'five'", SCHEMA, Context(ansi=False)) == on("n", "=", None)


def test_an_unknown_name_where_a_column_stands_is_not_told_to_be_quoted():
    for text in ("bob = name", "bob IS NULL", "startswith(bob, 'x')", "bob IN ('x')", "lower(bob) = 'x'"):
        with pytest.raises(WhereError, match=r"(?s)^(?!.*quote).*no column 'bob'"):
            parse_predicate(text, SCHEMA)


@pytest.mark.parametrize(
    "text",
    ["day = 'epoch'", "day < ' Today UTC'", "at >= 'now'",
     "clock <=> 'tomorrow'", "day = DATE'epoch'",
     "CAST('yesterday' AS DATE) = day", "TRY_CAST('now' AS TIMESTAMP) IS NULL"],
)  # fmt: skip
@pytest.mark.parametrize("ansi", [True, False])
def test_words_for_a_date_are_left_to_spark(text, ansi):
    assert isinstance(parse_predicate(text, SCHEMA, Context(ansi=ansi)), Opaque)


def test_words_for_a_date_are_texts_in_a_column():
    assert parse_predicate("name = 'epoch'", SCHEMA) == on("name", "=", "epoch")
    assert isinstance(parse_predicate("day IN ('1970-01-01', 'epoch')", SCHEMA), Opaque)
    rows = pa.table({"name": ["epoch", "1970-01-01"]})
    assert evaluate(parse_predicate("TRY_CAST(name AS DATE) IS NULL", SCHEMA), rows).to_pylist() == [True, False]


def test_a_float_literal_is_rounded_once():
    assert parse_predicate("f = 1.00000005960464477539062501F", SCHEMA) == on("f", "=", 1.0000001192092896)


def test_a_chain_of_many_alternatives_is_read():
    predicate = parse_predicate(" OR ".join(f"id > {i}" for i in range(300)), SCHEMA)

    assert len(predicate.terms) == 300


def test_terms_are_read_for_index_definitions():
    assert parse_term("Address.CITY", SCHEMA) == Column(("address", "city"), pa.string())
    assert parse_term("get_json_object(name, '$.a')", SCHEMA) == JsonPath(NAME, "$.a")
    assert parse_term("CAST(n AS BIGINT)", SCHEMA) == Cast(N, pa.int64(), "ansi")
    with pytest.raises(WhereError, match="no column"):
        parse_term("nosuch", SCHEMA)
    one_more = Call("+", (N, Literal(1, pa.int32())), pa.int32())
    assert parse_term("n + 1", SCHEMA) == one_more
    with pytest.raises(WhereError, match="not understood: now\\(\\) where values are kept"):
        parse_term("datediff(now(), day)", SCHEMA)


def test_a_schema_is_read_from_ddl():
    schema = parse_schema(
        "a BIGINT NOT NULL COMMENT 'it''s', `b c` struct<x: int, y: array<decimal(10, 2)>>, m "
        "MAP<STRING, DATE>, t timestamp_ntz"
    )

    assert schema.field("a") == pa.field("a", pa.int64(), nullable=False)
    assert schema.field("a").metadata == {b"comment": b"it's"}
    assert schema.field("b c").type == pa.struct(
        [("x", pa.int32()), ("y", pa.list_(pa.field("element", pa.decimal128(10, 2))))]
    )
    assert schema.field("m").type == pa.map_(pa.string(), pa.date32())
    assert schema.field("t").type == pa.timestamp("us")


@pytest.mark.parametrize(
    ("ddl", "told"),
    [
        ("a", "expected a type"),
        ("a INTT", "no column can have the type 'INTT'"),
        ("a INT b INT", "expected a comma or the end"),
        ("a STRUCT<x INT", "expected '>'"),
        ("", "expected the name of a column"),
        ("a INT,", "expected the name of a column"),
        ("a DECIMAL(50,2)", "no column can have"),
        ("a INT NOT", "expected 'NULL'"),
        ("a VOID", "no column can"),
        ("a INT COMMENT x", "expected a text in quotes"),
    ],
)
def test_ddl_that_cannot_be_read_is_refused_with_its_place(ddl, told):
    with pytest.raises(WhereError, match="\\^") as refused:
        parse_schema(ddl)

    assert told in str(refused.value)
