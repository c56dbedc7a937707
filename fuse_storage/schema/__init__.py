"""Which columns does a table have, of which types, and do these rows fit them?

In: an Arrow schema, names, rows. Out: fields with ids that are never reused, Spark's names of types, the rows in the
table's types; or a SchemaError that names the column.
"""
