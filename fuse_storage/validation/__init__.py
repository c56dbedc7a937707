"""Can what a file says be so, before anything is made of it?

In: JSON, columns, Parquet's footers, as somebody wrote them whose checksums are right. Out: the same, with the types
and within the bounds that the format gives, or a ValueError that says what cannot be.
"""
