"""Is an index called at all, within which time, and in which form does it answer?

In comes a call of a kind's method; out goes its answer in a form that the engine takes, or what went wrong.
"""
