"""How do other engines read a snapshot without us?

In: a table at a snapshot. Out: metadata of other formats beside ours, over the same Parquet files. Knows no index.
"""
