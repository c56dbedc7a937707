"""Worlds are drawn from a fixed seed, so that a run today is a run tomorrow; ``--hypothesis-profile=explore`` draws
others.
"""

from hypothesis import settings

# how long a case takes says more of the machine than of the code
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", derandomize=False, deadline=None, print_blob=True)
settings.load_profile("repeatable")
