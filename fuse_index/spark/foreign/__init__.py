"""Scans of other connectors that ask our indexes: queries of Parquet folders, Delta and Iceberg tables as they are.

In: the place of a source that a query is about to read. Out: the table of ours that votes on its files.
"""
