"""All that the author of an index kind sees: what to implement, what is handed to it, and helpers."""

from fuse_index.aggregates.sketches import DEFAULT_LG_K
from fuse_index.aggregates.state import Aggregate, Aggregation, Part, state_of
from fuse_index.decode import decompress, expanded_limit, texts_from_lengths
from fuse_index.expressions.conjunction import Conjunction
from fuse_index.expressions.function import Function
from fuse_index.expressions.json import documents as json_documents
from fuse_index.expressions.json import path as json_paths
from fuse_index.expressions.like import LikePattern
from fuse_index.expressions.value_set import Interval, ValueSet
from fuse_index.expressions.variant.columns import variant_documents
from fuse_index.indexes.ballot import ALL, NONE, SOME, Ballot
from fuse_index.indexes.block_batch import BlockBatch, Payload
from fuse_index.indexes.interface import (
    API,
    Answers,
    Approximates,
    Highlights,
    IndexKind,
    Input,
    NoOptions,
    Probe,
    Ranks,
    Refusal,
    Scores,
    Votes,
    hookimpl,
)
from fuse_index.indexes.sandbox import map_concurrently
from fuse_index.reasons import Reason
from fuse_storage import (
    VARIANT,
    ColumnStatistics,
    Corrupt,
    Pack,
    Sidecar,
    extremes,
    prefix_end,
    ranges_to_indices,
    read_untrusted_parquet,
    truncate_bounds,
)

__all__ = [
    "ALL",
    "API",
    "DEFAULT_LG_K",
    "NONE",
    "SOME",
    "VARIANT",
    "Aggregate",
    "Aggregation",
    "Answers",
    "Approximates",
    "Ballot",
    "BlockBatch",
    "ColumnStatistics",
    "Conjunction",
    "Corrupt",
    "Function",
    "Highlights",
    "IndexKind",
    "Input",
    "Interval",
    "LikePattern",
    "NoOptions",
    "Pack",
    "Part",
    "Payload",
    "Probe",
    "Ranks",
    "Reason",
    "Refusal",
    "Scores",
    "Sidecar",
    "ValueSet",
    "Votes",
    "decompress",
    "expanded_limit",
    "extremes",
    "hookimpl",
    "json_documents",
    "json_paths",
    "map_concurrently",
    "prefix_end",
    "ranges_to_indices",
    "read_untrusted_parquet",
    "state_of",
    "texts_from_lengths",
    "truncate_bounds",
    "variant_documents",
]
