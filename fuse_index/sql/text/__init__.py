"""The Spark SQL that people type: a general parser's trees, read as predicates, terms and aggregates.

In come tokens with a schema and a session's context; out go what they mean, or the place of what they do not.
"""
