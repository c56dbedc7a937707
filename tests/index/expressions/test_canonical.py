"""Terms that mean the same have one form, and have the values that they had."""

from decimal import Decimal

import pyarrow as pa
import pytest

from fuse_index.expressions.canonical import canonical_term
from fuse_index.expressions.evaluate import evaluate_term
from fuse_index.predicate import Context
from fuse_index.sql.parse import parse_term
from fuse_storage import Schema

ROWS = pa.table(
    {
        "p": pa.array([None, Decimal("1.50"), Decimal("-9.99"), Decimal("0.00")], pa.decimal128(10, 2)),
        "q": pa.array([Decimal("0.05"), None, Decimal("0.10"), Decimal("1.00")], pa.decimal128(10, 2)),
        "n": pa.array([1, None, 3, -4], pa.int32()),
        "m": pa.array([7, 3, None, 9], pa.int64()),
        "d": pa.array([float("nan"), -0.0, 1.5, None]),
        "t": pa.array(["PROMO A", "promo", None, "X PROMO"]),
        "b": pa.array([True, False, None, True]),
    }
)
SCHEMA, CONTEXT = Schema.create(ROWS.schema), Context()

ALIKE = [
    ["p * (1 - q)", "(1 - q) * p", "p * (CAST(1 AS DECIMAL(1,0)) - q)"],
    ["p * (1 - q) * (1 + q)", "(q + 1) * ((1 - q) * p)"],
    ["n + m", "m + n", "m + CAST(n AS BIGINT)", "TRY_CAST(n AS BIGINT) + m"],
    ["n * 2", "2 * n", "n * (1 + 1)"],
    ["d * 2 + 1", "1 + 2 * d", "1D + d * CAST(2 AS DOUBLE)"],
    ["CASE WHEN n > 1 THEN p END", "if(1 < n, p, NULL)", "CASE WHEN NOT n <= 1 THEN p ELSE NULL END"],
    ["CASE WHEN t LIKE 'PROMO%' THEN 1 ELSE 0 END", "if(startswith(t, 'PROMO'), 1, 0)"],
    ["CASE WHEN t LIKE '%PROMO' THEN 1 END", "CASE WHEN endswith(t, 'PROMO') THEN 1 END"],
    ["CASE WHEN t LIKE '%RO%' THEN 1 END", "CASE WHEN contains(t, 'RO') THEN 1 END"],
    ["CASE WHEN t LIKE 'promo' THEN 1 END", "CASE WHEN t = 'promo' THEN 1 END", "CASE t WHEN 'promo' THEN 1 END"],
    ["CASE WHEN n = 1 OR m = 9 THEN 1 END", "CASE WHEN 9 = m OR n IN (1) THEN 1 END"],
    ["CASE WHEN NOT (n = 1 OR m = 9) THEN 1 END", "CASE WHEN m <> 9 AND n <> 1 THEN 1 END"],
    ["CASE WHEN n IN (1, 3) THEN 1 END", "CASE WHEN n IN (3, 1) THEN 1 END"],
    ["CASE WHEN n < m THEN 1 END", "CASE WHEN m > n THEN 1 END", "CASE WHEN NOT n >= m THEN 1 END"],
    ["CASE WHEN b THEN 1 END", "CASE WHEN b = TRUE THEN 1 END", "CASE WHEN NOT b = FALSE THEN 1 END"],
    ["CASE WHEN NOT b THEN 1 END", "CASE WHEN b = FALSE THEN 1 END"],
    ["CASE WHEN TRUE THEN n ELSE 7 END", "n", "CASE WHEN FALSE THEN 7 ELSE n END"],
    ["CASE WHEN n = 1 THEN 1 WHEN TRUE THEN 2 WHEN n = 3 THEN 3 END", "CASE WHEN n = 1 THEN 1 ELSE 2 END"],
    ["coalesce(n, 0)", "CASE WHEN n IS NOT NULL THEN n ELSE 0 END", "nvl(n, 0)"],
    ["nullif(n, 1)", "CASE WHEN n = 1 THEN NULL ELSE n END"],
]
UNLIKE = ["n + m - 1", "n + (m - 1)", "n - m", "m - n", "p - q", "q - p", "d / 2", "-n", "0 - n", "d + 1 + 2", "d + 3"]


def form(text):
    return canonical_term(parse_term(text, SCHEMA, CONTEXT), CONTEXT)


@pytest.mark.parametrize("texts", ALIKE, ids=lambda texts: texts[0])
def test_what_means_the_same_has_one_form(texts):
    assert len({form(text) for text in texts}) == 1


def test_what_does_not_has_others():
    forms = [form(text) for text in [*(texts[0] for texts in ALIKE), *UNLIKE]]

    assert len(set(forms)) == len(forms)


@pytest.mark.parametrize("text", [*(text for texts in ALIKE for text in texts), *UNLIKE])
def test_no_value_and_no_type_is_another(text):
    written = parse_term(text, SCHEMA, CONTEXT)

    expected, found = evaluate_term(written, ROWS), evaluate_term(form(text), ROWS)

    assert form(text).type == written.type
    assert str(found.to_pylist()) == str(expected.to_pylist())
    assert canonical_term(form(text), CONTEXT) == form(text)
