"""Which blocks and zones a predicate has to read, and why not fewer.

In: a snapshot, a normalised predicate, an ``Engine``. Out: a ``ScanPlan`` with its ``Explanation``. Begin at
``planner``; kinds are asked in ``probe`` and ``payload_probe``, within ``calls``. NULLs are added in ``nulls``, and
``combine`` decides AND, OR and NOT.
"""
