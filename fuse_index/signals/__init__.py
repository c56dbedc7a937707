"""Who hears what happens: plans, commits, builds, faults, upkeep?

In come events, which are made only where somebody listens; out go calls of listeners, lines of log, counters, spans.
Knows no table and no index kind.
"""
