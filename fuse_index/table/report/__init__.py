"""What does a person see of a table on a page: its columns, indexes, blocks, commits, and what a condition skips?

In: a table, and what was asked of it. Out: HTML without script, of bounded length, for a file or for ``fuse-index ui``.
"""
