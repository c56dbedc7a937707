"""Spark's own scan of our tables: a relation whose file index asks Python which blocks a query must read.

In: an open table, then requests of Spark's planner. Out: a DataFrame, then masks of blocks and aggregate states.
"""
