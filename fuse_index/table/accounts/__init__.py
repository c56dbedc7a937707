"""What would be read for a question, or for a statement, that is not done?

In comes what the question or the statement takes; out goes an ``Explanation``.
"""
