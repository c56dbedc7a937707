"""Expressions: what a condition or a term means, exactly as Spark has it.

In come predicates and terms (``fuse_index.predicate``), a session's context and Arrow rows; no index, no statistics.
Out go values on each row, normal forms that indexes like, sets of possible values, and the same as SQL or JSON.
"""
