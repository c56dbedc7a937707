"""bloom by itself: the hash, the filter, the matrix, what is kept, what is read."""

from fuse_index.testing import IndexTests
from fuse_plugins.bloom import Bloom


class TestBloom(IndexTests):
    index = Bloom
