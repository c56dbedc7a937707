"""Kinds that load, and then do everything wrong that a kind can: raise, answer with the wrong length, hang."""

import time

import numpy as np
import pyarrow as pa

from fuse_index.plugin import NONE, Ballot, IndexKind, Probe, Sidecar, hookimpl


class _Wrong(IndexKind):
    def summary_type(self, inputs, options):
        return pa.int64()

    def build(self, rows, zones, options):
        return Sidecar(1)

    def compile(self, what, inputs, options, context):
        return Probe(None)

    def probe(self, probe, batch):
        return Ballot(np.full(len(batch), NONE, np.uint8))


class RaisesAtBuild(_Wrong):
    name = "raises_at_build"

    def build(self, rows, zones, options):
        raise ValueError("cannot build this")


class WrongLength(_Wrong):
    name = "wrong_length"

    def probe(self, probe, batch):
        return Ballot(np.zeros(len(batch) + 7, np.uint8))


class Hangs(_Wrong):
    name = "hangs"

    def probe(self, probe, batch):
        time.sleep(600)
        return super().probe(probe, batch)


class Lies(_Wrong):
    """Says that no row of any block ever matches."""

    name = "lies"


@hookimpl
def fuse_index_kinds():
    return [RaisesAtBuild, WrongLength, Hangs, Lies]
