"""The few functions of Spark that indexes may be on: the same values, or none at all."""

import pyarrow as pa
import pytest

from fuse_index.expressions.errors import NotReproducible
from fuse_index.expressions.scalar_functions import SCALAR_FUNCTIONS


def values(function: str, text: str | None) -> list[str | None]:
    return SCALAR_FUNCTIONS[function].evaluate(pa.array([text], pa.string())).to_pylist()


@pytest.mark.parametrize(
    ("text", "lower"), [("ABC", "abc"), ("ÄÖ", "äö"), ("ŚĆ Straße 😀", "ść straße 😀"), (None, None), ("", "")]
)
def test_text_that_every_edition_of_unicode_knows_has_its_other_case(text, lower):
    assert values("lower", text) == [lower]


@pytest.mark.parametrize("letter", ["İ", "Σ", "ƛ", "ɤ", "\u1c89", "\ua7cb", "\U00010d50", "ẞ"])
def test_letters_that_spark_may_map_otherwise_are_refused(letter):
    for function in ("lower", "upper"):
        with pytest.raises(NotReproducible):
            values(function, f"a{letter}")
