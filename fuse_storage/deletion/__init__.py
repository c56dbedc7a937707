"""Which rows of a block no longer count?

In come blocks whose rows name a deletion vector, or rows that are to go. Out come masks of live rows, each vector
verified, and staged segments of the same files with other vectors. What is damaged is refused: these are rows.
"""
