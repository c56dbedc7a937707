"""Why an index was, or was not, of use: one closed list, shown by explain, the command line and notebooks."""

from enum import StrEnum


class Reason(StrEnum):
    USED = "USED"
    USED_NO_GAIN = "USED_NO_GAIN"
    """The index voted, and removed nothing."""
    NO_INDEX = "NO_INDEX"
    """No index is on the columns of this predicate."""
    LEAF_UNSUPPORTED = "LEAF_UNSUPPORTED"
    """No index understands this form of predicate."""
    TYPE_MISMATCH = "TYPE_MISMATCH"
    """The literal is not exactly a value of the column's type."""
    CAST_ON_COLUMN = "CAST_ON_COLUMN"
    COLLATION = "COLLATION"
    SESSION_SEMANTICS = "SESSION_SEMANTICS"
    """Built under another time zone, ANSI mode or case sensitivity than the query's."""
    OPTION_MISMATCH = "OPTION_MISMATCH"
    TRUNCATED_STATS = "TRUNCATED_STATS"
    BLOCK_NOT_INDEXED = "BLOCK_NOT_INDEXED"
    PAYLOAD_TOO_NEW = "PAYLOAD_TOO_NEW"
    PAYLOAD_MISSING = "PAYLOAD_MISSING"
    CORRUPT = "CORRUPT"
    PLUGIN_ERROR = "PLUGIN_ERROR"
    PLUGIN_MISSING = "PLUGIN_MISSING"
    TIMEOUT = "TIMEOUT"
    DISABLED = "DISABLED"
    NOT_NEEDED = "NOT_NEEDED"
    """Cheaper votes had decided every block before it was asked, or the condition follows from others that were."""
    TOO_MANY_TERMS = "TOO_MANY_TERMS"
    """The condition has so many that asking about each would cost more than it saves."""
    NOT_PUSHED = "NOT_PUSHED"
    """Spark kept this predicate to itself: it never reached the planner."""
    KEYS_AWAITED = "KEYS_AWAITED"
    """A join, whose keys are asked about while the query runs: before, nobody knows them."""


FAULTS = frozenset({Reason.CORRUPT, Reason.PAYLOAD_MISSING, Reason.PLUGIN_ERROR, Reason.TIMEOUT})
"""Something went wrong, and may not the next time."""
