"""Who keeps tables: worst first under a budget, one lease a table, and an account of what was done.

In: tables with the policies of their namespaces, and limits of a run. Out: what was done, a row for each task. Any
number of processes may do it at once, and whatever fails at one table leaves the others.
"""
