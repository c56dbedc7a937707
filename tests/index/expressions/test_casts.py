"""Casts of text where Spark reads more, or less, than one would think."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from fuse_index.expressions.casts import cast_value
from fuse_index.expressions.errors import NotReproducible
from fuse_index.predicate import Context

DECIMAL, INSTANT = pa.decimal128(10, 2), pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("١٢٣", "123.00"),
        ("-٣.٥", "-3.50"),
        ("１e２", "100.00"),
        (" \x001\t", "1.00"),
        ("1\x7f", None),
        ("\xa01", None),
        ("−1", None),
        ("²", None),
        ("\U0001d7d9", None),
        ("1d", None),
    ],
)
def test_decimals_are_read_as_java_reads_them_digits_of_any_script(text, value):
    for mode in ("legacy", "try", "ansi"):
        ours = cast_value(text, pa.string(), DECIMAL, mode, Context())
        assert (None if ours is None else str(ours)) == value


def test_a_digit_that_only_newer_editions_of_unicode_know_is_left_to_spark():
    with pytest.raises(NotReproducible, match="Unicode"):
        cast_value("\ua9f3", pa.string(), DECIMAL, "try", Context())


@pytest.mark.parametrize("target", [pa.int32(), pa.int64(), pa.float64(), pa.bool_(), pa.date32(), INSTANT])
def test_no_other_type_knows_digits_beyond_ascii(target):
    for text in ("١", "٢٠٢٤-٠١-٠٢", "２０２４-01-02"):
        assert cast_value(text, pa.string(), target, "try", Context()) is None


def test_after_its_day_a_date_may_have_any_text():
    assert cast_value("2024-01-02 ٠٣", pa.string(), pa.date32(), "try", Context()) == date(2024, 1, 2)


@pytest.mark.parametrize(("target", "most"), [(pa.int8(), 127), (pa.int16(), 32767), (pa.int32(), 2**31 - 1)])
def test_an_instant_too_late_for_a_whole_number_is_null_and_does_not_wrap(target, most):
    for mode in ("legacy", "try", "ansi"):
        last, beyond = (datetime.fromtimestamp(second, UTC) for second in (most, most + 1))
        assert cast_value(last, INSTANT, target, mode, Context()) == most
        assert cast_value(beyond, INSTANT, target, mode, Context()) is None
    assert cast_value(Decimal(most + 1), pa.decimal128(12, 0), target, "legacy", Context()) == -most - 1
