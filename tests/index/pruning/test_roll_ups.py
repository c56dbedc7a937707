"""What is known of whole segments rules out no block that it does not know, whoever made it, and of whatever blocks."""

import warnings
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest

import fuse_index as fuse
from fuse_index.indexes.registry import Host, PluginWarning
from fuse_index.plugin import NONE, SOME, Ballot, IndexKind, Probe, Reason, Refusal, Sidecar
from fuse_plugins import bloom
from fuse_storage.metadata import segment_list
from fuse_storage.metadata.segment_list import sidecar_columns

FAILS, SILENT = 13, 17
"""Values of whose blocks the kind makes no sidecar, and no summary."""


class Greatest(IndexKind):
    """The greatest value of a block; of a segment, the greatest that it is told of, as of kinds that pass over NULL."""

    name = "greatest"
    sign = 1

    def summary_type(self, inputs, options):
        return pa.int64()

    def build(self, rows, zones, options):
        values = rows.column(0).to_pylist()
        if FAILS in values:
            raise ValueError("no such luck")
        return Sidecar(None if SILENT in values else self.sign * max(values))

    def roll_up(self, summaries):
        known = [self.sign * one for one in summaries.to_pylist() if one is not None]
        return pa.scalar(self.sign * max(known), pa.int64()) if known else None

    def compile(self, what, inputs, options, context):
        return Probe(what.right.value) if what.operator == ">" else Refusal(Reason.LEAF_UNSUPPORTED, "only >")

    def probe(self, probe, batch):
        votes = [SOME if one is None or self.sign * one > probe.what else NONE for one in batch.summaries.to_pylist()]
        return Ballot(np.array(votes, np.uint8))


class Negated(Greatest):
    """The next version of it, which keeps another number and reads no older one."""

    writes, reads, sign = 2, frozenset({2}), -1


class Both(Greatest):
    """A version that keeps the same number and reads the older one, too."""

    writes, reads = 2, frozenset({1, 2})


class Picky(Negated):
    """It would fail on what an older version kept."""

    def probe(self, probe, batch):
        if any(one is not None and one > 0 for one in batch.summaries.to_pylist()):
            raise ValueError("what is this?")
        return super().probe(probe, batch)


def host(*kinds):
    # without min_max, whose statistics would tell the truth whatever is rolled up
    return Host([bloom, *kinds])


def table_of(blocks):
    """A table of one segment, of a block for each (kind, value); of None nobody indexed the block."""
    table = fuse.create_table(
        f"memory://roll-ups-{uuid4().hex}", "n BIGINT", properties={"block_rows": 1}, host=host(Greatest)
    )
    table.create_index("x", "greatest", ["n"])
    for kind, value in blocks:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PluginWarning)
            opened_with(table, *([kind] if kind else [])).append(pa.table({"n": [value]}))
    table = opened_with(table, blocks[-1][0] or Greatest)
    table.maintenance.compact()
    return table


def opened_with(table, *kinds):
    return fuse.open_table(table.stored.store.url, host=host(*kinds))


def vote(table, where="n > 10"):
    return next(found for found in table.explain(where).votes if found.index == "x")


STATES = [(Greatest, 5), (Greatest, 20), (Negated, 20), (Greatest, FAILS), (Greatest, SILENT), (None, 20)]


@pytest.mark.parametrize("last", STATES)
def test_no_reader_loses_a_row_to_what_is_known_of_a_segment(last):
    for first in STATES:
        blocks = [first, last]
        table = table_of(blocks)

        for reader in (Greatest, Negated, Both if Negated not in [kind for kind, _ in blocks] else Negated):
            found = opened_with(table, reader).scan("n > 10").to_arrow().column("n").to_pylist()

            assert found == [value for _, value in blocks if value > 10], (blocks, reader)


def test_one_segment_is_what_these_tests_are_about():
    assert len(table_of(STATES[:3]).stored.segments()) == 1


def test_what_another_version_made_is_passed_over_with_the_reason():
    table = table_of([(Greatest, 1), (Greatest, 2)])

    old, new = vote(opened_with(table, Greatest)), vote(opened_with(table, Picky))

    assert (old.reason, old.blocks_removed) == (Reason.USED, 2)
    assert (new.reason, new.blocks_removed) == (Reason.PAYLOAD_TOO_NEW, 0)
    assert "payload version" in new.detail


def test_a_version_that_reads_the_older_one_skips_segments_by_it():
    table = opened_with(table_of([(Greatest, 1), (Greatest, 2)]), Both)

    assert table.explain("n > 10").segments.kept == 0
    assert vote(table).reason is Reason.USED


def test_a_kind_is_not_shown_what_it_cannot_read():
    table = opened_with(table_of([(Greatest, 20), (Picky, 1)]), Picky)

    assert table.explain("n > 10").blocks.kept == 1
    assert vote(table).reason is Reason.PAYLOAD_TOO_NEW


@pytest.mark.parametrize("blocks", [2, 3])
def test_a_refresh_makes_roll_ups_that_do_not_say_of_which_version_they_are(monkeypatch, blocks):
    with monkeypatch.context() as patch:  # a list as those wrote it who kept no versions of roll-ups
        patch.setattr(segment_list, "sidecar_columns", lambda key: sidecar_columns(key)[:-1])
        table = table_of([(Greatest, number) for number in range(blocks)])
    assert (table.explain("n > 10").segments.kept, vote(table).reason) == (0, Reason.BLOCK_NOT_INDEXED)
    assert vote(table).blocks_removed == blocks

    table.maintenance.refresh_index("x")

    assert vote(table).reason is Reason.USED
    assert table.explain("n > 10").segments.kept == 0
    before = table.snapshot.id
    assert table.maintenance.refresh_index("x").id == before
