"""Names of columns that are none, or that somebody would take for one another."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.types as is_

from fuse_storage.errors import SchemaError
from fuse_storage.schema.nested_arrays import holds_variant
from fuse_storage.schema.schema import Field


def check_names(fields: Sequence[Field], where: str = "the table") -> None:
    """Raise SchemaError if, at any level, a name is empty, or two are one to Spark (but for case) or one in files.

    And for a map whose keys are VARIANT, or have one in them.

    Tables of earlier versions may have such columns, which are read by their exact names.
    """
    names_seen: dict[str, str] = {}
    physical_seen: dict[str, Field] = {}
    for field in fields:
        if not field.name:
            raise SchemaError(f"{where} would have a column without a name, for which nobody could ask: give it one")
        if (other := names_seen.setdefault(field.name.lower(), field.name)) != field.name:
            raise SchemaError(
                f"{where} would have columns {other!r} and {field.name!r}, which differ only in case, so that Spark "
                f"could ask for neither: choose another name"
            )
        if (twin := physical_seen.setdefault(field.physical_name.lower(), field)) is not field:
            twins = f"{twin.name!r} and {field.name!r}"
            raise SchemaError(f"{where} would have columns {twins} under one name in files: rename one")
        if is_.is_map(field.type) and holds_variant(field.type.key_type):
            raise SchemaError(f"map {field.name!r} has a VARIANT in its keys, as no map of Spark's may: take text")
        check_names(field.children, f"{field.name!r}")
