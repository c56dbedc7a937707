"""Errors of the engine, for whoever handles them.

FuseIndexError
├── WhereError      also a ValueError: the text of a predicate cannot be understood; says where
└── OpaqueError     also a ValueError: a predicate that only Spark can evaluate was to be evaluated here
"""


class FuseIndexError(Exception):
    """What this library raises; an index that fails is never an error, only a slower query with a reason."""


class WhereError(FuseIndexError, ValueError):
    """The text of a predicate cannot be understood. The message shows the place, and near names."""


class OpaqueError(FuseIndexError, ValueError):
    """Nothing here can evaluate this part of a predicate exactly as Spark does. The message names the part."""
