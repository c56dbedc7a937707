"""Words that Python and the JVM spell alike, and the limits that both keep to.

``java/rpc/Protocol.java`` has the same names and values, and a test holds the two together.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

from fuse_index.operations.merge_match import MAX_KEYS_IN_PREDICATE
from fuse_index.sql.call_markers import CALL_CONDITION, CALL_MARK_PREFIX, CALL_VALUE, VALUE_MARK_PREFIX

MAX_KEYS: Final = MAX_KEYS_IN_PREDICATE
"""Keys of a join or a MERGE beyond which nobody asks about them one by one: nearly every block has one of so many."""

DOUBTFUL_SECONDS: Final = 30
"""So long an answer is remembered that may be better later: a fault has spoiled it, or there was no time."""

LATE_ROWS: Final = "the driver had not read them within %d ms"
"""Why executors read rows after all, whichever side notices."""

CALL_MARK: Final = CALL_MARK_PREFIX + "{"
"""How the mark of a call of a plugin's function begins."""

VALUE_MARK: Final = VALUE_MARK_PREFIX + "{"
"""How the mark of a function begins that is no condition."""

CONDITION: Final = CALL_CONDITION
"""What such a mark calls a condition on the function's value, for which it then stands."""

VALUE: Final = CALL_VALUE
"""The column that is the value in this condition."""

ARGUMENT: Final = "fuse_argument_"
"""What stands for an argument, by its number, in the text that Python writes for such a call.

It needs no back-quotes: a name in these is a pattern where ``spark.sql.parser.quotedRegexColumnNames`` is set.
"""

UDF: Final = "fuse_udf"
"""What stands for the call of a Python UDF there."""


class Change(StrEnum):
    """What a statement does to the rows of a table."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    OVERWRITE_PARTITIONS = "overwrite partitions"
    """The partitions that rows come for."""
    TRUNCATE = "truncate"
    DELETE = "delete"
    UPDATE = "update"
    MERGE = "merge"
    INSERT_UNMATCHED = "insert unmatched"
    """The inserts of a MERGE that does nothing else."""


def tag_of(class_name: str) -> str:
    """The tag of a question or request: the words of its class.

    >>> tag_of("ReadRows"), tag_of("CreateIndexRequest")
    ('read rows', 'create index')
    """
    return re.sub(r"(?<=.)(?=[A-Z])", " ", class_name.removesuffix("Request")).lower()
