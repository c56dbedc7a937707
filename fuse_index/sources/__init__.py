"""How are tables of other formats attached, and how does a table of ours follow them?

In: where a Parquet folder, a Delta or an Iceberg table is. Out: a table whose blocks are its files, and the commit that
takes it to another version. One module knows one format; rows are read by what reads any block.
"""
