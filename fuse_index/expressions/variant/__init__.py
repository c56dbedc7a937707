"""What is in a VARIANT, and how is one made?

In: the two binaries of a value, JSON text, values of Python. Out: values of Python, JSON text as Spark writes it, the
binaries.
"""
