"""The index kinds that come with fuse-index, one module or folder each; they enter by the same door as a stranger's."""
