"""Columns as Delta describes them: a schema in JSON, what of it needs which features, and statistics of files.

Source of names and rules: Delta's protocol, "Schema Serialization Format", "Column Mapping", "Type Widening" and
"Per-file Statistics".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from fuse_index.export.live_files import LiveFiles, TableFormat, has_plain_bounds
from fuse_storage import ColumnStatistics, Field, is_variant

DELTA_FORMAT = TableFormat("Delta", tells_defaults=False, widens=lambda before, now: True, has_variants=True)
"""Each change of a type that we allow is one that Delta's type widening has."""

_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""The first day of the year 1 and the last of the year 9999, since 1970. DuckDB's ``infinity`` lies beyond."""
_TYPE_NAMES = {
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamp",
    pa.timestamp("us"): "timestamp_ntz",
}


def is_renamed(fields: tuple[Field, ...]) -> bool:
    """Whether any column or field has another name than in files, by which readers without column mapping look."""
    return any(part.physical_name != part.name for part in _named_parts(fields))


@dataclass(frozen=True)
class SchemaWriter:
    """Describes the columns of a snapshot. ``maps_columns``: their names in files, too."""

    files: LiveFiles
    maps_columns: bool

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.files.table.snapshot.schema.fields

    def schema(self) -> dict[str, Any]:
        return self._struct(self.fields)

    def features(self) -> set[str]:
        """What readers must support to read the files with this schema."""
        parts = [part for top in self.fields for part in top.walk()]
        found = {"timestampNtz"} if any(part.type == pa.timestamp("us") for part in parts) else set()
        if any(is_variant(part.type) for part in parts):
            found.add("variantType")
        if self.maps_columns:
            found.add("columnMapping")
        if any(self._older_types(part) for part in parts):
            found.add("typeWidening")
        return found

    def configuration(self) -> dict[str, str]:
        bounded = ",".join(
            f"`{column.name.replace('`', '``')}`" for column in self.fields if has_plain_bounds(column.type)
        )
        found = {"delta.dataSkippingStatsColumns": bounded} if bounded else {}
        if self.maps_columns:
            found["delta.columnMapping.mode"] = "name"
            found["delta.columnMapping.maxColumnId"] = str(self.files.table.snapshot.last_column_id)
        return found

    def stats(self) -> list[dict[str, Any]]:
        """What is said of each file: of all columns that are said to be bounded, or of none.

        Readers may take the bounds of a column that some file lacks for NULL (``deltalake`` does), and skip the file.
        """
        row_counts, statistics = self.files.row_counts, self.files.statistics
        columns = [column for column in self.fields if has_plain_bounds(column.type)]
        if not all(column.id in statistics for column in columns):
            return [{"numRecords": rows} for rows in row_counts]
        names = [column.physical_name if self.maps_columns else column.name for column in columns]
        nulls = [statistics[column.id].null_count.to_pylist() for column in columns]
        bounds = [_bounds(statistics[column.id]) for column in columns]
        stats: list[dict[str, Any]] = []
        for block, rows in enumerate(row_counts):
            counts = dict(zip(names, (counts[block] for counts in nulls), strict=True))
            pairs = dict(zip(names, (pairs[block] for pairs in bounds), strict=True))
            known = {name: pair for name, pair in pairs.items() if None not in pair}
            stats.append({"numRecords": rows})
            if None in counts.values() or any(counts[name] < rows for name in names if name not in known):
                continue
            least, greatest = ({name: pair[side] for name, pair in known.items()} for side in (0, 1))
            stats[-1] |= {"tightBounds": False, "nullCount": counts, "minValues": least, "maxValues": greatest}
        return stats

    def _struct(self, fields: tuple[Field, ...]) -> dict[str, Any]:
        described = [
            {"name": part.name, "type": self._type(part), "nullable": part.nullable, "metadata": self._metadata(part)}
            for part in fields
        ]
        return {"type": "struct", "fields": described}

    def _metadata(self, part: Field) -> dict[str, Any]:
        found: dict[str, Any] = {} if part.comment is None else {"comment": part.comment}
        if self.maps_columns:
            found["delta.columnMapping.id"] = part.id
            found["delta.columnMapping.physicalName"] = part.physical_name
        if changes := list(self._type_changes(part, "")):
            found["delta.typeChanges"] = changes
        return found

    def _type_changes(self, part: Field, path: str) -> Iterator[Mapping[str, str]]:
        """How the type of a field became what it is, and those of its elements, keys and values below ``path``."""
        kinds = [*self._older_types(part), part.type]
        for before, after in pairwise(kinds):
            change = {"fromType": _plain_type(before), "toType": _plain_type(after)}
            yield {**change, "fieldPath": path} if path else change
        if not is_.is_struct(part.type):
            for child in part.children:
                yield from self._type_changes(child, f"{path}.{child.name}".lstrip("."))

    def _older_types(self, part: Field) -> list[pa.DataType]:
        """The narrower types in which some files have a field that is not nested, oldest first."""
        older = self.files.older_fields.get(part.id, ()) if part.is_leaf else ()
        return list(dict.fromkeys(before.type for before in older if before is not None))

    def _type(self, part: Field) -> Any:
        if is_variant(part.type):
            return "variant"
        if is_.is_struct(part.type):
            return self._struct(part.children)
        if is_.is_map(part.type):
            key, value = part.children
            return {
                "type": "map",
                "keyType": self._type(key),
                "valueType": self._type(value),
                "valueContainsNull": value.nullable,
            }
        if is_.is_list(part.type):
            (element,) = part.children
            return {"type": "array", "elementType": self._type(element), "containsNull": element.nullable}
        return _plain_type(part.type)


def _named_parts(fields: tuple[Field, ...]) -> Iterator[Field]:
    """Columns and fields of structs, which have names of their own; not elements, keys and values."""
    for part in fields:
        yield part
        yield from _named_below(part)


def _named_below(part: Field) -> Iterator[Field]:
    if is_.is_struct(part.type):
        yield from _named_parts(part.children)
    else:
        for child in part.children:
            yield from _named_below(child)


def _plain_type(kind: pa.DataType) -> str:
    if is_.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return _TYPE_NAMES[kind]


def _bounds(statistics: ColumnStatistics) -> list[tuple[Any, Any]]:
    """By block the least and the greatest value as JSON has them; None for days of years that have not four digits."""
    columns = (statistics.min, statistics.max)
    if is_.is_date(statistics.type):
        columns = tuple(_as_text(column) for column in columns)
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


def _as_text(dates: pa.Array) -> pa.Array:
    days = dates.cast(pa.int32())
    is_told = pc.and_(pc.greater_equal(days, _FIRST_DAY), pc.less_equal(days, _LAST_DAY))
    return pc.if_else(is_told, dates, pa.scalar(None, dates.type)).cast(pa.string())
