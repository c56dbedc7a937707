"""Brings a kind under the name of a built-in one."""

from fuse_index.plugin import IndexKind, hookimpl


class OtherBloom(IndexKind):
    name = "bloom"


@hookimpl
def fuse_index_kinds():
    return [OtherBloom]
