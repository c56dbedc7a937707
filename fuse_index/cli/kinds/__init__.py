"""Which plugins are there, what can they do, and how does one begin to write one?

In comes the name of a kind, or of a plugin to be. Out goes what an author or an operator wants to know of it, or a
folder with a distribution whose tests pass.
"""
