"""What is wrong with an index is said by the sentence of its kind, and what is advised helps."""

import warnings
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest

import fuse_index as fuse
from fuse_index.errors import IndexFault
from fuse_index.indexes.registry import Host, PluginWarning
from fuse_index.plugin import SOME, Ballot, Sidecar
from fuse_index.reasons import Reason
from fuse_index.signals.build_failures import BUILD_FAILURES, failure_of
from fuse_plugins import min_max
from tests.index.pruning.test_planner import Kind


class BuildRaises(Kind):
    def build(self, rows, zones, options):
        raise RuntimeError("no build today")


class BuildRaisesOnLarge(Kind):
    def build(self, rows, zones, options):
        if rows.column(0)[0].as_py() > 15:
            raise RuntimeError("too large today")
        return Sidecar(None)


class PackRaises(Kind):
    def pack(self, sidecars):
        raise RuntimeError("no pack today")


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


def indexed(kind: type, place: str = "") -> fuse.Table:
    url = place or f"memory://remedies-{uuid4().hex}"
    table = fuse.create_table(url, "n BIGINT", properties={"block_rows": 10}, host=Host([min_max, kind]))
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


FAILS = [(BuildRaises, "no build today", 4), (BuildRaisesOnLarge, "too large", 2), (PackRaises, "no pack today", 4)]


@pytest.mark.parametrize(("kind", "sentence", "lacking"), FAILS)
@pytest.mark.parametrize("forgets", [False, True], ids=["here", "in another process"])
def test_an_index_that_lacks_blocks_says_at_what_its_kind_failed(
    kind: type, sentence: str, lacking: int, forgets: bool
) -> None:
    table = indexed(kind)
    with pytest.warns(PluginWarning):
        done = table.maintenance.run().to_pylist()
    if forgets:
        BUILD_FAILURES.forget(table.inspect.indexes().column("key")[0].as_py())

    problem = table.inspect.indexes().column("problem")[0].as_py()
    due = table.inspect.due().to_pylist()
    (vote,) = (vote for vote in table.explain("n = 3 OR n = 36").votes if vote.index == "x" and vote.leaf == "n = 3")

    assert problem.startswith(f"PLUGIN_ERROR: {lacking} of 4 blocks are not indexed: its kind failed in ")
    assert sentence in problem
    assert sentence in vote.detail
    assert sentence in done[0]["problem"]
    assert [(task["task"], task["index"], sentence in task["why"]) for task in due] == [("repair", "x", True)]
    assert not [text for text in (problem, vote.detail, str(due)) if "refresh" in text]
    assert sentence in str(table.maintenance.verify_index("x"))


def test_a_failure_is_on_record_once_and_gone_once_its_kind_is_repaired(tmp_path: Path) -> None:
    table = indexed(BuildRaisesOnLarge, str(tmp_path / "t"))
    version = table.version
    with pytest.warns(PluginWarning):
        table.maintenance.refresh_index("x")
    assert table.version <= version + 1  # sidecars may be attached once more; the record is not made anew

    repaired = fuse.open_table(str(tmp_path / "t"), host=Host([min_max, KeepsNothing]))
    repaired.maintenance.refresh_index("x")
    repaired.append({"n": [99]}, hot=False)

    assert repaired.inspect.indexes().column("problem").to_pylist() == [None]
    assert table.snapshot.definitions["x"]["key"] not in str(BUILD_FAILURES._said)
    assert failure_of(repaired.stored, table.snapshot.definitions["x"]["key"]) is None


def test_a_build_in_processes_tells_at_what_it_failed(tmp_path: Path) -> None:
    table = indexed(BuildRaises, str(tmp_path / "t"))
    key = table.inspect.indexes().column("key")[0].as_py()
    BUILD_FAILURES.forget(key)

    with pytest.warns(PluginWarning):
        table.maintenance.refresh_index("x", processes=2)

    assert "no build today" in (BUILD_FAILURES.find(key) or "")


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
