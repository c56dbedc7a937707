"""VARIANT: a value of any shape in the open binary encoding that Spark, Delta and Iceberg share.

A column of it is an Arrow extension over the struct that Spark has in Arrow: ``value``, and ``metadata``, which lists
the names in it. Knows the layout of the struct, and not what lies in its bytes.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from fuse_storage.errors import SchemaError

VALUE, METADATA = "value", "metadata"
_SPARK_MARK = {b"variant": b"true"}
"""What Spark knows a VARIANT by, on the field of the metadata."""
VARIANT_STORAGE = pa.struct(
    [
        pa.field(VALUE, pa.binary(), nullable=False),
        pa.field(METADATA, pa.binary(), nullable=False, metadata=_SPARK_MARK),
    ]
)
_NAME = "fuse_index.variant"


class VariantType(pa.ExtensionType):  # type: ignore[misc]  # pyarrow has no types
    """The Arrow type of VARIANT columns. Arrow compares and orders none of its values."""

    def __init__(self) -> None:
        super().__init__(VARIANT_STORAGE, _NAME)

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> VariantType:
        return cls()

    def __reduce__(self) -> tuple[type[VariantType], tuple[()]]:
        return VariantType, ()

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, VariantType)

    def __hash__(self) -> int:
        return hash(_NAME)

    def __str__(self) -> str:
        return "variant"


VARIANT = VariantType()
pa.register_extension_type(VARIANT)


def is_variant(data_type: pa.DataType) -> bool:
    """Whether a type is VARIANT."""
    return isinstance(data_type, VariantType)


def is_variant_struct(data_type: pa.DataType) -> bool:
    """Whether a type is a struct of the two binaries that a VARIANT is made of, in any order."""
    if not is_.is_struct(data_type) or {part.name for part in data_type} != {VALUE, METADATA}:
        return False
    return data_type.num_fields == 2 and all(_is_binary(part.type) for part in data_type)


def is_marked_struct(data_type: pa.DataType) -> bool:
    """Whether a type is what Spark has in Arrow for VARIANT."""
    return is_variant_struct(data_type) and (data_type.field(METADATA).metadata or {}).items() >= _SPARK_MARK.items()


def to_variants(values: pa.Array, where: str) -> pa.ExtensionArray:
    """Values as VARIANT: those that are, structs of its two binaries, NULLs. Raises SchemaError naming ``where``."""
    if is_variant(values.type):
        return values
    if is_.is_null(values.type):
        return pa.nulls(len(values), VARIANT)
    check_variant_type(values.type, where)
    mask = values.is_null() if values.null_count else None
    parts = [pc.cast(values.field(name), pa.binary()) for name in (VALUE, METADATA)]
    present = [part if mask is None else part.filter(pc.invert(mask)) for part in parts]
    if any(part.null_count for part in present):
        raise SchemaError(f"column {where!r} is variant, and of some rows one of its two binaries is NULL")
    filled = [pc.fill_null(part, b"") if part.null_count else part for part in parts]
    storage = pa.StructArray.from_arrays(filled, fields=list(VARIANT_STORAGE), mask=mask)
    return pa.ExtensionArray.from_storage(VARIANT, storage)


def check_variant_type(given_type: pa.DataType, where: str) -> None:
    """Raise SchemaError naming ``where`` unless ``to_variants`` takes values of this type."""
    if not (is_variant(given_type) or is_.is_null(given_type) or is_variant_struct(given_type)):
        raise SchemaError(
            f"column {where!r} is variant, and the rows have {given_type}: give JSON text, or a struct of the "
            f"binaries {VALUE!r} and {METADATA!r}"
        )


def _is_binary(data_type: pa.DataType) -> bool:
    return data_type in (pa.binary(), pa.large_binary(), pa.binary_view())
