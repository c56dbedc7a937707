"""Strangers' kinds that load, and then do everything wrong that a kind can: queries go on, and say why they were not
faster.
"""

import pytest

from tests.index import strangers

QUERY = """
import json, sys
import pyarrow as pa
import fuse_index as fuse
from fuse_index.indexes.engine import Engine
from fuse_index.pruning.planner import plan_scan
from fuse_index.sql.parse import parse_predicate

kind, url = sys.argv[1:]
table = fuse.create_table(url, "n BIGINT", properties={"block_rows": 10})
table.create_index("x", kind, ["n"])
table.append(pa.table({"n": [(n * 7) % 40 for n in range(40)]}))
made = plan_scan(table.stored, parse_predicate("n = 11", table.snapshot.schema), Engine(table.host), budget=0.5)
(vote,) = (vote for vote in made.explanation.votes if vote.index == "x")
print(json.dumps({"rows": int(made.blocks.row_counts.sum()), "reason": vote.reason, "detail": vote.detail,
                  "indexed": table.inspect.indexes().column("blocks_indexed")[0].as_py(),
                  "sound": None if kind == "hangs" else table.maintenance.verify_index("x").sound}))
"""


@pytest.mark.parametrize(
    ("kind", "indexed", "reason", "detail", "sound"),
    [
        ("raises_at_build", 0, "BLOCK_NOT_INDEXED", "cannot build this", False),
        ("wrong_length", 4, "PLUGIN_ERROR", "probe() gave", False),
        ("hangs", 4, "TIMEOUT", "no vote within", None),
    ],
)
def test_a_kind_that_does_wrong_makes_a_query_slower_with_a_reason(tmp_path, kind, indexed, reason, detail, sound):
    found = strangers.run(QUERY, strangers.BROKEN, arguments=(kind, str(tmp_path / "t")))

    assert (found["indexed"], found["reason"], found["sound"]) == (indexed, reason, sound)
    assert detail in found["detail"]
    assert found["rows"] == 40


def test_a_failing_build_is_warned_of_with_the_distribution(tmp_path):
    found = strangers.run(QUERY, strangers.BROKEN, arguments=("raises_at_build", str(tmp_path / "t")))

    assert (
        "index 'x' (kind 'raises_at_build' of broken-kinds 1.0) failed in build() on a block of 10 rows"
        in found["stderr"]
    )
    assert "ValueError: cannot build this" in found["stderr"]


def test_a_kind_that_lies_is_found_out_by_verifying(tmp_path):
    found = strangers.run(QUERY, strangers.BROKEN, arguments=("lies", str(tmp_path / "t")))

    assert found["sound"] is False
