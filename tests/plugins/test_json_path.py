"""JSON paths: votes on what Spark finds in documents, whatever is in them and however odd the path."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import fuse_index as fuse
from fuse_index.expressions.conjunction import Conjunction
from fuse_index.indexes.ballot import FALSE, NULL, TRUE
from fuse_index.plugin import NONE, Ballot, Input, Probe, json_documents, json_paths
from fuse_index.predicate import And, Call, Cast, Column, Compare, In, IsNull, JsonPath, Like, Literal, StartsWith
from fuse_index.testing import IndexTests
from fuse_index.testing.oracle_check import OracleCheck
from fuse_index.testing.worlds.memory_batch import KindUnderTest, MemoryBatch
from fuse_plugins.json_path import JsonPathOptions, JsonPaths
from fuse_plugins.json_path.contains import JSON_CONTAINS, json_contains
from fuse_plugins.json_path.paths import MISSING_VALUE, parse_document, parse_pattern
from fuse_plugins.json_path.standard import read_standard_path
from tests.effort import effort
from tests.index.tables import damaged, reopened
from tests.plugins.some_types import of_other_options

DOCUMENT = Column(("document",), pa.string())
DOUBLE, LONG, INT, FLOAT, DECIMAL = pa.float64(), pa.int64(), pa.int32(), pa.float32(), pa.decimal128(10, 2)
TYPES = {
    pa.string(): ("", "1", "1.0", "x", "true", "[1]", '{"b":1}', "2024-03-10", "null"),
    DOUBLE: (0.0, 1.0, 1.5, 1e10, float("nan"), 9007199254740993.0),
    LONG: (0, 1, 2, 9007199254740993),
    INT: (0, 1, 2),
    FLOAT: (1.0, 1.5),
    DECIMAL: (Decimal("1.00"), Decimal("1.50")),
    pa.bool_(): (True, False),
    pa.date32(): (date(2024, 3, 9), date(2024, 3, 10)),
    pa.timestamp("us"): (datetime(2024, 3, 10), datetime(2024, 3, 12)),
    pa.timestamp("us", "UTC"): (datetime(2024, 3, 10, tzinfo=UTC),),
}
VALUES = [
    "1",
    "1.0",
    '"1"',
    '" 1 "',
    '"+1"',
    '"1d"',
    "2",
    "1.5",
    '"1.5"',
    "1e10",
    "9007199254740993",
    "123456789012345678901",
    "true",
    '"yes"',
    "null",
    '"null"',
    '"x"',
    '""',
    '"2024-03-10"',
    '"2024-3-10"',
    '"2024-03-10T12:00:00Z"',
    '"12:30"',
    "[1]",
    '{"b":1}',
    '["x"]',
    "[]",
    '"nan"',
    '"."',
    '"\\u0031"',
    '"x',
    "01",
    "2024",
]


def leaves_at(path, mode="try"):
    """Everything that can be asked of a path as text, or through a cast."""
    for kind, values in TYPES.items():
        term = JsonPath(DOCUMENT, path) if kind == pa.string() else Cast(JsonPath(DOCUMENT, path), kind, mode)
        literals = [Literal(value, kind) for value in values]
        yield from (Compare(operator, term, literal) for literal in literals for operator in ("=", "<", ">="))
        yield from (Compare(operator, term, literals[0]) for operator in ("<=>", "<>"))
        yield from (In(term, tuple(literals)), In(term, (literals[0], Literal(None, kind))))
        yield from (
            box
            for one in literals[1:3]
            if (box := Conjunction.of(And((Compare(">=", term, literals[0]), Compare("<", term, one)))))
        )
    path = JsonPath(DOCUMENT, path)
    yield from (
        IsNull(path),
        StartsWith(path, Literal("2024", pa.string())),
        StartsWith(path, Literal("[", pa.string())),
    )
    yield from (Like(path, Literal(pattern, pa.string())) for pattern in ("x%", "1", "{%", "2024-%-10", "%x"))


class PathTests(IndexTests):
    index = JsonPaths
    inputs = (Input(DOCUMENT, pa.string()),)
    functions = {"json_contains": JSON_CONTAINS}  # noqa: RUF012
    payload_bytes = 80.0
    paths = ("$.a",)

    def literals(self, term):
        return ()

    def near(self, shelf, number, rows=None):
        return [None, None]

    def drawn(self, column):
        return st.sampled_from([*self.rows(column), *(f'{{"b":{value}}}' for value in VALUES)])


class TestTextAndCasts(PathTests):
    options = {"paths": ("$.a",)}  # noqa: RUF012

    def rows(self, column):
        return ('{"a":1}', '{"a":"x"}', '{"a":1.5}', '{"a":"2024-03-10"}', '{"a":null}', '{"a":1e10}', "{}", "no json")

    def drawn(self, column):
        return st.sampled_from(
            [f'{{"a":{value}}}' for value in VALUES]
            + ['{"a":1,"a":"x"}', "{'a':'x'}", '{"\\u0061":2}', '{"a":"x"} and more']
        )

    def leaves(self, given, literals):
        yield from leaves_at("$.a")


@of_other_options
class TestLegacyCasts(TestTextAndCasts):
    def rows(self, column):
        return ('{"a":"2.7"}', '{"a":300}', '{"a":"."}', "{}")

    def leaves(self, given, literals):
        yield from leaves_at("$['a']", "legacy")


@of_other_options
class TestElements(PathTests):
    options = {"paths": ("$.a[*]", "$.a[0]", "$..b", "$.a[?(@ > 1)]", "$")}  # noqa: RUF012

    def rows(self, column):
        return (
            '{"a":["x","y"]}',
            '{"a":[1,2.5]}',
            '{"a":[]}',
            '{"a":"x"}',
            '{"a":{"b":"x"}}',
            '{"a":[null,{"b":["x"]}]}',
            "[1",
            '{"a":[123456789012345678901]}',
            "null",
        )

    def leaves(self, given, literals):
        for path, value in product(self.options["paths"], ("x", "1", "2.5", "123456789012345678901", "null", "zzz")):
            yield Call("json_contains", (DOCUMENT, Literal(path, pa.string()), Literal(value, pa.string())))
        for path in ("$.a[0]", "$", "$.a[1]", "$.a[*]"):
            yield from (
                Compare("=", JsonPath(DOCUMENT, path), Literal(value, pa.string()))
                for value in ("x", "1", "null", '{"b":["x"]}')
            )
            yield IsNull(JsonPath(DOCUMENT, path))


class TestDiscovered(PathTests):
    options = {"paths": "auto"}  # noqa: RUF012

    def rows(self, column):
        return (
            '{"a":1,"user":{"name":"x"}}',
            '{"a":"x","b":[1]}',
            '{"user":{"name":"y","a":{"b":{"c":1}}}}',
            "no json",
        )

    def leaves(self, given, literals):
        for path in (
            "$.a",
            "$.user.name",
            "$.user",
            "$.b",
            "$.user.a.b.c",
            "$.none",
            "$.user.none.b",
            "$.user[0]",
            "$.b[0]",
        ):
            yield Call("json_contains", (DOCUMENT, Literal(path, pa.string()), Literal("1", pa.string())))
            yield from (
                Compare(operator, JsonPath(DOCUMENT, path), Literal(value, pa.string()))
                for value in ("1", "x", "zz")
                for operator in ("=", "<")
            )
            yield IsNull(JsonPath(DOCUMENT, path))


# --- any path, any document
# -------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "a b", "é", "a.b", "", "*", "$", "a'b", "😀", "0", "A", "a-b", '"', "\\", "a/b"])
SCALARS = st.sampled_from([None, True, 0, -1, 1.5, 2e23, 10**25, "x", "1", "", "é", "😀", '"', "2024-03-10"])
TREES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.lists(st.tuples(NAMES, inner), max_size=3).map(json_documents.Members)
    ),
    max_leaves=6,
)


@st.composite
def documents(draw):
    """Mostly JSON; spelled with escapes, single quotes or blanks, cut short, or followed by something."""
    text = write(draw(TREES))
    change = draw(st.sampled_from(["", "", "", "", "escape", "quote", "cut", "more", "control"]))
    if change == "escape":
        return text.replace("a", "\\u0061")
    if change == "quote":
        return text.replace('"', "'")
    return {"cut": text[:-1], "more": text + " x", "control": text.replace("x", "\x01")}.get(change, text)


def write(tree):
    match tree:
        case json_documents.Members():
            return (
                "{" + ", ".join(f"{json.dumps(name, ensure_ascii=False)}: {write(value)}" for name, value in tree) + "}"
            )
        case list():
            return "[" + ",".join(map(write, tree)) + "]"
        case _:
            return json.dumps(tree, ensure_ascii=False)


STEPS = st.one_of(
    NAMES.map(lambda name: f".{name}"),
    NAMES.map(lambda name: f"['{name}']"),
    NAMES.map(lambda name: f'["{name}"]'),
    st.integers(-1, 2).map(lambda n: f"[{n}]"),
    st.sampled_from(
        [
            "[*]",
            ".*",
            "['*']",
            "..a",
            "..*",
            "[0:1]",
            "[0,1]",
            "['a','b']",
            ".a,b",
            "[?(@.a)]",
            "[?(@.a == 'x')]",
            "[?(@ > 0)]",
            ".`parent`",
            ".`len`",
            " ",
            ".",
            "[",
            "$",
            "[ 0]",
            ". a",
        ]
    ),
)
PATHS = st.lists(STEPS, max_size=3).map(lambda steps: "$" + "".join(steps))
WANTED = st.sampled_from(
    ["x", "1", "", "true", "1.5", "10000000000000000000000000", "é", "[]", "null", "zzz", "2.0E23", "0"]
)


@settings(max_examples=effort(15), deadline=None)
@given(st.lists(documents(), min_size=1, max_size=4), PATHS, PATHS, WANTED)
@example(['{"a":{"b":1},"a":{"b":2}}'], "$.a.b", "$.a.b", "1")
@example(['{"a/b":"x"}', '{"a\\/b":"y","a/b":"x"}'], "$['a/b']", "$['a/b']", "y")
@example(['{"a":[{"b":"x"}]}'], "$.a[0].b", "$..b", "x")
def test_no_path_prunes_a_block_that_holds_a_match(rows, indexed, asked, wanted):
    try:
        options = JsonPathOptions(paths=(indexed,))
    except ValueError:
        options = JsonPathOptions()
    subject = KindUnderTest(JsonPaths(), (Input(DOCUMENT, pa.string()),), options, {"json_contains": JSON_CONTAINS})
    shelf = MemoryBatch.index_blocks(
        subject, [[pa.table({"document": [row]}) for row in rows], [pa.table({"document": rows})]]
    )
    value = Literal(wanted, pa.string())
    for path in {indexed, asked}:
        paths = [
            Compare("=", JsonPath(DOCUMENT, path), value),
            Compare(">", JsonPath(DOCUMENT, path), value),
            IsNull(JsonPath(DOCUMENT, path)),
        ]
        calls = [Call("json_contains", (DOCUMENT, Literal(path, pa.string()), value))] if is_path(path) else []
        for leaf in paths + calls:
            probe = OracleCheck(subject, leaf).compile()
            if isinstance(probe, Probe) and is_sure(rows, path):
                OracleCheck(subject, leaf).check_leaf(shelf)


def is_path(text):
    try:
        parse_pattern(text)
    except ValueError:
        return False
    return True


def is_sure(rows, path):
    """Whether the oracle, by which the vote is judged, knows what Spark finds."""
    return not json_paths.get_json_objects(pa.array(rows), path).doubts.any()


@settings(max_examples=effort(13), deadline=None)
@given(TREES, PATHS.filter(is_path))
def test_paths_walked_here_find_what_jsonpath_ng_finds(tree, path):
    from jsonpath_ng.ext.parser import parse

    pattern, document = parse_pattern(path), json_documents.plain(tree)
    if pattern.steps is not None:
        spelling = read_standard_path(path).spelling
        assert list(pattern.matches(document)) == [match.value for match in parse(spelling).find(document)]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("$.a.b", "$.a.b"),
        ("$['a']['b c']", "$.a['b c']"),
        ("$.a[*]", "$.a[*]"),
        ("$.a[0]", "$.a[0]"),
        ("$", "$"),
        ("$['a','b']", "$['a','b']"),
        ('$ [ "\\u0061" ].b', "$.a.b"),
        ("$..['\\u0061']", "$..['a']"),
    ],
)
def test_a_path_has_one_spelling(path, text):
    assert parse_pattern(path).text == text


def test_documents_on_which_readers_differ_are_read_exactly():
    assert parse_document("{'a':'x'} more") == {"a": "x"}
    assert parse_document('{"a":1,"a":2}') == {"a": 2}
    assert parse_document("{") is MISSING_VALUE
    assert parse_document('{"a":123456789012345678901}', exact=True) == {"a": 123456789012345678901}


# --- json_contains
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "path", "value", "answer"),
    [
        ('{"tags":["x","y"]}', "$.tags[*]", "y", True),
        ('{"tags":["x","y"]}', "$.tags[*]", "z", False),
        ('{"tags":"x"}', "$.tags[*]", "x", False),
        ('{"n":[1,2.0]}', "$.n[*]", "1", True),
        ('{"n":[1,2.0]}', "$.n[*]", "2.0", True),
        ('{"n":[1,2.0]}', "$.n[*]", "2", False),
        ('{"n":[true,null]}', "$.n[*]", "true", True),
        ('{"n":[null]}', "$.n[*]", "null", False),
        ('{"a":{"b":1}}', "$.a", '{"b":1}', False),
        ('{"a":{"b":"x"}}', "$..b", "x", True),
        ('{"a":[{"b":1},{"b":2}]}', "$.a[?(@.b > 1)].b", "2", True),
        ("no json", "$.a", "x", False),
        ('{"a":12345678901234567890123}', "$.a", "12345678901234567890123", True),
        (None, "$.a", "x", None),
        ('{"a":1}', "$.a", None, None),
    ],
)
def test_some_value_at_the_path_has_this_text(document, path, value, answer):
    found = json_contains(pa.array([document]), pa.scalar(path), pa.scalar(value, pa.string()))

    assert found.to_pylist() == [answer]


# --- what is kept, and what is asked
# ------------------------------------------------------------------------------------------


def subject_of(*paths, **options):
    return KindUnderTest(
        JsonPaths(), (Input(DOCUMENT, pa.string()),), JsonPathOptions(paths=paths or "auto", **options)
    )


def test_a_number_in_a_block_of_numbers_is_looked_up_in_the_filter():
    subject = subject_of("$.id")
    blocks = [[pa.table({"document": [f'{{"id":{i}}}' for i in range(start, 2000, 2)]})] for start in (0, 1)]
    shelf = MemoryBatch.index_blocks(subject, blocks)

    ballot = OracleCheck(
        subject, Compare("=", Cast(JsonPath(DOCUMENT, "$.id"), LONG, "ansi"), Literal(501, LONG))
    ).check_leaf(shelf)

    assert ((ballot.bits & TRUE) > 0).tolist() == [False, True]


def test_ranges_need_no_payload():
    subject = subject_of("$.id", "$.at")
    rows = [f'{{"id":{i},"at":"2024-03-{i:02}T10:00:00Z"}}' for i in range(1, 30)]
    shelf = MemoryBatch.index_blocks(
        subject, [[pa.table({"document": rows[:15]})], [pa.table({"document": rows[15:]})]]
    ).without_files()
    at = Cast(JsonPath(DOCUMENT, "$.at"), pa.timestamp("us", "UTC"))

    for leaf, kept in [
        (Compare(">", Cast(JsonPath(DOCUMENT, "$.id"), INT), Literal(20, INT)), [False, True]),
        (Compare("<", JsonPath(DOCUMENT, "$.at"), Literal("2024-03-02", pa.string())), [True, False]),
        (Compare("<", at, Literal(datetime(2024, 3, 2, tzinfo=UTC), at.type)), [True, False]),
        (IsNull(JsonPath(DOCUMENT, "$.id")), [False, False]),
    ]:
        ballot = OracleCheck(subject, leaf).check_leaf(shelf)
        assert ((ballot.bits & TRUE) > 0).tolist() == kept, leaf


@pytest.mark.parametrize("tail", ["", "a", "\U0010ffff", "\ud7ff"])
def test_bounds_of_long_texts_are_cut_and_hold_all_the_same(tail):
    subject, long = subject_of("$.a"), "x" * (32 - len(tail)) + tail + "yz"
    shelf = MemoryBatch.index_blocks(subject, [[pa.table({"document": [json.dumps({"a": long})]})]])

    for text in (long, long[:-1], long + "a", long[:32], "x"):
        for operator in ("=", "<", "<=", ">", ">=", "<>"):
            assert (
                OracleCheck(
                    subject, Compare(operator, JsonPath(DOCUMENT, "$.a"), Literal(text, pa.string()))
                ).check_leaf(shelf)
                is not None
            )


def test_rows_of_which_only_spark_can_say_accuse_no_vote_and_others_do():
    rows = ['{"a":"12:30"}', '{"a":"2024-03-10"}', None, '{"a":"2024-03-11"}']
    subject, at = subject_of("$.a"), pa.timestamp("us")
    shelf = MemoryBatch.index_blocks(subject, [[pa.table({"document": rows})]])
    trial = OracleCheck(
        subject, Compare("=", Cast(JsonPath(DOCUMENT, "$.a"), at, "legacy"), Literal(datetime(2024, 3, 10), at))
    )

    assert trial.expected_outcomes(shelf).tolist() == [0, TRUE, NULL, FALSE]
    trial.check_leaf(shelf)
    with pytest.raises(AssertionError, match="is TRUE: number 1 of block 0"):
        trial.check_ballot(shelf, Ballot(np.array([NONE], np.uint8)), trial.compile())


def test_a_path_that_is_not_indexed_is_named_with_those_that_are():
    refusal = OracleCheck(
        subject_of("$.id", "$.at"), Compare("=", JsonPath(DOCUMENT, "$.other"), Literal("x", pa.string()))
    ).compile()

    assert refusal.detail == "path $.other is not indexed; these are: $.id, $.at"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"paths": ()}, "name at least one"),
        ({"paths": ("$.a[",)}, "is no JSON path"),
        ({"presence": 2.0}, "presence=2.0"),
        ({"depth": 0}, "depth=0"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        JsonPathOptions(**options)


def test_five_paths_of_a_block_with_sixteen_zones_take_little_room():
    paths = ["$.id", "$.user.name", "$.user.email", "$.status", "$.at"]
    subject = subject_of(*paths)
    rows = [
        json.dumps(
            {
                "id": i,
                "user": {"name": f"user{i}", "email": f"{i}@example.org"},
                "status": "ok",
                "at": f"2024-03-10T10:{i % 60:02}:00Z",
            }
        )
        for i in range(320)
    ]
    shelf = MemoryBatch.index_blocks(subject, [[pa.table({"document": rows[i::16]}) for i in range(16)]])

    assert shelf.summaries.nbytes < 1400
    shown = subject.kind.inspect(shelf, subject.options)
    assert shown["paths"]["$.id"] == {
        "types": ["integer"],
        "blocks": 1,
        "presence": 1.0,
        "text": ["0", "99"],
        "numbers": ["0.0", "319.0"],
    }
    assert shown["paths"]["$.at"]["days"] == ["20240310", "20240310"]
    assert np.isfinite(shown["filter_bytes"])


# --- in a table
# -----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path):
    table = fuse.create_table(str(tmp_path / "t"), pa.schema([("body", pa.string())]))
    for block in range(4):
        table.append(pa.table({"body": [f'{{"user":"u{i}","n":{i}}}' for i in range(block, 400, 4)]}))
    table = fuse.open_table(str(tmp_path / "t"))
    table.create_index("by_path", "json_path", ["body"], paths=["$.user"])
    return fuse.open_table(str(tmp_path / "t"))


WHERE = "get_json_object(body, '$.user') = 'u202'"


def test_an_index_on_old_blocks_is_sound_and_new_blocks_are_indexed_as_they_are_written(table):
    table.append(pa.table({"body": ['{"user":"new"}', "no json", None]}))
    table = fuse.open_table(table.stored.store.url)

    assert table.maintenance.verify_index("by_path").sound
    assert table.explain(WHERE).to_dict()["blocks"] == {"total": 5, "kept": 1}
    assert table.scan(WHERE).to_arrow().to_pylist() == [{"body": '{"user":"u202","n":202}'}]


@pytest.mark.parametrize("how", ["cut", "flipped", "gone"])
def test_a_damaged_payload_costs_time_and_is_named(table, how):
    for file in (Path(table.stored.store.url.removeprefix("file://")) / "_i").rglob("*"):
        if file.is_file():
            damaged(file, how)
    table = reopened(table)

    assert table.scan(WHERE).count() == 1
    [vote] = [vote for vote in table.explain(WHERE).to_dict()["predicates"] if vote["index"] == "by_path"]
    assert vote["reason"] in ("CORRUPT", "PAYLOAD_MISSING")
    assert not table.maintenance.verify_index("by_path").sound


@pytest.mark.parametrize(
    ("where", "reason", "detail"),
    [
        ("get_json_object(body, '$.n') = '5'", "NO_INDEX", "path $.n is not indexed; these are: $.user"),
        ("get_json_object(body, '$[*]') = '5'", "LEAF_UNSUPPORTED", "ask json_contains()"),
        ("CAST(get_json_object(body, '$.user') AS BINARY) = X'75'", "CAST_ON_COLUMN", "as binary"),
        ("body = 'x'", "LEAF_UNSUPPORTED", "json_path answers get_json_object"),
    ],
)
def test_why_an_index_did_not_help_is_said(table, where, reason, detail):
    [vote] = [vote for vote in table.explain(where).to_dict()["predicates"] if vote["index"] == "by_path"]

    assert vote["reason"] == reason
    assert detail in vote["detail"]


def test_a_deep_document_is_indexed_with_its_neighbours(tmp_path):
    table = fuse.create_table(str(tmp_path / "t"), "body STRING")
    table.create_index("paths", "json_path", ["body"], paths=["$.a"])
    for depth in (250, 300, 999, 1001, 100_000):
        table.append(pa.table({"body": [f'{{"b": {"[" * depth}{"]" * depth}, "a": "deep"}}', '{"a": "x"}']}))

    assert table.inspect.index("paths")["contents"]["documents"] == 10
    assert table.explain("get_json_object(body, '$.a') = 'y'").to_dict()["blocks"]["kept"] == 0
    assert table.scan("get_json_object(body, '$.a') = 'deep'").count() == 3


def test_a_block_in_which_nobody_has_the_path_is_skipped(tmp_path):
    table = fuse.create_table(str(tmp_path / "t"), "body STRING", properties={"block_rows": 3})
    table.create_index("paths", "json_path", ["body"])
    table.append(pa.table({"body": ['{"a": {"b": 1}}', '{"a": 2, "rare": {"x": 3}}', None] * 2}))
    odd = ["{'single': 1}", '{"twice": {"a": 1}, "twice": 2}', "no json", '{"\\u0065sc": 1}', '["list"]', "1"]
    table.append(pa.table({"body": odd}))

    def kept(where):
        return table.explain(where).to_dict()["blocks"]["kept"]

    assert table.explain("true").to_dict()["blocks"]["total"] == 4
    for where in ("get_json_object(body, '$.c') = 'x'", "CAST(get_json_object(body, '$.a.c') AS INT) > 1"):
        assert (kept(where), table.scan(where).count()) == (0, 0)
    assert kept("get_json_object(body, '$.c') IS NOT NULL") == kept("json_contains(body, '$.c[*]', '1')") == 0
    assert table.scan("get_json_object(body, '$.c') IS NULL").count() == 10 + 2
    for path, value, rows in (("rare.x", 3, 2), ("single", 1, 1), ("twice.a", 1, 1), ("esc", 1, 1)):
        assert table.scan(f"get_json_object(body, '$.{path}') = '{value}'").count() == rows
    assert kept("get_json_object(body, '$.single') = 'x'") <= 1


def test_many_names_are_not_listed(tmp_path):
    table = fuse.create_table(str(tmp_path / "t"), "body STRING")
    table.create_index("paths", "json_path", ["body"])
    table.append(pa.table({"body": [f'{{"name{row}": 1, "x": {{"y": {row}}}}}' for row in range(200)]}))

    assert table.scan("get_json_object(body, '$.name199') = '1'").count() == 1
    assert set(table.inspect.index("paths")["contents"]["paths"]) == {"$.x.y"}
