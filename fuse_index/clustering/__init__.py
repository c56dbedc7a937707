"""How are rows kept together, and how well does it hold: keys, curves, sorted writing, the depth of overlapping blocks?

In: rows, or the bounds of blocks. Out: orders of rows, sorted blocks, a report, and groups of blocks that are worth
sorting together. Sorting them is an operation: ``operations/recluster``.
"""
