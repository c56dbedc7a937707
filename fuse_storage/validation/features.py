"""What a snapshot may need of whoever reads or writes it: the format, its version and features, by their names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fuse_storage.errors import FormatError, Unsupported
from fuse_storage.schema.nested_arrays import holds_variant
from fuse_storage.schema.schema import Schema
from fuse_storage.schema.variant import is_variant
from fuse_storage.store.shared_files import SHARED_FILES_FEATURE
from fuse_storage.validation.json_members import FormatMembers

FORMAT_NAME = "fuse-index table"
FORMAT_VERSION = 1
HOT_FEATURE = "hot"
"""The reader feature of snapshots that are followed through their chains."""
FOREIGN_FILES_FEATURE = "foreign-files"
"""The reader feature of tables whose blocks are files that somebody else wrote."""
PAGE_ZONES_FEATURE = "page-zones"
"""The reader feature of tables of whose foreign files zones may be parts of row groups."""
VOTES_ONLY_FEATURE = "votes-only"
"""The reader feature of attached tables of whose files only the source knows how, and which, rows are read."""
DELETION_VECTORS_FEATURE = "deletion-vectors"
"""The reader feature of tables in which rows of some blocks no longer count."""
VARIANT_FEATURE = "variant"
"""The reader feature of tables with a VARIANT column."""
NESTED_VARIANT_FEATURE = "nested-variant"
"""The reader feature of tables with a column that has a VARIANT in it: a struct, an array or a map."""
READER_FEATURES: frozenset[str] = frozenset(
    [
        SHARED_FILES_FEATURE,
        FOREIGN_FILES_FEATURE,
        PAGE_ZONES_FEATURE,
        VOTES_ONLY_FEATURE,
        HOT_FEATURE,
        DELETION_VECTORS_FEATURE,
        VARIANT_FEATURE,
        NESTED_VARIANT_FEATURE,
    ]
)
"""Features of later format versions that this version reads."""
PARTITIONS_FEATURE = "partitions"
"""The writer feature of tables in which no block of a segment mixes values of some columns."""
PRIMARY_KEY_FEATURE = "primary-key"
"""The writer feature of tables that have at most one row for each key."""
WRITE_DEFAULTS_FEATURE = "write-defaults"
"""The writer feature of tables in which rows that come without a column hold another value than files without it."""
WRITER_FEATURES: frozenset[str] = frozenset([PARTITIONS_FEATURE, PRIMARY_KEY_FEATURE, WRITE_DEFAULTS_FEATURE])
"""Features that this version keeps intact when it writes."""


def schema_features(schemas: Mapping[int, Schema]) -> set[str]:
    """The reader features that the columns of a snapshot ask for, now and by its older schemas."""
    tops = [field.type for schema in schemas.values() for field in schema.fields if field.children]
    found = {VARIANT_FEATURE} if any(map(is_variant, tops)) else set()
    is_nested = any(holds_variant(kind) for kind in tops if not is_variant(kind))
    return found | ({NESTED_VARIANT_FEATURE} if is_nested else set())


def schema_writer_features(schemas: Mapping[int, Schema]) -> set[str]:
    """The writer features that the columns of a snapshot ask for, now and by its older schemas."""
    has_two = any(field.has_two_defaults for schema in schemas.values() for field in schema.fields)
    return {WRITE_DEFAULTS_FEATURE} if has_two else set()


def check_readable(members: FormatMembers) -> None:
    """Raise Unsupported for what is newer than this version, FormatError for what is no snapshot."""
    if members.format != FORMAT_NAME:
        raise FormatError(f"it is of format {members.format!r}, not {FORMAT_NAME!r}")
    if members.format_version > FORMAT_VERSION:
        version = members.format_version
        raise Unsupported(
            f"it is of format version {version}, and this version knows {FORMAT_VERSION}: upgrade fuse-index to read it"
        )
    if unknown := sorted(set(members.reader_features) - READER_FEATURES):
        raise Unsupported(
            f"reading this table needs {_feature_list(unknown)}, unknown to this version: upgrade fuse-index"
        )


def check_writer_features(features: Iterable[str]) -> None:
    """Raise Unsupported if a write by this version could break what a newer one relies on."""
    if unknown := sorted(set(features) - WRITER_FEATURES):
        raise Unsupported(
            f"writing to this table needs {_feature_list(unknown)}, unknown to this version: it is "
            f"read-only until you upgrade"
        )


def _feature_list(features: Iterable[str]) -> str:
    return ", ".join(f"feature {name!r}" for name in features)
