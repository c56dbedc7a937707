"""Was written for an interface that is yet to come."""

from fuse_index.plugin import IndexKind, hookimpl


class FromTheFuture(IndexKind):
    name = "from_the_future"
    api = 99


@hookimpl
def fuse_index_kinds():
    return [FromTheFuture]
