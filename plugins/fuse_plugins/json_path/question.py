"""From a leaf to a question about one path. Knows no block."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from fuse_index.plugin import Conjunction, Reason, Refusal, ValueSet, json_documents, json_paths
from fuse_index.predicate import Call, Cast, Compare, In, IsNull, JsonPath, Leaf, Like, Literal, StartsWith, Term
from fuse_plugins.bloom.zone_index import ProbeValues
from fuse_plugins.json_path.path_statistics import (
    ARRAY_KIND,
    BOOLEAN_KIND,
    FLOAT_KIND,
    INTEGER_KIND,
    KIND_OF_FIRST_SIGN,
    MAY_CAST_TO_FALSE,
    MAY_CAST_TO_TRUE,
    OBJECT_KIND,
    ODD_DAYS,
    ODD_NUMBERS,
    SPELLING_VARIES,
    STRING_KIND,
)
from fuse_plugins.json_path.paths import PathPattern, parse_pattern, pattern_of_steps
from fuse_plugins.min_max import ValueRanges, matching_value_set

MAX_UTC_OFFSET = timedelta(days=2)
"""No clock on Earth is further from UTC."""

KINDS_SPELLED_DIFFERENTLY = INTEGER_KIND | FLOAT_KIND | OBJECT_KIND | ARRAY_KIND | SPELLING_VARIES
"""Values that Spark's functions write as text in different ways."""


@dataclass(frozen=True, eq=False)
class PathProbe:
    """What is asked of the values at one path; picklable.

    ``reading``: as what they are asked: ``text``, ``number``, ``day``, ``truth``; ``null`` (is there any?), ``member``
    (of ``json_contains``) or ``nothing`` (Spark finds nothing at such a path). ``needles``: the only values on which it
    may be TRUE, of blocks without the kinds in ``unless``.
    """

    path: str
    reading: str
    value_ranges: ValueRanges | None = None
    truths: int = 0
    probe_values: ProbeValues | None = None
    unless_kinds: int = 0
    unreadable_kinds: int = 0
    """Of which kinds of values a block must hold none, for its ranges to say anything."""
    usual_documents_only: bool = False
    """Only of blocks without unusual documents, on which Spark's functions differ; and they may find NULL anywhere."""


def bloom_keys(pattern: PathPattern, texts: pa.StringArray) -> pa.StringArray:
    """What is hashed of values at a path: all paths share one filter."""
    return pc.binary_join_element_wise(pa.scalar(pattern.text), texts, "\0")


def compile_path_probe(what: Leaf | Conjunction, column: Term, fpp: float) -> PathProbe | Refusal:
    """What a leaf asks of the documents in a column."""
    match what:
        case Call("json_contains", (document, Literal(str() as path), Literal(str() as value))) if document == column:
            return _contains_probe(path, value, fpp)
        case IsNull(JsonPath(document, path, function="get_json_object")) if document == column:
            found = _normalize_path(path)
            return found if isinstance(found, Refusal) else PathProbe(found, "null")
    term = _column_side(what)
    path_term = term.term if isinstance(term, Cast) else term
    if not isinstance(path_term, JsonPath) or path_term.term != column:
        return Refusal(
            Reason.LEAF_UNSUPPORTED, "json_path answers get_json_object(…), compared or cast, and json_contains(…)"
        )
    asked = matching_value_set(what, term)  # type: ignore[arg-type]
    if asked is None:
        return Refusal(Reason.LEAF_UNSUPPORTED, "no range of values says the same")
    spelled = _normalize_path(path_term.path)
    if isinstance(spelled, Refusal):
        return spelled
    if not spelled:
        return PathProbe("", "nothing")
    domain, exact = asked
    if path_term.function != "get_json_object" and path_term is not term:
        return Refusal(Reason.CAST_ON_COLUMN, f"nothing is known of what {path_term.function} finds, cast")
    assert term is not None
    asked_of = (
        _text_probe(spelled, domain, exact, fpp)
        if term.type == pa.string()
        else _cast_probe(spelled, domain, term.type, fpp)
    )
    if path_term.function == "get_json_object" or isinstance(asked_of, Refusal):
        return asked_of
    return _from_json_probe(asked_of, term.type) if path_term.function == "from_json" else _variant_probe(asked_of)


def _column_side(what: Leaf | Conjunction) -> Term | None:
    match what:
        case Conjunction(((term, _),)):
            return term
        case Compare(_, term, _) | In(term, _) | StartsWith(term, _) | Like(term, _, _):
            return term
        case _:
            return None


def _normalize_path(text: str) -> str | Refusal:
    """The path in the spelling of summaries; empty for one at which Spark finds nothing."""
    try:
        steps = json_paths.parse(text)
    except ValueError as unsure:
        return Refusal(Reason.LEAF_UNSUPPORTED, f"only Spark knows what {text!r} means: {unsure}")
    if steps is None or json_paths.Every.MEMBER in steps:
        return ""
    if json_paths.Every.ELEMENT in steps:
        return Refusal(Reason.LEAF_UNSUPPORTED, f"{text!r} finds arrays: ask json_contains() whether one holds a value")
    return pattern_of_steps([step for step in steps if isinstance(step, str | int)]).text


def _contains_probe(path: str, value: str, fpp: float) -> PathProbe | Refusal:
    try:
        pattern = parse_pattern(path)
    except ValueError as problem:
        return Refusal(Reason.LEAF_UNSUPPORTED, str(problem))
    wanted = ValueRanges.from_value_set(ValueSet.points_at([value]), pa.string(), False)
    return PathProbe(pattern.text, "member", wanted, probe_values=_probe_values(pattern.text, [value], fpp))


def _text_probe(path: str, domain: ValueSet, exact: bool, fpp: float) -> PathProbe:
    points = domain.points()
    listed = points is not None and not any(point[:1] in KIND_OF_FIRST_SIGN for point in points)
    needles = _probe_values(path, points, fpp) if points is not None and listed else None
    return PathProbe(
        path,
        "text",
        ValueRanges.from_value_set(domain, pa.string(), exact),
        probe_values=needles,
        unreadable_kinds=SPELLING_VARIES,
    )


def _cast_probe(path: str, domain: ValueSet, kind: pa.DataType, fpp: float) -> PathProbe | Refusal:
    if is_.is_boolean(kind):
        return PathProbe(
            path,
            "truth",
            truths=(MAY_CAST_TO_TRUE if domain.contains(True) else 0)
            | (MAY_CAST_TO_FALSE if domain.contains(False) else 0),
        )
    if is_.is_date(kind) or is_.is_timestamp(kind):
        slack = timedelta() if is_.is_date(kind) else MAX_UTC_OFFSET
        days = [
            ValueSet.between(_day_number(one.low, -slack), _day_number(one.high, slack), True, True)
            for one in domain.intervals
        ]
        return PathProbe(
            path, "day", ValueRanges.from_value_set(_union(days), pa.int32(), False), unreadable_kinds=ODD_DAYS
        )
    if is_.is_integer(kind) or is_.is_floating(kind) or is_.is_decimal(kind):
        near = [
            ValueSet.between(_bound_before_cast(one.low, kind, -1), _bound_before_cast(one.high, kind, 1), True, True)
            for one in domain.intervals
        ]
        texts = _spellings(domain, kind)
        needles = None if texts is None else _probe_values(path, texts, fpp)
        unless = STRING_KIND | SPELLING_VARIES | (0 if kind == pa.float64() else FLOAT_KIND)
        wanted = ValueRanges.from_value_set(_union(near), pa.float64(), False)
        return PathProbe(
            path, "number", wanted, probe_values=needles, unless_kinds=unless, unreadable_kinds=ODD_NUMBERS
        )
    return Refusal(Reason.CAST_ON_COLUMN, f"nothing is known of values at paths as {kind}")


def _from_json_probe(question: PathProbe, kind: pa.DataType) -> PathProbe | Refusal:
    """The same of ``from_json``: whole numbers are made of JSON's whole numbers alone, truths of its truths."""
    if question.reading == "day" or is_.is_decimal(kind):
        return Refusal(Reason.CAST_ON_COLUMN, f"nothing is known of what from_json makes of texts as {kind}")
    unreadable = KINDS_SPELLED_DIFFERENTLY if question.reading == "text" else 0
    return replace(
        question,
        unreadable_kinds=unreadable,
        unless_kinds=FLOAT_KIND if kind == pa.float32() else 0,
        usual_documents_only=True,
    )


def _variant_probe(question: PathProbe) -> PathProbe:
    """The same of a VARIANT, which casts also numbers to truths, truths to numbers, and numbers to moments."""
    unreadable = {
        "text": KINDS_SPELLED_DIFFERENTLY,
        "number": ODD_NUMBERS | BOOLEAN_KIND,
        "truth": INTEGER_KIND | FLOAT_KIND,
        "day": ODD_DAYS | INTEGER_KIND | FLOAT_KIND | BOOLEAN_KIND,
    }
    return replace(question, unreadable_kinds=unreadable[question.reading], usual_documents_only=True)


def _union(domains: Sequence[ValueSet]) -> ValueSet:
    found = ValueSet.nothing()
    for domain in domains:
        found = found.union(domain)
    return found


def _day_number(value: date | datetime | None, slack: timedelta) -> int | None:
    if value is None:
        return None
    try:
        moved = value + slack
    except OverflowError:
        return None
    return moved.year * 10000 + moved.month * 100 + moved.day


def _bound_before_cast(value: Any, kind: pa.DataType, direction: int) -> float | None:
    """A double beyond which no number is cast to anything from ``value`` on: casts cut and round by less than a unit of
    the type.
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return value
    end = direction * math.inf
    if kind == pa.float64():
        return float(value)
    if kind == pa.float32():
        return math.nextafter(float(np.nextafter(np.float32(value), np.float32(end))), end)
    unit = Decimal(1).scaleb(-kind.scale) if is_.is_decimal(kind) else Decimal(1)
    return math.nextafter(float(Decimal(value) + direction * unit), end)


def _spellings(domain: ValueSet, kind: pa.DataType) -> list[str] | None:
    """How JSON's own numbers are written that a cast makes one of these values; None for ranges, and for values that
    many numbers make.
    """
    points = domain.points()
    if points is None:
        return None
    texts = []
    for point in points:
        whole = math.isfinite(point) and point == int(point)
        exact = whole and abs(point) < (1 << (24 if kind == pa.float32() else 53))
        if kind == pa.float64() and (exact or json_documents.is_plain(point)):
            texts.append(json_documents.double_text(point, sure=False))
        elif not exact and not is_.is_integer(kind):
            return None
        if whole:
            texts.append(str(int(point)))
        if point == 0:
            texts.append("-0.0")
    return texts


def _probe_values(path: str, texts: Sequence[str], fpp: float) -> ProbeValues:
    keys = bloom_keys(PathPattern(path, None), pa.array(texts, pa.string()))
    return ProbeValues.from_values(keys.to_pylist(), pa.string(), fpp)
