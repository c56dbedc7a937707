"""Functions of Spark, as local conditions and terms have them: the same values, or a refusal by name.

In come terms and Arrow arrays, with a session's context. Out go calls of Spark's result types, and their values; a row
on which Spark raises is NULL in a condition, and an error where a value is stored. No SQL text, no index.
"""
