"""Indexes of tables that somebody else's connector reads: made, used and let go of in a session.

In: a session, and a Parquet folder, Delta or Iceberg table by its place or name. Out: queries of it that skip files.
"""
