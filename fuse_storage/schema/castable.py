"""Values that Arrow casts, of such as it does not: dictionaries over views, as Polars has categories, and runs."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_


def castable_type(kind: pa.DataType) -> pa.DataType:
    """A type with the same values of which Arrow has casts: it has none of runs, and of dictionaries over views."""
    if is_.is_run_end_encoded(kind):
        return _without_views(kind.value_type)
    if is_.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _without_views(kind.value_type), kind.ordered)
    return kind


def to_castable(values: pa.Array) -> pa.Array:
    """Cast values to the type that ``castable_type`` gives for theirs."""
    if is_.is_run_end_encoded(values.type):
        told = pc.cast(values.values, _without_views(values.type.value_type))
        runs = pa.RunEndEncodedArray.from_arrays(values.run_ends, told)
        return pc.run_end_decode(runs.slice(values.offset, len(values)))
    if not is_.is_dictionary(values.type):
        return values
    dictionary = pc.cast(values.dictionary, _without_views(values.type.value_type))
    return pa.DictionaryArray.from_arrays(values.indices, dictionary, ordered=values.type.ordered)


def _without_views(kind: pa.DataType) -> pa.DataType:
    return {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}.get(kind, kind)
