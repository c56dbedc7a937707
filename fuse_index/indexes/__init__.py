"""Index kinds, and the indexes of a table: what is installed, what is defined, and how one block is indexed.

In: plugins, a snapshot's definitions, rows of a block. Out: an ``Engine``, ``IndexDefinition``, sidecars, and calls of
a kind that cannot hang or break the caller.
"""
