import pyarrow as pa
import pytest
from fuse_index_trigram import Trigram, trigrams

import fuse_index as fuse
from fuse_index.testing import IndexTests

LOG = [
    "081109 203615 148 INFO dfs.DataNode: PacketResponder 1 for block blk_38865049064139660 terminating",
    "081109 203807 222 INFO dfs.DataNode: PacketResponder 0 for block blk_-6952295868487656571 terminating",
    "081109 204005 35 INFO dfs.FSNamesystem: BLOCK* NameSystem.addStoredBlock: blockMap updated",
    "081109 204106 329 WARN dfs.DataNode: Got exception while serving blk_-2918118818249673980",
    "081109 204132 26 INFO dfs.FSNamesystem: BLOCK* NameSystem.allocateBlock: /user/root/rand/_temporary",
    "081109 204324 34 ERROR dfs.DataNode: Slow größer als erwartet, timeout nach 60 s",
]


class TestTrigram(IndexTests):
    index = Trigram


def test_trigrams_do_not_cross_texts():
    assert trigrams(pa.array(["ab", "cde", None, "", "cdef"])).tolist() == [0x636465, 0x646566]
    assert len(trigrams(pa.array(["ab", "c"]))) == 0


@pytest.fixture
def log(tmp_path):
    table = fuse.create_table(str(tmp_path / "log"), "line STRING", properties={"block_rows": 2})
    table.create_index("by_substring", "trigram", ["line"])
    table.append([{"line": line} for line in LOG])
    return table


@pytest.mark.parametrize(
    ("where", "rows", "blocks"),
    [
        ("line LIKE '%timeout%'", 1, 1),
        ("line LIKE '%größer%60%'", 1, 1),
        ("contains(line, 'PacketResponder')", 2, 1),
        ("line LIKE '%WARN%' OR line LIKE '%ERROR%'", 2, 2),
        ("NOT contains(line, 'dfs.')", 0, 3),
        ("contains(line, 'no such thing')", 0, 0),
        ("line LIKE '%X%'", 0, 3),
    ],
)
def test_a_log_is_read_where_the_pattern_may_be(log, where, rows, blocks):
    scan = log.scan(where, strict=True)

    assert scan.to_arrow().num_rows == rows == log.scan(where, indexes=False).to_arrow().num_rows
    assert scan.explanation.blocks.kept == blocks
