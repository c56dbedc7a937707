"""Aggregates: what can be kept of a block's rows and added up later to Spark's own answer.

In come an ``Aggregation`` and the values of its terms, or states of blocks.
Out go states, merged states and answers, as Arrow tables.
"""
