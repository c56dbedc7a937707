"""What is done to a whole table: branches, clones, differences, recovery, vacuum, checks.

In comes a table, or the store that it is or was in. Out comes a table, a report of what was done or would be, or an
AssertionError that says which invariant does not hold.
"""
