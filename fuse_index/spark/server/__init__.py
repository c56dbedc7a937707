"""Servers of Spark's for clients that never installed us: Spark Connect, and HiveServer2's protocol for JDBC.

In: a classic session, and where its tables are. Out: servers whose sessions each have our catalogues and scans.
"""
