"""An index on a function is not used where the function means something else by now."""

import pyarrow as pa
import pyarrow.compute as pc

import fuse_index as fuse
from fuse_index.indexes.registry import Host
from fuse_index.plugin import Function, Input, Probe, Reason, hookimpl
from fuse_index.predicate import Column
from fuse_index.pruning.compile import CompiledProbe
from fuse_plugins.bloom import Bloom


def plugin(version, shift):
    class Shifts:
        @hookimpl
        def fuse_index_kinds(self):
            return [Bloom]

        @hookimpl
        def fuse_index_functions(self):
            shifted = Function(
                "shifted", (pa.int64(),), lambda n: pc.add(n, shift), returns=pa.int64(), version=version
            )
            return [shifted]

    return Host([Shifts()])


def test_an_index_on_a_function_of_another_version_is_not_used_until_it_is_rebuilt():
    url = "memory://function-versions"
    table = fuse.create_table(url, "n BIGINT", properties={"block_rows": 2}, host=plugin(1, 1))
    table.create_index("by_shift", "bloom", ["shifted(n)"])
    table.append([{"n": number} for number in range(6)])

    same = fuse.open_table(url, host=plugin(1, 1)).explain("shifted(n) = 4")
    changed = fuse.open_table(url, host=plugin(2, 10))

    assert same.blocks.kept == 1
    [vote] = [vote for vote in changed.explain("shifted(n) = 14").votes if vote.index == "by_shift"]
    assert vote.reason is Reason.OPTION_MISMATCH
    assert vote.detail == "'shifted' means something else since it was built: rebuild the index"
    assert changed.scan("shifted(n) = 14").to_arrow().to_pylist() == [{"n": 4}]
    changed.maintenance.rebuild_index("by_shift")
    assert changed.explain("shifted(n) = 14").blocks.kept == 1


def test_who_leaves_out_more_for_what_it_reads_is_asked_first():
    given = (Input(Column(("n",), pa.int64()), pa.int64()),)
    probes = {
        "unknown": Probe(None, 100.0),
        "few": Probe(None, 90.0, selectivity=0.9),
        "many": Probe(None, 95.0, selectivity=0.01),
    }

    compiled = [CompiledProbe(name, Bloom(), given, probe) for name, probe in probes.items()]

    assert [each.index for each in sorted(compiled, key=lambda each: each.order)] == ["many", "unknown", "few"]
