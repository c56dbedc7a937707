"""``format("fuse")``: a table as a Python data source, in batches and streams, for reading and writing.

In: options, schemas and Arrow batches, as Spark's Python workers hand them over. Out: Arrow batches, and commits.
"""
