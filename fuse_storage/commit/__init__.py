"""How does a change become the next version of the table, whoever else changes it meanwhile?

In come rows and sidecars, which are staged, and actions on the snapshot that they were decided on. Out comes one new
snapshot and one entry of the branch, or a Conflict that names the commit which was in the way.
"""
