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


@pytest.mark.parametrize("name", ["year", "month", "day"])
def test_parts_of_dates_are_right_beyond_the_years_that_arrow_knows(name: str) -> None:
    days = [2147483647, -2147483647, 12_000_000, 0, None, -1, 18_262]
    spark_says = {
        "year": [5881580, -5877641, 34824, 1970, None, 1969, 2020],
        "month": [7, 6, 11, 1, None, 12, 1],
        "day": [11, 24, 19, 1, None, 31, 1],
    }
    function = SCALAR_FUNCTIONS[name]
    dates = pa.array(days, pa.int32()).cast(pa.date32())
    assert function.evaluate(dates).to_pylist() == spark_says[name]
    known = pa.array(range(-1_000_000, 1_000_000, 997), pa.int32()).cast(pa.date32())
    assert function.evaluate(pa.concat_arrays([known, dates]))[: len(known)].equals(function.evaluate(known))
