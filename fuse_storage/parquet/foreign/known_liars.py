"""Writers whose statistics are wrong, by version: which of them are not believed, and who found it.

A footer says who wrote it (``created_by``). Each rule is about columns that the writer took from Arrow's dictionaries
(pandas' categories, Polars' Categorical and Enum) or, one of them, about decimals:

===========================  ==========================  =======================================================
writer                       not believed                source
===========================  ==========================  =======================================================
parquet-cpp(-arrow) < 11     bounds and null counts,     apache/arrow#15042: those of the first chunk alone; before
                             of dictionaries             5 a null count of 0 (ARROW-12513, apache/arrow#28254)
arrow2, Polars               null counts,                jorgecarleitao/arrow2#1414: those of the dictionary's
                             of dictionaries             values; pola-rs/polars#29140: of rows that were sliced off
ClickHouse < 25.8            bounds of decimals          ClickHouse/ClickHouse#83754: compared without their sign
===========================  ==========================  =======================================================

arrow2 and Polars say no version, so that all of theirs are meant. Other known errors need no rule, because what they
are about is believed of nobody: bounds of INT96 (PARQUET-1065) and floats (PARQUET-1222), the deprecated ``min`` and
``max`` of text (PARQUET-251, parquet-mr before 1.8), distinct counts, and bounds in page indexes.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.types as is_

_CREATED_BY = re.compile(r"\s*(?P<name>.*?)(?:\s+version\s+v?|\s+v|\s*$)(?P<version>[0-9]+(?:\.[0-9]+)*)?")
_ARROW_CPP, _UNVERSIONED, _CLICKHOUSE = ("parquet-cpp", "parquet-cpp-arrow"), ("arrow2", "polars"), "clickhouse"


@dataclass(frozen=True)
class Writer:
    """Who wrote a file. ``name``: in small letters. ``version``: none where it says none that can be read.

    ``arrow_schema``: the Arrow schema that it kept in the footer, in Base64; empty if it kept none.
    """

    name: str
    version: tuple[int, ...]
    arrow_schema: bytes = b""

    @staticmethod
    def parse(created_by: str, arrow_schema: bytes = b"") -> Writer:
        """Read ``created_by``, such as ``parquet-cpp-arrow version 10.0.1`` or ``ClickHouse v25.6.1``.

        >>> Writer.parse("parquet-cpp version 1.5.1-SNAPSHOT").version
        (1, 5, 1)
        >>> Writer.parse("Arrow2 - Native Rust implementation of Arrow").name
        'arrow2'
        """
        found = _CREATED_BY.match(created_by)
        name, version = (found["name"], found["version"]) if found is not None else (created_by, None)
        return Writer(
            name.split(" - ")[0].strip().lower(),
            tuple(int(part) for part in version.split(".")) if version else (),
            arrow_schema,
        )

    def has_true_bounds(self, path: tuple[str, ...], has_dictionary: bool, is_decimal: bool) -> bool:
        """Whether the bounds of a column's chunks may be believed.

        ``path``: its names from the top. ``has_dictionary``: its pages hold numbers of distinct values.
        """
        if self.name in _ARROW_CPP and self.version < (11,):
            return not (has_dictionary and self._may_be_dictionary(path))
        return not (self.name == _CLICKHOUSE and self.version < (25, 8) and is_decimal)

    def has_true_null_counts(self, path: tuple[str, ...], has_dictionary: bool) -> bool:
        """Whether the null counts of a column's chunks may be believed. Parameters as of ``has_true_bounds``."""
        if self.name in _UNVERSIONED or (self.name in _ARROW_CPP and self.version < (11,)):
            return not (has_dictionary and self._may_be_dictionary(path))
        return True

    def _may_be_dictionary(self, path: tuple[str, ...]) -> bool:
        """Whether the column came from Arrow's dictionaries, or may have, as nothing tells."""
        return self._dictionary_columns is None or path[0] in self._dictionary_columns

    @cached_property
    def _dictionary_columns(self) -> frozenset[str] | None:
        """The top-level columns that hold dictionaries in the Arrow schema; None where there is none to be read."""
        try:
            schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(self.arrow_schema, validate=True)))
        except (pa.ArrowException, ValueError, OSError):
            return None
        return frozenset(field.name for field in schema if _holds_dictionary(field.type))


def _holds_dictionary(data_type: pa.DataType) -> bool:
    if is_.is_dictionary(data_type):
        return True
    return any(_holds_dictionary(data_type.field(number).type) for number in range(data_type.num_fields))
