"""Occurrences are sorted in pieces, and by numbers that fit into one, where they do: what comes out is the same."""

import numpy as np
import pyarrow as pa
import pytest

from fuse_plugins.full_text import inverted
from fuse_plugins.full_text.analysis import Analyzer, TokenizedTexts
from fuse_plugins.full_text.inverted import InvertedIndex

WORDS = ["late", "refund", "ünï", "the", "of", "zebra", "A", "42"]
PARTS = ("terms", "starts", "row", "position")


def texts(seed: int) -> pa.Array:
    draw = np.random.default_rng(seed)
    return pa.array([" ".join(draw.choice(WORDS, draw.integers(0, 9))) for _ in range(30)])


def parts(index: InvertedIndex) -> list[list[object]]:
    return [list(getattr(index, part).tolist()) for part in PARTS]


@pytest.mark.parametrize("piece", [1, 3, 64])
@pytest.mark.parametrize("seed", range(4))
def test_pieces_of_any_size_give_the_same(monkeypatch: pytest.MonkeyPatch, piece: int, seed: int) -> None:
    tokens = Analyzer().tokenize(texts(seed))
    whole = parts(InvertedIndex.from_tokens(tokens, 30))
    monkeypatch.setattr(inverted, "_SLICE", piece)

    assert parts(InvertedIndex.from_tokens(tokens, 30)) == whole


def test_numbers_too_large_to_be_packed_into_one_are_sorted_all_the_same() -> None:
    largest = np.iinfo(np.int32).max
    terms = pa.array(["c", "a", "b"])
    term = np.array([0, 1, 2, 0, 1], np.int32)
    row = np.array([0, 0, 5, largest - 1, largest - 1], np.int32)
    position = np.array([0, 1, largest, 0, largest], np.int32)
    index = InvertedIndex.from_tokens(TokenizedTexts(terms, term, row, position), largest)

    assert index.terms.tolist() == ["a", "b", "c"]
    assert index.starts.tolist() == [0, 2, 3, 5]
    assert index.row.tolist() == [0, largest - 1, 5, 0, largest - 1]
    assert index.position.tolist() == [1, largest, largest, 0, 0]
