"""Operations on tables that run as Spark jobs: rows changed, blocks rewritten, indexes built, clustered writes.

In: a session, a URL and what ``fuse_index.Table`` takes. Out: commits, and views of a table's metadata.
"""
