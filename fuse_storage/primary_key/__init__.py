"""Which rows of a table with a primary key count, where later ones of its tail have the same keys?

In come the segments and the tail of a state. Out come masks of live rows, as of blocks with deletion vectors, so that
whoever leaves those rows out leaves these out. Nothing of it is written.
"""
