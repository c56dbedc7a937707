"""How do rows come by the second, and how do they get from the tail into indexed blocks?

In come few rows, or a table with a tail. Out come states: with one more hot commit, or with the tail in blocks of full
size, sorted and indexed.
"""
