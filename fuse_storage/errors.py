"""Errors of a table, grouped by what a handler will do.

StorageError          something about the store itself: permission, network, disk
├── NotFound          also a KeyError: the name is wrong, or the thing was collected
├── AlreadyExists     the key holds other bytes: choose another key
├── NotEmpty          a namespace holds tables or namespaces: drop these first
├── Conflict          someone else's change came first and matters to ours: reload and decide again
├── CommitUnknown     no answer came: ask ``table.was_committed(commit_id)`` before trying again
├── Expired           this writer took longer than it may: begin again
├── TailFull          too many hot rows wait to be tiered: tier, and try again
├── SchemaError       also a ValueError: the rows or the change do not fit the columns
├── InvalidArgument   also a ValueError: a name, a time or a property that cannot be: give another
│   └── RepeatedKey   rows of one commit have a key twice: say which counts
├── ReadOnly          a handle that only reads was asked to change the table: open it otherwise
└── FormatError       the bytes are not what we write: do not retry
    ├── Corrupt       they were, and are damaged: repair or rebuild
    └── Unsupported   they are of a newer version: upgrade
"""

from __future__ import annotations

RESTORE_HINT = "restore the file from a copy"
"""The end of messages about a damaged file: what is left to do."""
SYNC_HINT = (
    "sync the table if the file was deleted or moved at the source; bring it back if the table was converted since"
)
"""The end of messages about a file of a source that is missing."""


class StorageError(Exception):
    """The base of all errors of fuse_storage; raised as such when a store refuses or fails."""


class NotFound(StorageError, KeyError):
    """No such key, table, branch, tag, snapshot or column; the message names it and where it was looked for."""

    __str__ = Exception.__str__  # KeyError would print the message in quotes


class AlreadyExists(StorageError):
    """A key that is written once already holds other bytes, or a name is already taken."""


class NotEmpty(StorageError):
    """A namespace that was to be dropped holds something; the message names one of what it holds."""


class Conflict(StorageError):
    """Someone else's commit was read where ours would have gone, and the two do not go together.

    ``winner`` describes that commit; None where it has no entry of its own.
    """

    def __init__(self, message: str, winner: str | None = None) -> None:
        super().__init__(message, winner)
        self.message, self.winner = message, winner

    def __str__(self) -> str:
        return self.message


class CommitUnknown(StorageError):
    """The store gave no answer to the one write that commits; it may or may not have happened."""

    def __init__(self, message: str, commit_id: str) -> None:
        super().__init__(message, commit_id)
        self.message, self.commit_id = message, commit_id

    def __str__(self) -> str:
        return self.message


class Expired(StorageError):
    """More time passed than a writer may take, so what it staged may already have been collected."""


class TailFull(StorageError):
    """More hot rows or commits wait to be tiered than a table may have; the message says how many, and how to tier."""


class SchemaError(StorageError, ValueError):
    """A column is missing, unknown, ambiguous or of a type that does not fit; the message names it."""


class InvalidArgument(StorageError, ValueError):
    """A name, a time or a property that cannot be; the message names it and says what can."""


class RepeatedKey(InvalidArgument):
    """A key comes twice in one commit, where it may come once; the message names it."""


class ReadOnly(StorageError):
    """A handle that was opened to be read only, or at an older state, was asked to change the table."""


class FormatError(StorageError):
    """Bytes that are not what this library writes."""


class Corrupt(FormatError):
    """Bytes that fail their checksum, or end too early; the message names the key."""


class Unsupported(FormatError):
    """A newer format version, or a feature that this version does not know; the message names it."""
