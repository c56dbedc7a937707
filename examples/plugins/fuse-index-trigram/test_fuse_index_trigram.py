import pyarrow as pa
import pytest
from fuse_index_trigram import Trigram, texts_of_pattern, trigrams

import fuse_index as fuse
from fuse_index.plugin import Input
from fuse_index.predicate import Call, Column, Contains, Like, Literal
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


class TestTrigramOfPatterns(IndexTests):
    """RLIKE and ILIKE, over letters whose cases are not those of ASCII."""

    index = Trigram
    test_no_vote_is_wrong_on_a_block_of_more_rows_than_16_bits_count = None  # above; patterns take their time
    inputs = (Input(Column(("line",), pa.string()), pa.string()),)

    def rows(self, column):
        return ("abk x", "ABK", "ab\u212a", "\u0130iab", "iab", "aab.", "")

    def leaves(self, given, literals):
        lower = Call("lower", (given.term,), pa.string())
        patterns = ("abk", "ab.", "^a+b", "(ab)?k x", "a{2}b\\.", "[ab]+k", "abk x|ab", "i.*iab")
        likes = ("%abk%", "%iab", "abk x", "%b\u212a%")
        return [
            *(Call("rlike", (given.term, Literal(text, pa.string()))) for text in patterns),
            *(Like(lower, Literal(text, pa.string())) for text in likes),
            *(Contains(lower, Literal(text, pa.string())) for text in ("abk", "iab", "b\u212a")),
        ]


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("time(out)?", ["time"]),
        ("blk_-?\\d+ term", ["blk_", " term"]),
        ("^dfs\\.Data", ["dfs.Data"]),
        ("colou?r", ["colo", "r"]),
        ("x{0,3}yes+", ["ye"]),
        ("[a|b]c{2}d", []),
        ("[ab\\]c]+def", ["def"]),
        ("a\\.b\\\\", ["a.b\\"]),
        ("a|b", []),
        ("(?i)abc", []),
        ("abc\\b", []),
        ("\\Qabc\\E", []),
        ("[a-z&&[^b]]abc", []),
        ("[]abc]def", ["def"]),
    ],
)
def test_texts_that_a_pattern_needs_are_read_off_it(pattern, texts):
    assert [text for text in texts_of_pattern(pattern) if text] == texts


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
        ("line RLIKE 'Slow.*60 s$'", 1, 1),
        ("line RLIKE 'blk_-?[0-9]+ terminating'", 2, 1),
        ("NOT (line RLIKE 'dfs')", 0, 3),
        ("line ILIKE '%TIMEOUT%'", 1, 1),
        ("line ILIKE '%GRÖßER ALS%'", 1, 1),
    ],
)
def test_a_log_is_read_where_the_pattern_may_be(log, where, rows, blocks):
    scan = log.scan(where, strict=True)

    assert scan.to_arrow().num_rows == rows == log.scan(where, indexes=False).to_arrow().num_rows
    assert scan.explanation.blocks.kept == blocks
