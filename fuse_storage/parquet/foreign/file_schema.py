"""The columns of a foreign file, and whether Spark's reader and ours can read them as a table's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as is_

from fuse_storage.errors import SchemaError, Unsupported
from fuse_storage.parquet.footer import Footer
from fuse_storage.parquet.foreign import variants as variant_forms
from fuse_storage.parquet.foreign.thrift_footer import DOT, INT96_TYPE
from fuse_storage.parquet.foreign.variants import NO_VARIANTS, VariantTypes
from fuse_storage.parquet.page_subset import forge_file
from fuse_storage.schema import types
from fuse_storage.schema.nested import nested_type_like
from fuse_storage.schema.schema import Field, Schema
from fuse_storage.schema.variant import VARIANT, is_variant, is_variant_struct

TypeWidening = Callable[[pa.DataType, pa.DataType], bool]
"""Whether readers widen values of the one type to the other."""


def read_file_schema(footer: Footer) -> pa.Schema:
    """The columns of a file as Arrow reads them, under the names of the file, or those that ``footer`` was given."""
    with pq.ParquetFile(
        pa.BufferReader(forge_file(footer.schema_bytes, footer.forms, [])), coerce_int96_timestamp_unit="us"
    ) as parquet:
        found: pa.Schema = parquet.schema_arrow
    return pa.schema([_with_dots(each) for each in found]) if DOT.encode() in footer.schema_bytes else found


def _with_dots(field: pa.Field) -> pa.Field:
    """A column as the file calls it, and what is in it."""
    kind, name = field.type, field.name.replace(DOT, ".")
    if is_.is_struct(kind):
        kind = pa.struct([_with_dots(part) for part in kind])
    elif is_.is_map(kind):
        kind = pa.map_(_with_dots(kind.key_field), _with_dots(kind.item_field))
    elif types.is_list_type(kind):
        kind = pa.list_(_with_dots(kind.value_field))
    return pa.field(name, kind, field.nullable)


@dataclass(frozen=True, slots=True)
class FileColumns:
    """The columns of a file, in the types in which a table holds them.

    ``refused``: why not each other one, by its name. ``nulls``: names of columns that have no type, and NULL in every
    row. ``converted``: names of columns that readers here convert, and Spark's does not read; ``shredded``: of VARIANTs
    that lie in parts.
    """

    schema: pa.Schema
    refused: Mapping[str, str]
    nulls: frozenset[str] = frozenset()
    converted: frozenset[str] = frozenset()
    shredded: frozenset[str] = frozenset()


def file_columns(
    found: pa.Schema,
    footer: Footer,
    where: str,
    votes_only: bool = False,
    variants: VariantTypes = NO_VARIANTS,
) -> FileColumns:
    """The columns of a file that a table can hold. ``found``: as Arrow reads them.

    ``votes_only``: those that can be voted on; none of two that differ only in case is among them, since readers may
    take the one for the other. ``variants``: types of columns that are VARIANT or have one in them. Raises SchemaError,
    naming the file, for two columns of one name.
    """
    if not votes_only and (twice := _twice(found)):
        raise SchemaError(f"{where} has two columns {twice[0]}: rename one")
    int96 = {form.path.decode().replace(DOT, ".") for form in footer.forms if form.physical_type == INT96_TYPE}
    shredded = set[str]()
    kept, refused, twins = list[pa.Field](), dict[str, str](), _twins(found) if votes_only else set()
    nulls = {each.name for each in found if is_.is_null(each.type)}
    converted = set() if votes_only else {each.name for each in found if _is_nanoseconds(each, int96)}
    for each in found:
        if each.name in nulls:
            continue
        if is_variant(variants.get(each.name)):
            if problem := variant_forms.variant_problem(each, variant_forms.leaves_of(each.name, footer)):
                refused[each.name] = f"{where}: column {each.name!r} {problem}; {variant_forms.WITHOUT_SHREDDING_HINT}"
                continue
            kept.append(pa.field(each.name, VARIANT))
            converted |= {each.name} if variant_forms.is_beyond_spark(each.type) else set()
            shredded |= set() if is_variant_struct(each.type) else {each.name}
            continue
        try:
            if votes_only and (each.name.lower() in twins or _has_twins(each.type)):
                raise SchemaError(f"column {each.name!r} or parts of it have names that differ only in case")
            if each.name in converted:
                kept.append(each.with_type(types.to_storage_type(each.type, each.name)))
            else:
                wanted = variants.get(each.name, each.type)
                converted |= {each.name} if variant_forms.is_only_ours(each, wanted, footer, where) else set()
                typed = each.with_type(variant_forms.type_with_variants(each.type, wanted))
                kept.append(_stored_field(typed, (), int96, where))
        except (SchemaError, Unsupported) as refusal:
            refused[each.name] = str(refusal)
    return FileColumns(pa.schema(kept), refused, frozenset(nulls), frozenset(converted), frozenset(shredded))


def _is_nanoseconds(column: pa.Field, int96: Container[str]) -> bool:
    return bool(is_.is_timestamp(column.type) and column.type.unit == "ns" and column.name not in int96)


def _twins(fields: Iterable[pa.Field]) -> set[str]:
    return {name for name, count in Counter(each.name.lower() for each in fields).items() if count > 1}


def _has_twins(kind: pa.DataType) -> bool:
    if not is_.is_nested(kind):
        return False
    parts = [kind.field(number) for number in range(kind.num_fields)]
    return bool(is_.is_struct(kind) and _twins(parts)) or any(_has_twins(part.type) for part in parts)


def _twice(fields: Iterable[pa.Field]) -> list[str]:
    return [name for name, count in Counter(each.name for each in fields).items() if count > 1]


def _stored_field(field: pa.Field, above: tuple[str, ...], int96: set[str], where: str) -> pa.Field:
    path = ".".join((*above, field.name))
    if above and "." in field.name:
        raise SchemaError(
            f"{where} has a part of a column with a dot in its name, {path!r}, which could be a path: rename it"
        )
    kind = field.type
    if is_.is_struct(kind):
        if twice := _twice(kind):
            raise SchemaError(f"{where} has two fields {path}.{twice[0]}: rename one")
        parts = [_stored_field(part, (*above, field.name), int96, where) for part in kind]
        return pa.field(field.name, pa.struct(parts))
    if is_.is_map(kind):
        parts = [_stored_field(part, (*above, field.name), int96, where) for part in (kind.key_field, kind.item_field)]
        return pa.field(field.name, pa.map_(parts[0].type, parts[1].type))
    if types.is_list_type(kind):
        part = _stored_field(kind.value_field, (*above, field.name), int96, where)
        return pa.field(field.name, pa.list_(part.with_name("element")))
    if any(leaf == path or leaf.startswith(f"{path}.") for leaf in int96):
        kind = types.SPARK_TYPES_BY_NAME["timestamp"]
    _check_leaf(kind, path, where)
    return pa.field(field.name, types.to_storage_type(kind, path))


def _check_leaf(kind: pa.DataType, path: str, where: str) -> None:
    if is_.is_timestamp(kind) and kind.unit == "ns":
        raise Unsupported(
            f"{where}: column {path!r} has times in nanoseconds in a part of it: write it in microseconds (in pyarrow, "
            f"coerce_timestamps='us')"
        )
    if is_.is_time(kind):
        raise Unsupported(
            f"{where}: column {path!r} is of type {kind}, and times of day are not read: write them as text, or as "
            f"whole numbers"
        )
    if is_.is_float16(kind) or is_.is_decimal256(kind) or is_.is_null(kind):
        raise Unsupported(f"{where}: column {path!r} is of type {kind}, which Spark does not read: rewrite the file")


def narrower_columns(found: pa.Schema, schema: Schema, widens: TypeWidening, where: str) -> set[int]:
    """The ids of columns that the file, whose columns are ``found``, has in a narrower type than the table.

    Raises SchemaError if a column of it cannot be read as the table's of that physical name.
    """
    narrower: set[int] = set()
    fields = {field.physical_name: field for field in schema.fields}
    lower = {name.lower(): name for name in fields}
    for each in found:
        if (field := fields.get(each.name)) is not None:
            narrower |= set(_narrower_parts(each.type, field, widens, where))
        elif (other := lower.get(each.name.lower())) is not None:
            raise SchemaError(
                f"{where} has a column {each.name!r}, and the table {other!r}: they differ only in case, so that Spark "
                f"could ask for neither; rename one"
            )
    return narrower


def _narrower_parts(found: pa.DataType, field: Field, widens: TypeWidening, where: str) -> Iterator[int]:
    if is_variant(found) and is_variant(field.type):
        return
    is_wider = field.is_leaf and not is_.is_nested(found) and (found == field.type or widens(found, field.type))
    if not (is_wider or (field.children and types.storage_type_name(found) == types.storage_type_name(field.type))):
        raise SchemaError(f"{where} has column {field.name!r} as {found}, and the table as {field.type}")
    if field.is_leaf:
        yield from () if found == field.type else (field.id,)
        return
    if is_.is_struct(found):
        names = {part.name.lower(): part.name for part in found}
        for child in field.children:
            other = names.get(child.physical_name.lower())
            if other is not None and found.get_field_index(child.physical_name) < 0:
                raise SchemaError(
                    f"{where} has a field {field.name}.{other}, and the table {field.name}.{child.physical_name}: they "
                    f"differ only in case, so that Spark could ask for neither; rename one"
                )
            if (index := found.get_field_index(child.physical_name)) >= 0:
                yield from _narrower_parts(found.field(index).type, child, widens, where)
    elif is_.is_map(found):
        for part, child in zip((found.key_type, found.item_type), field.children, strict=True):
            yield from _narrower_parts(part, child, widens, where)
    else:
        yield from _narrower_parts(found.value_type, field.children[0], widens, where)


def unread_names(found: pa.Schema, schema: Schema) -> set[str]:
    """The dotted paths of what the file has and the table does not ask for."""
    known = {path for field in schema.fields for path in _physical_paths(field, "")}
    found_paths = {path for field in found for path in _file_paths(field, "")}
    return {path.replace(DOT, ".") for path in found_paths - known}


def _physical_paths(field: Field, above: str) -> Iterator[str]:
    path = above + field.physical_name.replace(".", DOT)
    yield path
    for child in field.children:
        yield from _physical_paths(child, f"{path}.")


def _file_paths(field: pa.Field, above: str) -> Iterator[str]:
    path = above + field.name.replace(".", DOT)
    yield path
    kind, below = field.type, f"{path}."
    if is_.is_struct(kind):
        parts = list(kind)
    elif is_.is_map(kind):
        parts = [kind.key_field.with_name("key"), kind.item_field.with_name("value")]
    else:
        parts = [kind.value_field] if types.is_list_type(kind) else []
    for part in parts:
        yield from _file_paths(part, below)


def merge_file_schemas(found: Mapping[str, pa.Schema], widens: TypeWidening) -> pa.Schema:
    """The columns of all files, by the names of these: the union, each in the widest type.

    Raises SchemaError, naming two files, for a column that they have in types none of which holds the other's values.
    """
    merged: dict[str, pa.Field] = {}
    origin: dict[str, str] = {}
    seen: set[pa.Schema] = set()
    for where, schema in found.items():
        if schema in seen:
            continue
        seen.add(schema)
        for field in schema:
            if (other := merged.get(field.name)) is None:
                merged[field.name], origin[field.name] = field, where
                continue
            kind = _merged_type(other.type, field.type, widens)
            if kind is None:
                raise SchemaError(
                    f"column {field.name!r} is {other.type} in {origin[field.name]} and {field.type} in {where}: a "
                    f"folder with two schemas is no table; put those of one into a folder of their own, or rewrite them"
                    f"{_hint(other.type, field.type)}"
                )
            merged[field.name] = field.with_type(kind)
    return pa.schema(list(merged.values()))


def _hint(*kinds: pa.DataType) -> str:
    return "; widen=True makes both doubles" if set(kinds) == {pa.int64(), pa.float64()} else ""


def _merged_type(one: pa.DataType, other: pa.DataType, widens: TypeWidening) -> pa.DataType | None:
    if one == other or widens(other, one):
        return one
    if widens(one, other):
        return other
    if not (is_.is_nested(one) and is_.is_nested(other)):
        return None
    if types.storage_type_name(one) != types.storage_type_name(other):
        return None
    if is_.is_struct(one):
        parts = {part.name: part for part in one}
        for part in other:
            known = parts.get(part.name, part)
            if (kind := _merged_type(known.type, part.type, widens)) is None:
                return None
            parts[part.name] = known.with_type(kind)
        return pa.struct(list(parts.values()))
    pairs = (
        [(one.key_type, other.key_type), (one.item_type, other.item_type)]
        if is_.is_map(one)
        else [(one.value_type, other.value_type)]
    )
    kinds = [_merged_type(left, right, widens) for left, right in pairs]
    if any(kind is None for kind in kinds):
        return None
    names = ["key", "value"] if is_.is_map(one) else ["element"]
    return nested_type_like(one, [pa.field(name, kind) for name, kind in zip(names, kinds, strict=True)])
