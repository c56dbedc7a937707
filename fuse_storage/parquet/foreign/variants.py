"""Columns of a foreign file that are VARIANT, and those of them that can be read: plain ones, and shredded ones.

A file says it by Parquet's logical type, or by the schema that Spark keeps in it; of a table with a log, the log does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as is_

from fuse_storage.errors import SchemaError
from fuse_storage.parquet.column_chunks import PHYSICAL_TYPES
from fuse_storage.parquet.footer import Footer
from fuse_storage.parquet.foreign.shredded import TYPED_VALUE
from fuse_storage.parquet.foreign.thrift_footer import DOT, INT96_TYPE, variant_paths
from fuse_storage.schema.nested import child_fields, nested_type_like
from fuse_storage.schema.nested_arrays import holds_variant
from fuse_storage.schema.types import is_list_type
from fuse_storage.schema.variant import METADATA, VALUE, VARIANT, is_variant, is_variant_struct

WITHOUT_SHREDDING_HINT = (
    "have the source write it without shredding (in Spark spark.sql.variant.writeShredding.enabled=false), and the "
    "files that have it so anew"
)
VariantTypes = Mapping[str, pa.DataType]
"""Types of columns that are VARIANT or have one in them, with the names of a file throughout, by their own."""
NO_VARIANTS: VariantTypes = MappingProxyType({})
_FIELD_ID = b"PARQUET:field_id"
_PLAIN_TYPES = frozenset(
    [
        *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string()),
        *(pa.binary(), pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")),
    ]
)
"""Types of shredded scalars that Spark's reader has, too, besides decimals."""
_TYPES_THAT_SPARK_LACKS = frozenset([pa.time64("us"), pa.timestamp("ns"), pa.timestamp("ns", "UTC"), pa.binary(16)])


def told_variants(footer: Footer, spark_schema: bytes) -> frozenset[str]:
    """The names of columns at the top that a file says are VARIANT. ``spark_schema``: JSON, or nothing."""
    found = {path[0].replace(DOT, ".") for path in variant_paths(footer.schema_bytes) if len(path) == 1}
    try:
        fields = json.loads(spark_schema or b"{}").get("fields", [])
        found |= {str(field["name"]) for field in fields if field["type"] == "variant"}
    except (ValueError, LookupError, TypeError, AttributeError):  # of nobody's making: what it says is not needed
        pass
    return frozenset(found)


def variant_problem(column: pa.Field, leaves: Sequence[pq.ColumnSchema]) -> str | None:
    """Why a column of a file, or a part of one, cannot be read as VARIANT, if it cannot.

    ``column``: as Arrow reads it; ``leaves``: its Parquet columns.
    """
    kind = column.type
    if not is_.is_struct(kind) or kind.get_field_index(METADATA) < 0:
        return f"is a VARIANT, and is held as {kind}"
    if is_variant_struct(kind):
        return None
    if not is_.is_binary(kind.field(METADATA).type):
        return f"is a VARIANT whose metadata is {kind.field(METADATA).type}"
    others = [leaf for part, inner in _with_leaves(kind, leaves) if part.name != METADATA for leaf in inner]
    parts = pa.struct([part for part in kind if part.name != METADATA])
    odd = next(_odd_parts(parts, "", iter(others)), None)
    return None if odd is None else f"is a VARIANT shredded in a way that no specification has: {odd}"


def leaves_of(name: str, footer: Footer) -> list[pq.ColumnSchema]:
    """The Parquet columns of a column at the top of a file."""
    path = name.replace(".", DOT)
    paths = [form.path.decode() for form in footer.forms]
    numbers = [each for each, found in enumerate(paths) if found == path or found.startswith(f"{path}.")]
    return [footer.metadata.schema.column(each) for each in numbers]


def _with_leaves(
    kind: pa.DataType, leaves: Sequence[pq.ColumnSchema]
) -> Iterator[tuple[pa.Field, Sequence[pq.ColumnSchema]]]:
    """The parts of a nested type, each with its Parquet columns."""
    start = 0
    for part in child_fields(kind):
        end = start + _leaf_count(part.type)
        yield part, leaves[start:end]
        start = end


def _leaf_count(kind: pa.DataType) -> int:
    return sum(_leaf_count(part.type) for part in child_fields(kind)) if is_.is_nested(kind) else 1


def _variants_within(
    found: pa.Field, wanted: pa.DataType, leaves: Sequence[pq.ColumnSchema], above: str = ""
) -> Iterator[tuple[str, pa.Field, Sequence[pq.ColumnSchema]]]:
    """What of a column is VARIANT in the type ``wanted``: paths, as Arrow reads it, and its Parquet columns."""
    path = above + found.name
    if is_variant(wanted):
        yield path, found, leaves
    elif _is_around_variants(found.type, wanted):
        pairs = zip(_with_leaves(found.type, leaves), _wanted_parts(found.type, wanted), strict=True)
        for (part, inner), kind in pairs:
            yield from _variants_within(part, kind, inner, f"{path}.")


def is_only_ours(column: pa.Field, wanted: pa.DataType, footer: Footer, where: str) -> bool:
    """Whether Spark's reader is not asked for a column of a file, of type ``wanted`` in the table.

    A VARIANT in it is shredded; or the file says VARIANT where the table has the struct of binaries, as which Spark
    does not read it. Raises SchemaError for a VARIANT that cannot be read.
    """
    if not holds_variant(wanted):
        return any(path[0].replace(DOT, ".") == column.name for path in variant_paths(footer.schema_bytes))
    parts = list(_variants_within(column, wanted, leaves_of(column.name, footer)))
    for path, part, leaves in parts:
        if problem := variant_problem(part, leaves):
            raise SchemaError(f"{where}: {path!r} {problem}; {WITHOUT_SHREDDING_HINT}")
    return any(not is_variant_struct(part.type) for _, part, _ in parts)


def type_with_variants(found: pa.DataType, wanted: pa.DataType) -> pa.DataType:
    """The type of a column of a file, with VARIANT where ``wanted`` has it."""
    if is_variant(wanted):
        return VARIANT
    if not _is_around_variants(found, wanted):
        return found
    pairs = zip(child_fields(found), _wanted_parts(found, wanted), strict=True)
    return nested_type_like(found, [part.with_type(type_with_variants(part.type, kind)) for part, kind in pairs])


def _is_around_variants(found: pa.DataType, wanted: pa.DataType) -> bool:
    alike = (test(found) and test(wanted) for test in (is_.is_struct, is_.is_map, is_list_type))
    return holds_variant(wanted) and any(alike)


def _wanted_parts(found: pa.DataType, wanted: pa.DataType) -> list[pa.DataType]:
    """The types wanted of the parts of a type of a file, in their order."""
    if not is_.is_struct(found):
        return [part.type for part in child_fields(wanted)]
    known = {part.name: part.type for part in wanted}
    return [known.get(part.name, part.type) for part in found]


def is_beyond_spark(kind: pa.DataType) -> bool:
    """Whether a VARIANT of a file is shredded into a type that Spark's reader lacks."""
    if is_.is_nested(kind):
        return any(is_beyond_spark(kind.field(number).type) for number in range(kind.num_fields))
    return _storage_type(kind) in _TYPES_THAT_SPARK_LACKS


def _storage_type(kind: pa.DataType) -> pa.DataType:
    """The type that Arrow holds values in, which is another one of UUIDs."""
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _odd_parts(group: pa.DataType, path: str, leaves: Iterator[pq.ColumnSchema]) -> Iterator[str]:
    """What of a group is not as the specification has it. ``leaves``: its Parquet columns, each of which is taken."""
    if not is_.is_struct(group) or not {part.name for part in group} <= {VALUE, TYPED_VALUE} or not group.num_fields:
        yield f"{path or 'it'} is {group}"
        return
    if twice := {part.name for part in group if group.get_all_field_indices(part.name)[1:]}:
        yield f"{path or 'it'} has two columns {min(twice)!r}"
        return
    for part in group:
        where = f"{path}.{part.name}".lstrip(".")
        if _FIELD_ID in (part.metadata or {}):
            yield f"{where} has a field id"
        if part.name == VALUE:
            next(leaves)
            if not is_.is_binary(part.type):
                yield f"{where} is {part.type}"
        else:
            yield from _odd_types(part.type, where, leaves)


def _odd_types(kind: pa.DataType, path: str, leaves: Iterator[pq.ColumnSchema]) -> Iterator[str]:
    if is_list_type(kind):
        yield from _odd_parts(kind.value_type, f"{path}[]", leaves)
    elif is_.is_struct(kind):
        names = [part.name for part in kind]
        if len(set(names)) < len(names):
            yield f"{path} has two columns of one name"
            return
        for part in kind:
            if _FIELD_ID in (part.metadata or {}):
                yield f"{path}.{part.name} has a field id"
            yield from _odd_parts(part.type, f"{path}.{part.name}", leaves)
    elif is_.is_nested(kind):
        yield f"{path} is {kind}"
    else:
        column, kind = next(leaves), _storage_type(kind)
        is_known = kind in _PLAIN_TYPES or kind in _TYPES_THAT_SPARK_LACKS or is_.is_decimal128(kind)
        if not is_known or not _is_as_specified(kind, column):
            yield f"{path} is {kind} ({column.physical_type}, {column.logical_type})"


def _is_as_specified(kind: pa.DataType, column: pq.ColumnSchema) -> bool:
    """Whether Parquet's types of a scalar are those that Arrow's type of it stands for, and no other ones."""
    logical = json.loads(column.logical_type.to_json())
    if column.physical_type == PHYSICAL_TYPES[INT96_TYPE]:
        return False
    if kind == pa.binary(16):
        return bool(logical["Type"] == "UUID")
    if is_.is_string(kind) or is_.is_binary(kind):
        return logical["Type"] in ("String", "None")
    return not (is_.is_time(kind) and logical["isAdjustedToUTC"])
