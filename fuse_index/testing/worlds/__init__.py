"""Which rows, blocks and questions is a kind tried on, and how is it shown them?

In comes a type, or a kind on some inputs; out go rows, leaves, and blocks that are indexed in memory.
"""
