"""What is wrong with an index is said by the sentence of its kind, and what is advised helps."""

import warnings
from uuid import uuid4

import numpy as np
import pytest

import fuse_index as fuse
from fuse_index.errors import IndexFault
from fuse_index.indexes.registry import Host
from fuse_index.plugin import SOME, Ballot, Sidecar
from fuse_index.reasons import Reason
from fuse_plugins import min_max
from tests.index.pruning.test_planner import Kind


class BuildRaises(Kind):
    def build(self, rows, zones, options):
        raise RuntimeError("no build today")


class CompileRaises(Kind):
    def compile(self, what, inputs, options, context):
        raise RuntimeError("no compile today")


class ProbeRaises(Kind):
    def probe(self, probe, batch):
        raise RuntimeError("no probe today")


class KeepsNothing(Kind):
    def build(self, rows, zones, options):
        return Sidecar(None)

    def probe(self, probe, batch):
        return Ballot(np.full(len(batch), SOME, np.uint8))


def indexed(kind: type) -> fuse.Table:
    table = fuse.create_table(
        f"memory://remedies-{uuid4().hex}", "n BIGINT", properties={"block_rows": 10}, host=Host([min_max, kind])
    )
    table.append({"n": [number * 7 % 40 for number in range(40)]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table.create_index("x", "own", ["n"])
    return table


@pytest.mark.parametrize(("kind", "verb"), [(BuildRaises, "build"), (CompileRaises, "compile"), (ProbeRaises, "probe")])
def test_a_kind_that_raises_is_named_with_its_sentence_and_nobody_is_to_refresh_it(kind: type, verb: str) -> None:
    table = indexed(kind)

    (vote,) = (vote for vote in table.explain("n = 3").votes if vote.index == "x")
    verification = table.maintenance.verify_index("x")

    assert f"no {verb} today" in vote.detail
    assert not verification.sound
    assert f"its kind fails in {verb}()" in str(verification)
    assert f"no {verb} today" in str(verification)
    assert "refresh" not in vote.detail + str(verification)
    assert table.count("n = 3") == 1


@pytest.mark.parametrize("kind", [CompileRaises, ProbeRaises])
def test_strict_queries_raise_whatever_an_index_does_wrong(kind: type) -> None:
    with pytest.raises(IndexFault, match="today"):
        indexed(kind).scan("n = 3", strict=True)


def test_blocks_of_which_a_kind_keeps_nothing_count_as_indexed() -> None:
    table = indexed(KeepsNothing)

    (vote,) = (vote for vote in table.explain("n = 3").votes if vote.index == "x")

    assert (vote.reason, vote.detail) == (Reason.USED_NO_GAIN, "its kind keeps nothing of 2 of 2 blocks")
    assert table.inspect.indexes().to_pylist()[0]["blocks_indexed"] == 4
    assert table.inspect.due().num_rows == 0


def test_a_repaired_kind_is_refreshed_as_ever() -> None:
    table = indexed(BuildRaises)
    repaired = fuse.open_table(table.stored.store.url, host=Host([min_max, KeepsNothing]))

    repaired.maintenance.refresh_index("x")

    (vote,) = (vote for vote in repaired.explain("n = 3").votes if vote.index == "x")
    assert vote.reason is Reason.USED_NO_GAIN
