"""What is there to see of a table's metadata?

In: an open table. Out: Arrow tables of its commits, segments, blocks, columns, indexes and refs, by ``table.inspect``.
No row is read, and nothing is written.
"""
