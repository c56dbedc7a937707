"""How is a table changed: rows deleted, updated, merged and overwritten, blocks rewritten, indexes built and verified?

In: an open table (``TableHandle``), conditions, rows. Out: tasks, which run here or in Spark, and commits of what they
wrote. ``rewrite_job`` is the shape of whatever rewrites blocks; ``build_index`` and ``verify_index`` leave rows alone.
"""
