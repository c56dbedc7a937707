"""How are Parquet files read that somebody else wrote, and what of what they say of themselves is believed?

In: the end of a file. Out: a ``Footer`` by which ``parquet.reader`` reads it like a block, what its columns are, and
bounds of its values where these cannot be wrong. What cannot be read exactly is refused by name.
"""
