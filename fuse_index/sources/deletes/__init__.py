"""Rows of a source that a table leaves out: which they are, and how little must be read to know it.

In: a state of a source, and what a table knows of an earlier one. Out: masks of the files whose deleted rows are others
than they were.
"""
