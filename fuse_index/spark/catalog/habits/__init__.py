"""Which of Spark's statements is meant by one that people know from other lakehouses?

In: the text of a statement. Out: the text of another, or nothing where the table is of somebody else.
"""
