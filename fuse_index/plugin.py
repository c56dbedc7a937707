"""All that the author of an index kind sees."""

from fuse_index.expressions.json import path as json_paths
from fuse_index.expressions.json import reader as json_documents
from fuse_index.indexes.interface import *  # noqa: F403
from fuse_index.indexes.interface import __all__ as _interface

__all__ = [*_interface, "json_documents", "json_paths"]
