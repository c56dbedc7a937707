"""The kind keeps the contract of every index kind, and queries the language that it promises."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st

import fuse_index as fuse
from fuse_index.indexes.registry import Host
from fuse_index.plugin import Input, Refusal
from fuse_index.predicate import Call, Column, Compare, Contains, Context, EndsWith, Like, Literal, StartsWith
from fuse_index.reasons import Reason
from fuse_index.testing import IndexTests
from fuse_plugins.full_text import FullText, FullTextOptions
from fuse_plugins.full_text.match_function import MATCH_FUNCTION, parse_match
from fuse_plugins.full_text.syntax import QueryError
from tests.plugins.full_text.judge import Judge
from tests.plugins.some_types import of_other_options

BODY = Column(("c",), pa.string())
TEXTS = (
    "",
    "late",
    "Late refund",
    "refund, late",
    "the refund was late; late refund!",
    "ünï İ 東京",
    "x" * 39,
    "x" * 40,
)
QUERIES = (
    "late",
    "late refund",
    "+late -refund",
    '"late refund"',
    "re*",
    "lat~1",
    "NOT late",
    "nowhere",
    "ünï",
    "x" * 39,
    "[a TO m]",
    "-nowhere",
)


def call(query, options=None):
    arguments = [BODY, Literal(query, pa.string()), *([] if options is None else [Literal(options, pa.string())])]
    return Call("match", tuple(arguments))


class TestFullText(IndexTests):
    index = FullText
    inputs = (Input(BODY, pa.string()),)
    functions = {"match": MATCH_FUNCTION}  # noqa: RUF012
    rankings = (call("late refund"), call('"late refund"'), call("+late x*"))

    def rows(self, column):
        return TEXTS

    def drawn(self, column):
        return st.lists(st.sampled_from(TEXTS), max_size=3).map(" ".join)

    def leaves(self, given, literals):
        return [call(query) for query in QUERIES]

    def scores(self, ranking, rows):
        texts = rows.column(0).to_pylist()
        found = Judge(texts, FullTextOptions().analyzer).scores(parse_match(ranking.arguments[1].value)[0])
        return np.array([found.get(row, -np.inf) for row in range(len(texts))])


@of_other_options
class TestFullTextWithoutPositions(TestFullText):
    options = {"positions": False}  # noqa: RUF012
    rankings = (call("late refund"),)


SUBSTRINGS = ("", "l", "la", "late", "Late ", "ate ref", "refund, l", "ΟΔΟΣ", "οδος", "ΔΟ", "İ ", "京", "東京")
SUBSTRINGS += ("x" * 39, "zz", "n\0", "100%")
PATTERNS = ("%ate%", "%ate", "l_te%fund%", "%", "_", "%la%te%", "Late refund", "%100\\%%", "%\\_a%", "%a_b%", "x%x")


class TestSubstringsByNgrams(IndexTests):
    """Parts of texts are asked of an index of n-grams; rows, leaves and their opposites are judged by the oracle."""

    index = FullText
    inputs = (Input(BODY, pa.string()),)
    functions = {"match": MATCH_FUNCTION}  # noqa: RUF012
    options = {"tokenizer": "ngram(2,3)"}  # noqa: RUF012
    rankings = (call("late refund", "tokenizer=ngram(2,3)"),)
    payload_bytes = 1000.0

    def rows(self, column):
        return ("", "l", "Late refund", "refund, late", "ΟΔΟΣ ΟΔΟΣΑ", "İ 東京", "x" * 40, "a\n\0b", "100% a_b")

    def drawn(self, column):
        return st.lists(st.sampled_from([*TEXTS, "ΟΔΟΣ", "100% a_b"]), max_size=2).map("".join)

    def leaves(self, given, literals):
        texts = [Literal(text, pa.string()) for text in SUBSTRINGS]
        for text in texts:
            yield from (Contains(given.term, text), EndsWith(given.term, text), StartsWith(given.term, text))
            yield Compare("=", given.term, text)
        yield from (Like(given.term, Literal(pattern, pa.string())) for pattern in PATTERNS)
        yield Like(given.term, Literal("%10!_0%", pa.string()), "!")

    def scores(self, ranking, rows):
        query, options = parse_match(*(argument.value for argument in ranking.arguments[1:]))
        texts = rows.column(0).to_pylist()
        found = Judge(texts, options.analyzer).scores(query)
        return np.array([found.get(row, -np.inf) for row in range(len(texts))])


@of_other_options
class TestSubstringsByNgramsWithStopWords(TestSubstringsByNgrams):
    options = {"tokenizer": "ngram(1,4)", "stop_words": "late,la,ref"}  # noqa: RUF012
    rankings = (call("late refund", "tokenizer=ngram(1,4); stop_words=late,la,ref"),)


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("body LIKE '%refu%'", 1),
        ("contains(body, 'refu')", 1),
        ("endswith(body, 'nd')", 1),
        ("endswith(body, 'fund')", 1),
        ("body LIKE '%te_re%nd'", 1),
        ("body LIKE '%zzz%'", 0),
        ("NOT contains(body, 'refu')", 2),
        ("contains(body, 'x') AND contains(body, 'fin')", 1),
        ("contains(body, 'r')", 2),
    ],
)
def test_parts_of_texts_skip_blocks_by_ngrams(tmp_path, where, kept):
    table = fuse.create_table(str(tmp_path / "t"), "body STRING", properties={"block_rows": 2})
    table.append(pa.table({"body": ["late refund", "order", "fine x", None]}))
    rows = table.scan(where).to_arrow()
    table.create_index("grams", "full_text", ["body"], tokenizer="ngram(2,4)")

    assert table.explain(where).to_dict()["blocks"] == {"total": 2, "kept": kept}
    assert table.scan(where).to_arrow().equals(rows)


def test_rows_are_named_and_only_their_zones_are_read(tmp_path):
    rows = [f"line {i} is {'rare' if i in (7, 950) else 'common'}" for i in range(1000)]
    table = fuse.create_table(
        str(tmp_path / "t"), "body STRING, n BIGINT", properties={"block_rows": 500, "zone_rows": 100}
    )
    table.append(pa.table({"body": rows, "n": range(1000)}))
    table.create_index("words", "full_text", ["body"])

    found = table.explain("match(body, 'rare')").to_dict()
    assert found["zones"]["kept"] == 2
    assert found["rows"]["kept"] == 2
    assert table.scan("match(body, 'rare')", ["n"]).to_arrow().column("n").to_pylist() == [7, 950]
    assert table.scan("match(body, 'common')").count() == 998
    assert table.explain("match(body, 'nowhere')").to_dict()["blocks"]["kept"] == 0
    assert table.maintenance.verify_index("words").sound


def test_unindexed_blocks_give_the_same_answer(tmp_path):
    table = fuse.create_table(str(tmp_path / "t"), "body STRING")
    table.append(pa.table({"body": ["late refund", None, "fine"]}))
    table.create_index("words", "full_text", ["body"], build=False)
    table.append(pa.table({"body": ["a refund", "late"]}))

    assert table.scan("match(body, 'refund')").to_arrow().column("body").to_pylist() == ["late refund", "a refund"]
    assert table.scan("NOT match(body, 'refund')").count() == 2


def test_several_columns_in_one_index(tmp_path):
    table = fuse.create_table(str(tmp_path / "t"), "title STRING, body STRING", properties={"block_rows": 1})
    table.create_index("words", "full_text", ["title", "body"])
    table.append(pa.table({"title": ["one", "two"], "body": ["two", "three"]}))

    assert table.explain("match(title, 'two')").to_dict()["blocks"]["kept"] == 1
    assert table.scan("match(title, 'two') OR match(body, 'two')").count() == 2
    assert table.scan("match(title, 'two') AND match(body, 'three')").count() == 1


@pytest.mark.parametrize(
    ("query", "options", "reason"),
    [
        (
            "late",
            "tokenizer=en_stem",
            "match() is with tokenizer=en_stem stop_words='', and this index with tokenizer=default",
        ),
        ("late", "stop_words=the", "stop_words='the'"),
    ],
)
def test_an_index_with_another_tokenizer_says_so(query, options, reason):
    refused = FullText().compile(call(query, options), TestFullText.inputs, FullTextOptions(), Context())

    assert isinstance(refused, Refusal)
    assert refused.reason == Reason.LEAF_UNSUPPORTED
    assert reason in refused.detail


def test_phrases_are_not_ranked_without_positions():
    refused = FullText().compile_ranking(
        call('"late refund"'), TestFullText.inputs, FullTextOptions(positions=False), Context()
    )

    assert "this index keeps none" in refused.detail


@pytest.mark.parametrize(
    ("query", "told", "place"),
    [
        ('late "refund', 'this " is never closed', 5),
        ("(late", "a ')' is missing", 5),
        ("late)", "no '(' before", 4),
        ("late AND", "a word is missing here", 8),
        ("OR late", "a word is missing here", 0),
        ("()", "nothing between the parentheses", 1),
        ("late~3", "at most 2 letters", 0),
        ("x wi-fi*", "prefix* takes one word", 2),
        ("[late]", "a range is written", 0),
        ("[a b TO c]", "a range is written", 0),
    ],
)
def test_a_query_that_cannot_be_read_shows_its_place_and_leniently_is_read(query, told, place):
    with pytest.raises(QueryError) as refused:
        parse_match(query)

    message, line, mark = str(refused.value).split("\n")
    assert told in message
    assert (line, mark.index("^")) == (query, place)
    parse_match(query, "lenient=true")


@pytest.mark.parametrize("options", ["", "lenient=true"])
def test_a_query_is_nested_so_deep_and_no_deeper(options):
    parse_match("(" * 50 + "late" + ")" * 50, options)
    with pytest.raises(QueryError, match="more than 50 parentheses stand within each other"):
        parse_match("(" * 51 + "late" + ")" * 51, options)
    with pytest.raises(QueryError, match="more than 50 parentheses"):
        parse_match("(" * 100_000, options)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("operator=xor", "operator is 'and' or 'or'"),
        ("tokeniser=raw", "no option 'tokeniser'"),
        ("tokenizer=french", "choose one of default, raw"),
        ("raw", "write name=value"),
        ("tokenizer=ngram(3,2)", "the least and the greatest length"),
    ],
)
def test_wrong_options_are_named(options, told):
    with pytest.raises(ValueError, match=r"option|tokenizer") as refused:
        parse_match("late", options)

    assert told in str(refused.value)


def test_a_wrong_query_is_refused_before_a_row_is_read(tmp_path):
    table = fuse.create_table(str(tmp_path / "t"), "body STRING")

    with pytest.raises(fuse.WhereError, match="a '\\)' is missing"):
        table.scan("match(body, '(late')")


@pytest.mark.parametrize("damage", ["cut", "flipped", "missing"])
def test_a_damaged_index_gives_the_right_answer_and_a_reason(tmp_path, damage):
    table = fuse.create_table(str(tmp_path / "t"), "body STRING")
    table.create_index("words", "full_text", ["body"])
    table.append(pa.table({"body": ["late refund", "fine"]}))
    [pack] = [path for path in (tmp_path / "t" / "_i").rglob("*") if path.is_file()]
    data = pack.read_bytes()
    pack.chmod(0o644)
    pack.unlink()
    if damage != "missing":
        pack.write_bytes(data[:30] if damage == "cut" else bytes([data[0] ^ 1]) + data[1:])

    assert table.scan("match(body, 'refund')").to_arrow().num_rows == 1
    [vote] = [vote for vote in table.explain("match(body, 'refund')").votes if vote.index == "words"]
    assert vote.reason in (Reason.CORRUPT, Reason.PAYLOAD_MISSING)


def test_without_the_library_an_index_is_refused_and_queries_go_on(tmp_path, monkeypatch):
    monkeypatch.setattr("fuse_plugins.full_text.find_spec", lambda name: None)
    table = fuse.create_table(str(tmp_path / "t"), "body STRING", host=Host.discover())

    with pytest.raises(fuse.DefinitionError, match="full text needs tantivy: pip install tantivy"):
        table.create_index("words", "full_text", ["body"])
    table.append(pa.table({"body": ["late refund", "fine"]}))
    assert table.scan("match(body, 'refund')").count() == 1


def test_inspect_says_what_a_person_learns_from(tmp_path):
    table = fuse.create_table(str(tmp_path / "t"), "body STRING")
    table.create_index("words", "full_text", ["body"])
    table.append(pa.table({"body": ["late refund", "late", None]}))
    found = table.inspect.index("words")

    assert "late (2), refund (1)" in str(found)
