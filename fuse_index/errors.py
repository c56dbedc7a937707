"""Errors of the engine, for whoever handles them. Those of tables themselves are fuse_storage's StorageError.

FuseIndexError
├── WhereError       also a ValueError: the text of a predicate cannot be understood; says where
├── OpaqueError      also a ValueError: a predicate that only Spark can evaluate was to be evaluated here
├── DefinitionError  also a ValueError: an index cannot be defined, found or built as asked
├── InputError       also a ValueError: what was handed over is not what is taken: rows, a schema, a predicate
├── StreamError      a stream of rows cannot go on from where it was: the message says what to do
├── BuildError       a build could not be finished; what it had done is kept
└── IndexFault       an index did something wrong; only raised in strict mode
"""


class FuseIndexError(Exception):
    """What this library raises; an index that fails is never an error, only a slower query with a reason."""


class WhereError(FuseIndexError, ValueError):
    """The text of a predicate cannot be understood. The message shows the place, and near names."""


class OpaqueError(FuseIndexError, ValueError):
    """Nothing here can evaluate this part of a predicate exactly as Spark does. The message names the part."""


class DefinitionError(FuseIndexError, ValueError):
    """An index cannot be defined, found or built as asked. The message names the index or kind, and what to do."""


class InputError(FuseIndexError, ValueError):
    """What was handed over is not what is taken: rows, a schema, a predicate. The message names it, and what to
    give.
    """


class StreamError(FuseIndexError):
    """Whoever follows a table cannot go on from where it was: rows or columns were changed, or snapshots collected."""


class BuildError(FuseIndexError):
    """A build stopped before its end. What was built is kept: refresh the index to go on."""


class IndexFault(FuseIndexError):
    """An index raised, hung, contradicted others or answered nonsense; raised only in strict mode."""

    def __init__(self, index: str, kind: str, reason: str, detail: str) -> None:
        super().__init__(f"index {index!r} of kind {kind!r}: {reason}: {detail}")
        self.index, self.kind, self.reason, self.detail = index, kind, reason, detail

    def __reduce__(self) -> tuple[type, tuple[str, str, str, str]]:
        return type(self), (self.index, self.kind, self.reason, self.detail)
