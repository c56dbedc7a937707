"""``get_json_object`` is Spark's, document by document and path by path."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuse_index.expressions.errors import MalformedJson, NotReproducible
from fuse_index.expressions.json import path as json_paths
from fuse_index.expressions.json import reader, writer
from fuse_index.expressions.json.path import ANYTHING, SPELLING, SURE, Every
from fuse_index.expressions.json.reader import Float, Members

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "json_objects.json").read_text("utf-8"))
DOCUMENTS = pa.array(GOLDEN["documents"])


def test_there_is_enough_to_compare_with():
    assert len(DOCUMENTS) > 500
    assert len(GOLDEN["answers"]) > 90
    assert sum(map(len, GOLDEN["answers"].values())) > 2400


@pytest.mark.parametrize("path", GOLDEN["answers"])
def test_what_is_found_is_what_spark_finds(path):
    answers = {int(row): text for row, text in GOLDEN["answers"][path].items()}
    found = json_paths.get_json_objects(DOCUMENTS, path)

    wrong = [
        (DOCUMENTS[row].as_py()[:200], text, answers.get(row))
        for row, (text, doubt) in enumerate(zip(found.texts.to_pylist(), found.doubts.tolist(), strict=True))
        if (doubt == SURE and text != answers.get(row)) or (doubt == SPELLING and (text is None or row not in answers))
    ]
    assert wrong == []
    assert (found.doubts == ANYTHING).sum() < 20
    assert (found.doubts == SPELLING).sum() < 50


def test_a_place_beyond_all_numbers_is_left_to_spark():
    with pytest.raises(NotReproducible):
        json_paths.parse("$[99999999999999999999]")


def test_the_oldest_spark_answers_alike():
    assert GOLDEN["differs"] == {"4.0.1": {}}


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("$", ()),
        ("$.a", ("a",)),
        ("$['a b'].c", ("a b", "c")),
        ("$.a[0][*]", ("a", 0, Every.ELEMENT)),
        ("$. a", ("a",)),
        ("$.a ", ("a ",)),
        ("$.*", (Every.MEMBER,)),
        ("$..a", None),
        ("a", None),
        (" $", None),
        ("$['a'", None),
        ("$[-1]", None),
        ('$["a"]', None),
    ],
)
def test_paths_are_sparks_own_small_language(path, steps):
    assert json_paths.parse(path) == steps


def test_an_object_keeps_what_it_says_twice():
    assert reader.read_json('{"a":1,"b":[1.50],"a":null}') == Members([("a", 1), ("b", [Float("1.50")]), ("a", None)])


@pytest.mark.parametrize("text", ["", "{", "[1,]", "{'a' 1}", "'a", "nul", "-", "\ufeff1", '{"a":1' + "1" * 1000 + "}"])
def test_what_is_no_json_is_malformed(text):
    with pytest.raises(MalformedJson):
        reader.read_json(text)


TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.lists(st.tuples(st.text(max_size=3), inner), max_size=3).map(Members)
    ),
    max_leaves=8,
)


@given(TREES, st.sampled_from(["", " ", "\n\t"]))
def test_both_readers_read_alike_what_is_written(tree, blank):
    text = blank + writer.write_json(tree, sure=False) + blank

    assert reader.read_json(text) == tree
    assert reader.JacksonReader(text).document() == tree


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_written_so_that_it_is_read_back(number):
    assert float(writer.double_text(number, sure=False)) == number


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (100.0, "100.0"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (1e7, "1.0E7"),
        (-123456.75, "-123456.75"),
        (1.5e300, "1.5E300"),
        (float("inf"), '"Infinity"'),
    ],
)
def test_floats_are_written_as_java_writes_them(number, text):
    assert writer.double_text(number, sure=False) == text
