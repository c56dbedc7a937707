"""Which rows did a ranked search find, and how?

In come a search, and the numbers of its rows; out go their values, and the search's account.
"""
