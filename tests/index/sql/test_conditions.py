"""The conditions that people type: what Spark answered, in both of its versions, and what is answered here without it.

``tests/golden/make_conditions.py`` asked Spark. Rows on which Spark raises are NULL in a condition here, and an error
where a value is stored; rows on which its versions differ are not compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any
from uuid import uuid4

import pytest

import fuse_index as fuse
from fuse_index.errors import OpaqueError, WhereError
from fuse_index.expressions.evaluable import check_evaluable
from fuse_index.expressions.evaluate import evaluate, evaluate_term
from fuse_index.expressions.serialize import decode_term, encode_term
from fuse_index.expressions.to_sql import predicate_sql
from fuse_index.expressions.types import spark_type_name
from fuse_index.predicate import Context
from fuse_index.sql.parse import parse_predicate, parse_term
from fuse_storage import Schema
from tests.golden import make_conditions

LETTERS = {"t": True, "f": False, "n": None}
ROWS = make_conditions.rows()
SCHEMA = Schema.create(ROWS.schema)
CONTEXTS = {name: Context(zone, ansi) for name, (zone, ansi) in make_conditions.SESSIONS.items()}
Cases = Mapping[str, Mapping[str, Any]]

SPARK_ALONE: Mapping[str, str] = {
    "conv(n, 10, 2) = '101'": "function 'conv' is not known here",
    "width_bucket(x, 0, 10, 5) = 1": "function 'width_bucket' is not known here",
    "soundex(city) = 'B500'": "function 'soundex' is not known here",
    "format_string('%s-%d', city, n) = 'Bonn-5'": "function 'format_string' is not known here",
    "luhn_check(s)": "function 'luhn_check' is not known here",
    "exists(nums, e -> e > 2)": "function 'exists' is not known here",
    "ts - TIMESTAMP '2024-02-29 00:00:00' > INTERVAL 12 HOURS": "timestamp - timestamp is not known here",
    "CAST(x AS STRING) = '1.5'": "a cast from double to string is not known here",
    "from_json(js, 'a INT').a = 1": "only Spark can evaluate",
}
"""What is refused, and why."""
DOUBTFUL: Mapping[str, str] = {
    "date_trunc('month', ts) = TIMESTAMP '2024-02-01 00:00:00'": "where clocks are changed",
    "power(x, 2) = 2.25": "last digits of pow",
    "hypot(x, 1) > 1": "last digits of hypot",
    "months_between(day, DATE '2024-01-31') = 1": "beyond Python's years",
    "from_unixtime(big) > '2000'": "beyond Python's",
    "date_format(day, 'yyyy-MM') = '2024-02'": "beyond Python's years",
    "minute(day) = 0": "beyond Python's years",
    "day + INTERVAL 36 HOURS > TIMESTAMP '2024-03-01 00:00:00'": "beyond Python's years",
}
"""What is answered but for some rows or in some sessions, and why."""


@pytest.fixture(scope="module")
def cases() -> Cases:
    return json.loads((make_conditions.HERE / "conditions.json").read_text("utf-8"))


def comparable_rows(case: Mapping[str, Any], session: str) -> list[int]:
    older = case.get("older", {}).get(session, case[session])
    pairs = enumerate(zip(case[session], older, strict=True))
    return [row for row, (new, old) in pairs if new == old and new in LETTERS]


@cache
def difference(condition: str, session: str, letters: str, rows: tuple[int, ...]) -> str:
    """What is not as Spark says; "" if nothing."""
    context = CONTEXTS[session]
    try:
        predicate = parse_predicate(condition, SCHEMA, context)
        check_evaluable(predicate, context, {})
        found = evaluate(predicate, ROWS.take(list(rows)), context).to_pylist()
    except (OpaqueError, WhereError) as refusal:
        return str(refusal)
    wanted = [LETTERS[letters[row]] for row in rows]
    return "" if found == wanted else f"Spark says {wanted}, and here it is {found}"


def differences(cases: Cases) -> Iterator[tuple[str, str]]:
    for condition, case in cases.items():
        for session in CONTEXTS:
            if told := difference(condition, session, case[session], tuple(comparable_rows(case, session))):
                yield condition, told


def test_the_conditions_are_those_that_spark_was_asked(cases: Cases) -> None:
    assert list(cases) == make_conditions.conditions()
    assert not [condition for condition, case in cases.items() if "r" in case["ansi"]]


def test_conditions_are_on_every_row_what_they_are_to_spark_or_refused_by_name(cases: Cases) -> None:
    known = {**SPARK_ALONE, **DOUBTFUL}

    assert {condition: told for condition, told in differences(cases) if known.get(condition, "\0") not in told} == {}
    assert known.keys() == {condition for condition, _ in differences(cases)}


def test_nine_tenths_of_the_conditions_need_no_spark(cases: Cases) -> None:
    answered = len(cases) - len(SPARK_ALONE) - len(DOUBTFUL)

    assert answered / len(cases) > 0.95


def test_terms_have_the_types_and_the_values_that_they_have_in_spark(cases: Cases) -> None:
    unlike = {}
    for condition, case in cases.items():
        for session in CONTEXTS if "term" in case and condition not in SPARK_ALONE else ():
            if f"{session} type" in case and (told := unlike_term(case, session)):
                unlike[condition, session] = told

    assert unlike == {}


def unlike_term(case: Mapping[str, Any], session: str) -> Any:
    context = CONTEXTS[session]
    term = parse_term(case["term"], SCHEMA, context)
    if spark_type_name(term.type) != case[f"{session} type"]:
        return spark_type_name(term.type)
    wanted = case[f"{session} values"]
    older = case.get("older", {}).get(f"{session} values", wanted)
    found = [value_on(term, row, context) for row in range(len(wanted))]
    pairs = zip(wanted, older, found, strict=True)
    return [(new, here) for new, old, here in pairs if not agrees(new, here) and not agrees(old, here)]


def test_a_term_of_an_index_is_stored_and_read_again(cases: Cases) -> None:
    for condition, case in cases.items():
        if "term" in case and case["ansi"] != "r" and condition not in SPARK_ALONE:
            term = parse_term(case["term"], SCHEMA, CONTEXTS["ansi"])
            assert decode_term(json.loads(json.dumps(encode_term(term, SCHEMA))), SCHEMA) == term


def value_on(term: Any, row: int, context: Context) -> Any:
    """The value on one row; what is said where there is none."""
    try:
        value = evaluate_term(term, ROWS.slice(row, 1), context, strict=True)[0]
        return make_conditions.written(value.as_py())
    except OpaqueError as refusal:
        return refusal
    except OverflowError:  # a day that Python does not have, here as in Spark's answer
        return {"raises": "OverflowError"}


def agrees(wanted: Any, found: Any) -> bool:
    if isinstance(wanted, dict) and wanted["raises"] not in ("OverflowError", "ValueError"):
        return isinstance(found, OpaqueError)
    doubts = ("only Spark can evaluate", "not sure")
    return bool(wanted == found) or (isinstance(found, OpaqueError) and any(doubt in str(found) for doubt in doubts))


def test_what_is_understood_is_shown_as_sql_that_means_the_same(cases: Cases) -> None:
    context = CONTEXTS["ansi"]
    for condition in cases.keys() - SPARK_ALONE.keys() - DOUBTFUL.keys():
        predicate = parse_predicate(condition, SCHEMA, context)
        shown = predicate_sql(predicate, whole=True)
        rows = ROWS.slice(0, 1)
        assert evaluate(parse_predicate(shown, SCHEMA, context), rows, context) == evaluate(predicate, rows, context)


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ("substrng(city, 1, 2) = 'Bo'", r"function 'substrng' is not known here; did you mean \['substring'"),
        ("uper(city) = 'A'", r"did you mean \['upper'"),
        ("dateadd(day) = day", r"date_add\(\) takes 2 arguments, not 1"),
        ("city RLIKE '(?=B)'", r"'\?=B' in a group may mean something else to Java"),
        ("city RLIKE '\\\\bB'", r"may mean something else to Java"),
        ("city RLIKE s", r"whose pattern is no constant"),
        ("regexp_replace(city, 'n*', 'm') = 'x'", r"which also matches nothing"),
        ("date_format(ts, 'YYYY') = '2024'", r"'YYYY' in a pattern; known are y, yyyy"),
        ("ln(x) + 1 > 0", r"the last digits of ln\(\) are not sure"),
        ("get(tags, 0).w = 1", r"\(get\(tags, 0\)\.w\): ask Spark"),
        ("coalesce(tags, tags)[0].w.x = 1", r"\(coalesce\(tags, tags\)\[0\]\.w\.x\): ask Spark"),
        ("extract(EPOCH FROM ts) > 0", r"extract\(\) of 'EPOCH': its parts are"),
    ],
)
def test_what_is_not_taken_says_why(condition: str, told: str) -> None:
    with pytest.raises(OpaqueError, match=told):
        check_evaluable(parse_predicate(condition, SCHEMA), Context(), {})


def test_explain_names_near_functions_as_a_scan_does():
    table = fuse.create_table(f"memory://near-{uuid4().hex}", "id BIGINT, name STRING")
    table.append([{"id": 1, "name": "a"}])

    assert "function 'lowre' is not known here; did you mean ['lower']?" in str(table.explain("lowre(name) = 'a'"))
