"""Compilation of a leaf to a probe of one path. Knows no block."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import takewhile
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

_MAX_UTC_OFFSET = timedelta(days=2)
"""Bound of offsets: no clock on Earth is further from UTC."""

_KINDS_SPELLED_DIFFERENTLY = INTEGER_KIND | FLOAT_KIND | OBJECT_KIND | ARRAY_KIND | SPELLING_VARIES
"""Values that Spark's functions write as text in different ways."""


@dataclass(frozen=True, eq=False)
class PathProbe:
    """The question that a leaf asks of the values at one path; picklable. Kinds are bits of ``path_statistics``."""

    path: str
    """In the spelling of summaries."""
    reading: str
    """The reading of values: ``text``, ``number``, ``day`` or ``boolean``; ``null`` (is there any?), ``member`` (of
    ``json_contains``) or ``nothing`` (Spark finds nothing at such a path).
    """
    value_ranges: ValueRanges | None = None
    """The values on which the leaf may be TRUE, as they are read."""
    boolean_kinds: int = 0
    """For ``boolean``: MAY_CAST_TO_TRUE, MAY_CAST_TO_FALSE, or both."""
    probe_values: ProbeValues | None = None
    """The only values on which the leaf may be TRUE, for the bloom filters of blocks without ``unless_kinds``."""
    unless_kinds: int = 0
    unreadable_kinds: int = 0
    """Kinds of which a block must hold none, for its ranges to say anything."""
    names: tuple[str, ...] = ()
    """The names that the path begins with: a document without them has nothing at the path."""
    usual_documents_only: bool = False
    """True for functions of Spark that read unusual documents differently, and may find NULL anywhere: only blocks
    without such documents are judged.
    """


def bloom_keys(pattern: PathPattern, texts: pa.StringArray) -> pa.StringArray:
    """Join the path to each of n texts at it: the n strings that are hashed, as all paths share one filter."""
    return pc.binary_join_element_wise(pa.scalar(pattern.text), texts, "\0")


def compile_path_probe(what: Leaf | Conjunction, column: Term, fpp: float) -> PathProbe | Refusal:
    """Compile what a leaf asks of the documents in a column."""
    match what:
        case Call("json_contains", (document, Literal(str() as path), Literal(str() as value))) if document == column:
            return _contains_probe(path, value, fpp)
        case IsNull(JsonPath(document, path, function="get_json_object")) if document == column:
            normalized = _normalize_path(path)
            return normalized if isinstance(normalized, Refusal) else _with_names(PathProbe(normalized, "null"), path)
    term = _column_side(what)
    path_term = term.term if isinstance(term, Cast) else term
    if not isinstance(path_term, JsonPath) or path_term.term != column:
        return Refusal(
            Reason.LEAF_UNSUPPORTED, "json_path answers get_json_object(…), compared or cast, and json_contains(…)"
        )
    matching = matching_value_set(what, term)  # type: ignore[arg-type]
    if matching is None:
        return Refusal(Reason.LEAF_UNSUPPORTED, "no range of values says the same")
    normalized_path = _normalize_path(path_term.path)
    if isinstance(normalized_path, Refusal):
        return normalized_path
    if not normalized_path:
        return PathProbe("", "nothing")
    value_set, exact = matching
    if path_term.function != "get_json_object" and path_term is not term:
        return Refusal(Reason.CAST_ON_COLUMN, f"nothing is known of what {path_term.function} finds, cast")
    assert term is not None
    path_probe = (
        _text_probe(normalized_path, value_set, exact, fpp)
        if term.type == pa.string()
        else _cast_probe(normalized_path, value_set, term.type, fpp)
    )
    if isinstance(path_probe, Refusal):
        return path_probe
    if path_term.function == "get_json_object":
        return _with_names(path_probe, path_term.path)
    return _from_json_probe(path_probe, term.type) if path_term.function == "from_json" else _variant_probe(path_probe)


def _with_names(path_probe: PathProbe, path: str) -> PathProbe:
    steps = json_paths.parse(path) or ()
    return replace(path_probe, names=_leading_names(steps))


def _leading_names(steps: Sequence[object]) -> tuple[str, ...]:
    return tuple(step for step in takewhile(lambda step: isinstance(step, str), steps) if isinstance(step, str))


def _column_side(what: Leaf | Conjunction) -> Term | None:
    match what:
        case Conjunction(((term, _),)):
            return term
        case Compare(_, term, _) | In(term, _) | StartsWith(term, _) | Like(term, _, _):
            return term
        case _:
            return None


def _normalize_path(text: str) -> str | Refusal:
    """Respell a path as summaries do; empty for one at which Spark finds nothing."""
    try:
        steps = json_paths.parse(text)
    except ValueError as problem:
        return Refusal(Reason.LEAF_UNSUPPORTED, f"only Spark knows what {text!r} means: {problem}")
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
    value_ranges = ValueRanges.from_value_set(ValueSet.points_at([value]), pa.string(), False)
    probe_values = _probe_values(pattern.text, [value], fpp)
    names = _leading_names(pattern.steps or ())
    return PathProbe(pattern.text, "member", value_ranges, probe_values=probe_values, names=names)


def _text_probe(path: str, value_set: ValueSet, exact: bool, fpp: float) -> PathProbe:
    points = value_set.points()
    is_listed = points is not None and not any(point[:1] in KIND_OF_FIRST_SIGN for point in points)
    probe_values = _probe_values(path, points, fpp) if points is not None and is_listed else None
    return PathProbe(
        path,
        "text",
        ValueRanges.from_value_set(value_set, pa.string(), exact),
        probe_values=probe_values,
        unreadable_kinds=SPELLING_VARIES,
    )


def _cast_probe(path: str, value_set: ValueSet, data_type: pa.DataType, fpp: float) -> PathProbe | Refusal:
    if is_.is_boolean(data_type):
        return PathProbe(
            path,
            "boolean",
            boolean_kinds=(MAY_CAST_TO_TRUE if value_set.contains(True) else 0)
            | (MAY_CAST_TO_FALSE if value_set.contains(False) else 0),
        )
    if is_.is_date(data_type) or is_.is_timestamp(data_type):
        utc_offset = timedelta() if is_.is_date(data_type) else _MAX_UTC_OFFSET
        days = [
            ValueSet.between(_day_number(interval.low, -utc_offset), _day_number(interval.high, utc_offset), True, True)
            for interval in value_set.intervals
        ]
        return PathProbe(
            path, "day", ValueRanges.from_value_set(_union(days), pa.int32(), False), unreadable_kinds=ODD_DAYS
        )
    if is_.is_integer(data_type) or is_.is_floating(data_type) or is_.is_decimal(data_type):
        intervals = [
            ValueSet.between(
                _bound_before_cast(interval.low, data_type, -1),
                _bound_before_cast(interval.high, data_type, 1),
                True,
                True,
            )
            for interval in value_set.intervals
        ]
        spellings = _spellings(value_set, data_type)
        probe_values = None if spellings is None else _probe_values(path, spellings, fpp)
        unless_kinds = STRING_KIND | SPELLING_VARIES | (0 if data_type == pa.float64() else FLOAT_KIND)
        value_ranges = ValueRanges.from_value_set(_union(intervals), pa.float64(), False)
        return PathProbe(
            path,
            "number",
            value_ranges,
            probe_values=probe_values,
            unless_kinds=unless_kinds,
            unreadable_kinds=ODD_NUMBERS,
        )
    return Refusal(Reason.CAST_ON_COLUMN, f"nothing is known of values at paths as {data_type}")


def _from_json_probe(path_probe: PathProbe, data_type: pa.DataType) -> PathProbe | Refusal:
    """Adapt a probe to ``from_json``: whole numbers are made of JSON's whole numbers alone, booleans of booleans."""
    if path_probe.reading == "day" or is_.is_decimal(data_type):
        return Refusal(Reason.CAST_ON_COLUMN, f"nothing is known of what from_json makes of texts as {data_type}")
    unreadable = _KINDS_SPELLED_DIFFERENTLY if path_probe.reading == "text" else 0
    return replace(
        path_probe,
        unreadable_kinds=unreadable,
        unless_kinds=FLOAT_KIND if data_type == pa.float32() else 0,
        usual_documents_only=True,
    )


def _variant_probe(path_probe: PathProbe) -> PathProbe:
    """Adapt a probe to a VARIANT, which casts also numbers to booleans and to moments, and booleans to numbers."""
    unreadable = {
        "text": _KINDS_SPELLED_DIFFERENTLY,
        "number": ODD_NUMBERS | BOOLEAN_KIND,
        "boolean": INTEGER_KIND | FLOAT_KIND,
        "day": ODD_DAYS | INTEGER_KIND | FLOAT_KIND | BOOLEAN_KIND,
    }
    return replace(path_probe, unreadable_kinds=unreadable[path_probe.reading], usual_documents_only=True)


def _union(value_sets: Sequence[ValueSet]) -> ValueSet:
    union = ValueSet.nothing()
    for value_set in value_sets:
        union = union.union(value_set)
    return union


def _day_number(value: date | datetime | None, offset: timedelta) -> int | None:
    if value is None:
        return None
    try:
        moved = value + offset
    except OverflowError:
        return None
    return moved.year * 10000 + moved.month * 100 + moved.day


def _bound_before_cast(value: Any, data_type: pa.DataType, direction: int) -> float | None:
    """Find a double beyond which no number is cast to anything from ``value`` on.

    Casts cut and round by less than a unit of the type. ``direction``: -1 for a double below, 1 for one above.
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return value
    end = direction * math.inf
    if data_type == pa.float64():
        return float(value)
    if data_type == pa.float32():
        return math.nextafter(float(np.nextafter(np.float32(value), np.float32(end))), end)
    unit = Decimal(1).scaleb(-data_type.scale) if is_.is_decimal(data_type) else Decimal(1)
    return math.nextafter(float(Decimal(value) + direction * unit), end)


def _spellings(value_set: ValueSet, data_type: pa.DataType) -> list[str] | None:
    """List how JSON's own numbers are written that a cast makes one of these values.

    None for ranges, and for values that many numbers make.
    """
    points = value_set.points()
    if points is None:
        return None
    texts = []
    for point in points:
        is_whole = math.isfinite(point) and point == int(point)
        is_exact = is_whole and abs(point) < (1 << (24 if data_type == pa.float32() else 53))
        if data_type == pa.float64() and (is_exact or json_documents.is_plain(point)):
            texts.append(json_documents.double_text(point, sure=False))
        elif not is_exact and not is_.is_integer(data_type):
            return None
        if is_whole:
            texts.append(str(int(point)))
        if point == 0:
            texts.append("-0.0")
    return texts


def _probe_values(path: str, texts: Sequence[str], fpp: float) -> ProbeValues:
    keys = bloom_keys(PathPattern(path, None), pa.array(texts, pa.string()))
    return ProbeValues.from_values(keys.to_pylist(), pa.string(), fpp)
