"""What does a Delta table hold at a version, and which rows of its files are deleted?

In: where its log is. Out: columns, live files, and the rows of these that do not count, which are read where they are
asked for.
"""
