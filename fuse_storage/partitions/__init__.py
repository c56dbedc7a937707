"""Which rows share a block of the base where a table is partitioned, and does each block that comes keep to it?

In: the columns that a snapshot is partitioned by, rows on their way into blocks, and staged segments. Out: rows one
partition at a time, the text by which metadata knows a partition, and a refusal of what mixes them.
"""
