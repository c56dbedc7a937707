"""What do append, delete, update, merge, overwrite and upsert do to a table's rows, with a primary key and without?

In: an open table (``TableHandle``), conditions, rows. Out: where the statement's one commit left the table. ``mixin``
and ``by_key`` say once what each statement promises, ``heap_rows`` and ``keyed_rows`` how it is kept.
"""
