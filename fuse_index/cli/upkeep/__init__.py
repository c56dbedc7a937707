"""Which commands keep tables by themselves?

In: warehouses and tables, and limits. Out: a line for each task, and an exit code that says whether anything failed.
"""
