"""Rankings of rows: searches, and orders by a function of a plugin, answered by indexes that rank.

In: a snapshot, a query and a limit. Out: rows with their scores, the search's account, or the zones of a plan that hold
the first rows.
"""
