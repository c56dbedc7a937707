"""Misspells its hook."""

from fuse_index.plugin import hookimpl


@hookimpl
def fuse_index_kind():
    return []
