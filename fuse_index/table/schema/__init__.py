"""How do the columns of a table change, with the indexes on them?

In: an open table, and what a column is to be. Out: a commit that rewrites no row.
"""
