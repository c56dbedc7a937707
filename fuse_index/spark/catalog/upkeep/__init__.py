"""How is a table kept, as Spark's procedures?

In: calls. Out: their rows.
"""
