"""What does an Iceberg table hold in a snapshot, and which rows of its files are deleted?

In: a table's metadata, as PyIceberg has it. Out: columns, live files, and the rows of these that do not count, which
are read where they are asked for.
"""
