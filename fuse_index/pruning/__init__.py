"""Which blocks and zones a predicate has to read, and why not fewer.

In: a snapshot, a normalised predicate, an ``Engine``. Out: a ``ScanPlan`` with its ``Explanation``. Begin at
``planner``; kinds are asked in ``probe``, NULLs are added in ``nulls``, AND, OR and NOT are decided in ``combine``.
"""
