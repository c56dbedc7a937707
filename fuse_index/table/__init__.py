"""What does a user hold: a table that is opened, looked at, changed in its columns, branches and indexes?

In: a URL, and arguments as people give them, checked where they come in. Out: ``Table``, one class of the parts that
other rooms bring, and Arrow tables of what there is to see. It decides nothing that another room knows.
"""
