"""SQL: the conditions, terms, aggregates and columns that people type, and the trees that Spark's planner sends.

In come text, or JSON of a Catalyst tree, with a schema and a session's context.
Out go predicates and terms; what only Spark understands is Opaque, what nobody does raises WhereError with the place.
"""
