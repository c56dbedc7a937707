"""``match`` finds the rows that tantivy finds on the same text, and scores them as it does: in memory, and from an
index's bytes.
"""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fuse_plugins.full_text.analysis import Analyzer
from fuse_plugins.full_text.evaluate import evaluate_query, has_phrase
from fuse_plugins.full_text.inverted import InvertedIndex
from fuse_plugins.full_text.layout import write_postings
from fuse_plugins.full_text.match_function import evaluate_match
from fuse_plugins.full_text.ranking import gather_statistics, score_rows
from fuse_plugins.full_text.stored_postings import StoredPostings
from fuse_plugins.full_text.syntax import BooleanQuery, QueryOptions, parse_query
from tests.effort import effort
from tests.plugins.full_text.judge import Judge, analyser

TOKENIZERS = ["default", "raw", "whitespace", "en_stem", "de_stem", "ngram(2,3)"]
WORDS = [
    "late",
    "Late",
    "LATE",
    "refund",
    "refunds",
    "refunded",
    "the",
    "a",
    "x1",
    "42",
    "İstanbul",
    "istanbul",
    "ΣΑΣ",
    "σας",
    "Straße",
    "STRASSE",
    "東京",
    "ünï",
    "K",
    "k",
    "ﬀ",
    "é",
    "e\u0301",
    "😀",
    "b\x0bc",
    "l" * 39,
    "l" * 40,
    "L" * 41,
    "é" * 20,
    "ab",
    "abc",
    "ba",
]
GAPS = [" ", "  ", ",", "-", "_", ". ", "\n", "\t", "\x0b", "\u00a0", "\u3000", "'", ""]

texts = st.lists(
    st.none()
    | st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(GAPS)), max_size=8).map(
        lambda parts: "".join(map("".join, parts))
    ),
    min_size=1,
    max_size=12,
)
words = st.sampled_from([word for word in WORDS if "\x0b" not in word])
leaves = words | st.lists(words, min_size=1, max_size=3).map(lambda some: f'"{" ".join(some)}"')
queries = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(st.tuples(st.sampled_from(["", "", "+", "-"]), inner), min_size=1, max_size=3).map(
            lambda some: "(" + " ".join(sign + part for sign, part in some) + ")"
        ),
        st.tuples(inner, st.sampled_from([" AND ", " OR ", " AND NOT "]), inner).map(
            lambda some: "(" + "".join(some) + ")"
        ),
    ),
    max_leaves=5,
)


def excludes_only(query):
    """Whether some part of a query says nothing but what must not be."""
    match query:
        case BooleanQuery(must, may, never):
            return (not must and not may) or any(map(excludes_only, (*must, *may, *never)))
    return False


class Bytes:
    """A payload in memory."""

    def __init__(self, data: bytes) -> None:
        self.data, self.size, self.reads = data, len(data), 0

    def read(self, ranges):
        self.reads += len(ranges)
        return [self.data[start : start + size] for start, size in ranges]

    def decoded(self, span, decode, size):
        return decode(self.read([span])[0])


def stored(rows, chosen, positions=True):
    made = InvertedIndex.from_tokens(chosen.tokenize(pa.array(rows, pa.string())), len(rows))
    summary, data = write_postings(made, positions, 7)
    return StoredPostings(Bytes(b"before!" + data + b"after"), summary, len(rows))


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@given(texts, queries, st.sampled_from(["or", "and"]), st.sampled_from(["", "the,late"]))
@example(["l" * 39 + " " + "l" * 40, "", None, "L" * 39], "l" * 39, "or", "")
@settings(max_examples=effort(10), deadline=None)
def test_the_same_rows_and_the_same_scores(tokenizer, rows, query, operator, stop_words):
    chosen = Analyzer(tokenizer, stop_words)
    text = f"tokenizer={tokenizer};stop_words={stop_words};operator={operator}"
    wanted = parse_query(query, QueryOptions.parse(text))
    right = Judge(rows, chosen).scores(wanted)

    found = evaluate_match(pa.array(rows, pa.string()), pa.scalar(query), pa.scalar(text)).to_pylist()
    assert found == [None if row is None else number in right for number, row in enumerate(rows)]

    index = stored(rows, chosen, not chosen.is_ngram)
    index.wants_counts, index.wants_positions = True, has_phrase(wanted)
    given_scores = score_rows(wanted, index, index.row_lengths(), gather_statistics(wanted, index))
    ours = {number: score for number, score in enumerate(given_scores.tolist()) if score > -np.inf}
    assert ours.keys() == right.keys()
    if excludes_only(wanted):
        return  # tantivy scores "all but" as it happens to rewrite it
    assert [ours[row] for row in right] == pytest.approx([right[row] for row in right], rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@given(st.lists(st.text(max_size=30) | st.sampled_from(WORDS), max_size=6))
@settings(max_examples=effort(10), deadline=None)
def test_any_text_has_the_terms_that_tantivy_gives_it(tokenizer, rows):
    chosen = Analyzer(tokenizer, "the,late")
    found = chosen.tokenize(pa.array(rows, pa.string()))
    names = found.terms.to_pylist()
    ours = [[names[term] for term in found.term[found.row == row]] for row in range(len(rows))]

    assert ours == [analyser(chosen).analyze(row) for row in rows]


@given(texts, words.filter(lambda word: word.isalnum()), st.integers(1, 2))
@settings(max_examples=effort(13), deadline=None)
def test_prefixes_and_fuzzy_words(rows, word, distance):
    for query in (f"{word[:3]}*", f"{word[:12]}~{distance}"):
        wanted = parse_query(query, QueryOptions(lenient=True))
        right = Judge(rows, Analyzer()).scores(wanted)

        found = evaluate_match(pa.array(rows, pa.string()), pa.scalar(query), pa.scalar("lenient=true")).to_pylist()
        assert [number for number, one in enumerate(found) if one] == sorted(right), query
        assert np.flatnonzero(evaluate_query(wanted, stored(rows, Analyzer())).always_matches).tolist() == sorted(right)


def test_a_range_is_of_terms_by_their_bytes():
    rows = pa.array(["apple", "banana", "cherry", "date", None, ""])

    assert evaluate_match(rows, pa.scalar("[banana TO cherry]")).to_pylist() == [False, True, True, False, None, False]
    assert evaluate_match(rows, pa.scalar("{banana TO cherry}")).to_pylist() == [
        False,
        False,
        False,
        False,
        None,
        False,
    ]
    assert evaluate_match(rows, pa.scalar("{banana TO *]")).to_pylist() == [False, False, True, True, None, False]
    assert evaluate_match(rows, pa.scalar("[* TO banana}")).to_pylist() == [True, False, False, False, None, False]


def test_a_long_index_is_cut_and_read_piece_by_piece():
    rows = [
        f"line {i} of {i % 7} by user{i * 7919 % 100_003:06d} says {'rare' if i == 4_321 else 'often'}"
        for i in range(20_000)
    ]
    index = stored(rows, Analyzer())
    assert len(index.summary["sizes"]) > 3

    assert np.flatnonzero(evaluate_query(parse_query("rare", QueryOptions()), index).always_matches).tolist() == [4_321]
    assert index.payload.reads == 2
    assert not evaluate_query(parse_query("nowhere", QueryOptions()), stored(rows, Analyzer())).may_match.any()
    for number in (0, 1, 777, 19_999):
        word = rows[number].split()[5]
        expected = [row for row, text in enumerate(rows) if text.split()[5] == word]
        assert (
            np.flatnonzero(evaluate_query(parse_query(word, QueryOptions()), index).always_matches).tolist() == expected
        )
    assert int(evaluate_query(parse_query("user0*", QueryOptions()), index).always_matches.sum()) == sum(
        "user0" in row for row in rows
    )


def test_a_word_that_is_not_there_costs_one_short_read():
    rows = [f"user{i * 7919 % 100_003:06d}" for i in range(20_000)]
    index = stored(rows, Analyzer())

    assert not evaluate_query(parse_query("user000000x", QueryOptions()), index).may_match.any()
    assert index.payload.reads == 1
    assert not evaluate_query(parse_query("zzz", QueryOptions()), index).may_match.any()
    assert index.payload.reads == 1


def test_without_positions_a_phrase_is_known_in_part():
    rows = ["late refund", "refund late", "late", None]
    truth = evaluate_query(parse_query('"late refund"', QueryOptions()), stored(rows, Analyzer(), positions=False))

    assert truth.may_match.tolist() == [True, True, False, False]
    assert truth.always_matches.tolist() == [False] * 4
    assert (
        evaluate_query(
            parse_query('NOT "late refund"', QueryOptions()), stored(rows, Analyzer(), positions=False)
        ).may_match.tolist()
        == [True] * 4
    )
