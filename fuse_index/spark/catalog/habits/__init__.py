"""Statements that people know from other lakehouses: which of Spark's own is meant?

In: the text of a statement. Out: the text of another, or nothing where the table is of somebody else.
"""
