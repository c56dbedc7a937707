"""Which rows changed between two snapshots, and what comes after the commit that a reader has seen?

In: two snapshots of a table, or a position in its history. Out: rows with the type of their change, batch by batch.
Rows of blocks that were replaced are compared by hashes, as multisets.
"""
