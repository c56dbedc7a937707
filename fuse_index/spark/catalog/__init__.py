"""Tables by name in Spark SQL: what a session's catalogue is asked, and what Python answers.

In: statements, as requests of ``FuseCatalog.java``. Out: tables to read, commits.
"""
