"""JSON documents as Spark has them, for authors of index kinds: text to a tree, and a tree to text."""

from fuse_index.expressions.errors import MalformedJson, NotReproducible
from fuse_index.expressions.json.reader import Float, Members, plain, read_json
from fuse_index.expressions.json.writer import double_text, is_plain, write_json

__all__ = [
    "Float",
    "MalformedJson",
    "Members",
    "NotReproducible",
    "double_text",
    "is_plain",
    "plain",
    "read_json",
    "write_json",
]
