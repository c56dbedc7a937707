"""What does an operator type to learn why something was slow, or what would help?

In come words of the command line; out go accounts as text or JSON. Knows no index kind.
"""
