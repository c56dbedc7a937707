"""All functions of Spark that are known here, by their names and their other names; and which is meant by a typo."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from fuse_index.expressions.functions.arrays import COLLECTION_FUNCTIONS
from fuse_index.expressions.functions.date_formats import DATE_FORMAT_FUNCTIONS
from fuse_index.expressions.functions.dates import DATE_FUNCTIONS
from fuse_index.expressions.functions.hashes import HASH_FUNCTIONS
from fuse_index.expressions.functions.intervals import INTERVAL_FUNCTIONS
from fuse_index.expressions.functions.mathematics import MATHEMATICAL_FUNCTIONS
from fuse_index.expressions.functions.numeric import NUMBER_FUNCTIONS
from fuse_index.expressions.functions.patterns import PATTERN_FUNCTIONS
from fuse_index.expressions.functions.signature import SparkFunction
from fuse_index.expressions.functions.text import TEXT_FUNCTIONS

LIBRARY: Mapping[str, SparkFunction] = {
    function.name: function
    for function in (
        *NUMBER_FUNCTIONS,
        *MATHEMATICAL_FUNCTIONS,
        *TEXT_FUNCTIONS,
        *PATTERN_FUNCTIONS,
        *DATE_FUNCTIONS,
        *INTERVAL_FUNCTIONS,
        *DATE_FORMAT_FUNCTIONS,
        *COLLECTION_FUNCTIONS,
        *HASH_FUNCTIONS,
    )
}
OTHER_NAMES: Mapping[str, str] = {
    "signum": "sign",
    "ceiling": "ceil",
    "power": "pow",
    "substr": "substring",
    "trim": "btrim",
    "char": "chr",
    "position": "locate",
    "charindex": "locate",
    "regexp": "rlike",
    "regexp_like": "rlike",
    "date_diff": "datediff",
    "dateadd": "date_add",
    "doy": "dayofyear",
    "week": "weekofyear",
    "to_unix_timestamp": "unix_timestamp",
    "sha": "sha1",
}
UNNAMED = frozenset({"[]", "map_value", "plus_interval", "seconds_with_fraction"})
"""Functions that nobody calls by name: other syntax stands for them."""


def near_names(name: str, others: Iterable[str] = ()) -> list[str]:
    """Names of functions, of these and of others, that look like one that is unknown, the nearest first.

    >>> near_names("substrng")
    ['substring', 'substr']
    """
    known = [*(LIBRARY.keys() - UNNAMED), *OTHER_NAMES, *others]
    return difflib.get_close_matches(name.lower(), sorted(set(known)), n=2, cutoff=0.8)
