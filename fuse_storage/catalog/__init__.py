"""Which tables does a warehouse have, under which names, and who wins when two change one name at once?

In: a store, and names of namespaces and tables. Out: the state of a warehouse, its log, and one entry more in it for
each change. Knows no rows: a table is a folder of its own, or one that was there before.
"""
