"""What did a question, or a statement, cost and leave out, stage by stage?

In come counts of a plan as it is made; out go values that an ``Explanation`` has beside its votes. Knows no table.
"""
