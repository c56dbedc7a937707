"""How does what was asked look to a person, in a notebook and on a page?

In: masks and rows, as they are. Out: HTML and SVG of bounded length, without script. Knows no table and no index.
"""
