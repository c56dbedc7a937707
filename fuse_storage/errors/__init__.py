"""Errors of a table, grouped by what a handler will do.

Each class has a ``code`` by which programs know it in any language. Codes are only ever added, and are listed with
SQL's states in docs/errors.md.

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
├── VotesOnly         the rows are read at their source, and this table votes on its files: read the source
└── FormatError       the bytes are not what we write: do not retry
    ├── Corrupt       they were, and are damaged: repair or rebuild
    └── Unsupported   they are of a newer version: upgrade
"""

from __future__ import annotations

from typing import ClassVar

from fuse_storage.errors.sentence import Advice as Advice
from fuse_storage.errors.sentence import Operation as Operation
from fuse_storage.errors.sentence import Sentence as Sentence
from fuse_storage.errors.sentence import TableUrl as TableUrl
from fuse_storage.errors.sentence import Words as Words

RESTORE_HINT = "restore the file from a copy"
"""The end of messages about a damaged file: what is left to do."""
SYNC_HINT = (
    "sync the table if the file was deleted or moved at the source; bring it back if the table was converted since"
)
"""The end of messages about a file of a source that is missing."""

EXTERNAL_ERROR = "EXTERNAL_ERROR"
"""The code of errors that are not ours: of the operating system, of Arrow, of Spark."""


class CodedError(Exception):
    """The base of all errors of ours. What they are raised with is text, or a Sentence.

    ``code``: the kind of error, for programs; a class without one of its own has that of its base.
    """

    code: ClassVar[str]

    @property
    def sentence(self) -> Sentence:
        """The message, with the tables and operations that it names as values."""
        said = self.args[0] if self.args else None
        return said if isinstance(said, Sentence) else Sentence((str(self),))

    @property
    def advice(self) -> tuple[Advice, ...]:
        """Operations, or arguments of some, by which a caller gets further; none where the message has only text."""
        return self.sentence.advice

    def spell(self, words: Words) -> str:
        """The message in the words of a surface."""
        return self.sentence.spell(words)

    def _render_traceback_(self) -> list[str]:
        """What IPython prints in place of a traceback."""
        from fuse_storage.errors.traceback import without_our_frames

        return without_our_frames(self)


class StorageError(CodedError):
    """The base of all errors of fuse_storage; raised as such when a store refuses or fails.

    ``not_permitted``: whether the store answered that the rights of this process do not suffice.
    """

    code = "STORAGE_ERROR"
    not_permitted = False


class NotFound(StorageError, KeyError):
    """No such key, table, branch, tag, snapshot or column; the message names it and where it was looked for."""

    code = "NOT_FOUND"

    __str__ = Exception.__str__  # KeyError would print the message in quotes


class AlreadyExists(StorageError):
    """A key that is written once already holds other bytes, or a name is already taken."""

    code = "ALREADY_EXISTS"


class NotEmpty(StorageError):
    """A namespace that was to be dropped holds something; the message names one of what it holds."""

    code = "NOT_EMPTY"


class Conflict(StorageError):
    """Someone else's commit was read where ours would have gone, and the two do not go together.

    ``winner`` describes that commit; None where it has no entry of its own.
    """

    code = "CONFLICT"

    def __init__(self, message: str | Sentence, winner: str | None = None) -> None:
        super().__init__(message, winner)
        self.message, self.winner = str(message), winner

    def __str__(self) -> str:
        return self.message


class CommitUnknown(StorageError):
    """The store gave no answer to the one write that commits; it may or may not have happened."""

    code = "COMMIT_UNKNOWN"

    def __init__(self, message: str | Sentence, commit_id: str) -> None:
        super().__init__(message, commit_id)
        self.message, self.commit_id = str(message), commit_id

    def __str__(self) -> str:
        return self.message


class Expired(StorageError):
    """More time passed than a writer may take, so what it staged may already have been collected."""

    code = "EXPIRED"


class TailFull(StorageError):
    """More hot rows or commits wait to be tiered than a table may have; the message says how many, and how to tier."""

    code = "TAIL_FULL"


class SchemaError(StorageError, ValueError):
    """A column is missing, unknown, ambiguous or of a type that does not fit; the message names it."""

    code = "SCHEMA_MISMATCH"


class InvalidArgument(StorageError, ValueError):
    """A name, a time or a property that cannot be; the message names it and says what can."""

    code = "INVALID_ARGUMENT"


class RepeatedKey(InvalidArgument):
    """A key comes twice in one commit, where it may come once; the message names it."""

    code = "REPEATED_KEY"


class ReadOnly(StorageError):
    """A handle that was opened to be read only, or at an older state, was asked to change the table."""

    code = "READ_ONLY"


class VotesOnly(StorageError):
    """Rows were asked of a table that votes on the files of its source, and does not know which rows of them count."""

    code = "VOTES_ONLY"


class FormatError(StorageError):
    """Bytes that are not what this library writes."""

    code = "FORMAT_ERROR"


class Corrupt(FormatError):
    """Bytes that fail their checksum, or end too early; the message names the key."""

    code = "CORRUPT"


class Unsupported(FormatError):
    """A newer format version, or a feature that this version does not know; the message names it."""

    code = "UNSUPPORTED"
