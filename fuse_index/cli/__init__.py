"""The command line ``fuse-index``: thin words over the front door of ``fuse_index``; it decides nothing about tables.

In: arguments, files of rows. Out: tables for people or JSON for programs on standard output, and an exit code.
"""
