"""Which tables are there, and what are they called?

In: the URL of a warehouse, and names. Out: ``Catalog``, which makes, finds, renames, drops and brings back tables by
their names; each is a ``fuse_index.Table``. Knows nothing of what is in a table.
"""
