"""Queries: which rows match, which are best, and what do they add up to?

In come a snapshot and a request: a condition, a search text, or aggregates by group, each with an ``Engine``.
Out go Arrow tables, from as few blocks as indexes and statistics allow, and an explanation of what was read.
"""
