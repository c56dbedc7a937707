"""What does a table need, in which order and at what price, and who does a step of it?

In: a state of a table, the kinds that are installed, and a policy. Out: tasks that are due, of metadata alone; and one
step of one of them, which is one commit or a few. Knows no other table, no budget, and not how rows are tiered.
"""
