"""Which rows came after a snapshot without one of their own, and what does the branch do next?

In come a snapshot and the files of its chain, each verified. Out come states that are snapshots with a tail, the rows
of metadata of their hot blocks, and at most one entry that ends the chain.
"""
