"""Which blocks, statistics and sidecars belong to a version of the table?

In come bytes of refs, snapshots, segments, sidecars and packs, each verified by a checksum. Out come values that never
change, and frames: many segments, blocks or zones at once, a column at a time.
"""
