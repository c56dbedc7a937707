"""How do rows get into a table at the cost of two writes, and its tail into a snapshot?

In come rows and the state that they were made for. Out comes the state after them, visible to every reader, or a
Conflict.
"""
