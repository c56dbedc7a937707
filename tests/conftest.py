"""Worlds are drawn from a fixed seed, so that a run today is a run tomorrow; ``--hypothesis-profile=explore`` draws others."""

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True)
settings.register_profile("explore", derandomize=False, print_blob=True)
settings.load_profile("repeatable")
