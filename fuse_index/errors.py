"""Errors of the engine, for whoever handles them. Those of tables themselves are fuse_storage's StorageError.

FuseIndexError
├── WhereError       also a ValueError: the text of a predicate cannot be understood; says where
├── OpaqueError      also a ValueError: a predicate that only Spark can evaluate was to be evaluated here
├── DefinitionError  also a ValueError: an index cannot be defined, found or built as asked
├── TermError        also a ValueError: the term of an index cannot be stored, or no longer be read: drop it, or upgrade
├── InputError       also a ValueError: what was handed over is not what is taken: rows, a schema, a predicate
│   └── OptionError  an option of ``format("fuse")``; in fuse_index.spark
├── StreamError      a stream of rows cannot go on from where it was: the message says what to do
├── BuildError       a build could not be finished; what it had done is kept
└── IndexFault       an index did something wrong; only raised in strict mode

Those of fuse_index.expressions.errors are for who asks for a value or a meaning, and turns them into one of the above,
with the text and the place, or into a reason why a block is read:

FuseIndexError
├── NotReproducible        also a ValueError: Spark's answer is not surely known here: leave it to Spark
├── UnsupportedExpression  only Spark knows what this means: leave it to Spark; has a ``reason``
├── UnsupportedAggregate   also a ValueError: no index keeps such an aggregate: leave it to Spark, or say so
├── SparkWouldRaise        also an ArithmeticError: an ANSI session raises on these rows: raise, too
├── AnalysisError          also a ValueError: Spark refuses the expression, whatever the rows: refuse it, too
└── MalformedJson          also a ValueError: the document is no JSON to Spark: its value is NULL
"""

from fuse_storage import CodedError


class FuseIndexError(CodedError):
    """The base of what this library raises; an index that fails is no error, only a slower query with a reason."""

    code = "ENGINE_ERROR"


class WhereError(FuseIndexError, ValueError):
    """The text of a predicate cannot be understood. The message shows the place, and near names."""

    code = "INVALID_CONDITION"


class OpaqueError(FuseIndexError, ValueError):
    """Nothing here can evaluate this part of a predicate exactly as Spark does. The message names the part."""

    code = "OPAQUE_CONDITION"


class DefinitionError(FuseIndexError, ValueError):
    """An index cannot be defined, found or built as asked. The message names the index or kind, and what to do."""

    code = "INVALID_INDEX"


class TermError(FuseIndexError, ValueError):
    """A stored term does not fit the table as it is now: a column is gone, or the term is of a newer version."""

    code = "INVALID_TERM"


class InputError(FuseIndexError, ValueError):
    """The caller handed over what is not taken: rows, a schema, a predicate. The message says what to give."""

    code = "INVALID_INPUT"


class StreamError(FuseIndexError):
    """A follower of a table cannot go on from where it was: rows or columns were changed, or snapshots collected."""

    code = "STREAM_BROKEN"


class BuildError(FuseIndexError):
    """A build stopped before its end. What was built is kept: refresh the index to go on."""

    code = "BUILD_STOPPED"


class IndexFault(FuseIndexError):
    """An index raised, hung, contradicted others or answered nonsense; raised only in strict mode."""

    code = "INDEX_FAULT"

    def __init__(self, index: str, kind: str, reason: str, detail: str) -> None:
        super().__init__(f"index {index!r} of kind {kind!r}: {reason}: {detail}")
        self.index, self.kind, self.reason, self.detail = index, kind, reason, detail

    def __reduce__(self) -> tuple[type, tuple[str, str, str, str]]:
        return type(self), (self.index, self.kind, self.reason, self.detail)
