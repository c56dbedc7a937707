"""The files of a snapshot, packed for the JVM: one array of bytes, since each py4j call costs milliseconds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from fuse_index.expressions.types import spark_type_name
from fuse_storage import Field


def pack_file_listing(paths: Sequence[str], sizes: npt.NDArray[np.int64], seals: npt.NDArray[np.int64]) -> bytes:
    """Pack the files of a snapshot as ``FileListing.java`` reads them, in the order of its blocks.

    ``paths``: n names that Hadoop opens. ``sizes``: their bytes, int64, shape (n,). ``seals``: the checksums in their
    seals, by which they are known, int64, shape (n,); 0 where that is not known.
    """
    if not paths:
        return bytes(8)
    first, last = min(paths), max(paths)
    prefix_length = next(
        (i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last))
    )
    prefix = first[:prefix_length].encode()
    names = [path[prefix_length:].encode() for path in paths]
    ends = np.cumsum([len(name) for name in names])
    counts = np.array([len(paths), len(prefix)])
    return b"".join(
        [
            counts.astype(">i4").tobytes(),
            prefix,
            sizes.astype(">i8").tobytes(),
            seals.astype(">i8").tobytes(),
            ends.astype(">i4").tobytes(),
            *names,
        ]
    )


def sql_default(field: Field) -> str:
    """The default of a column as a SQL constant of its type, whatever the session's time zone and ANSI mode."""
    value = field.default_scalar.as_py()
    return f"CAST({_constant(value)} AS {spark_type_name(field.type)})"


def _constant(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int() | Decimal():
            return f"'{value}'"
        case float():
            return f"'{value!r}'"  # Spark reads "nan" and "inf" too
        case bytes():
            return f"X'{value.hex()}'"
        case datetime():
            return f"'{value.isoformat(' ')}'"  # with its offset where the type is an instant
        case str():
            return f"X'{value.encode().hex()}'"  # quotes and backslashes mean different things to different sessions
        case _:  # a date
            return f"'{value.isoformat()}'"
