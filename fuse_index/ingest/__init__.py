"""How do rows that people bring become Arrow batches, and a table's columns such that they fit?

In: Arrow streams, DataFrames, dicts, files and folders of others. Out: record batches, and steps that add columns.
Knows no table.
"""
