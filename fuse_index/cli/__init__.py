"""The command line ``fuse-index``: thin words over the front door of ``fuse_index``; it decides nothing about
tables.
"""
