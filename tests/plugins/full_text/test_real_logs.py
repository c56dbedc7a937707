"""Lines of real systems' logs: what the index finds is what tantivy's own words say, line by line.

Set ``FUSE_INDEX_LOGS`` to a folder of ``*.log`` files, such as those of Loghub (https://github.com/logpai/loghub).
"""

import os
import random
import re
from pathlib import Path

import pyarrow as pa
import pytest

import fuse_index as fuse

FOLDER = Path(os.environ.get("FUSE_INDEX_LOGS", "/nowhere"))
LOGS = sorted(FOLDER.glob("*.log"))
BLOCK_ROWS = 250

pytestmark = pytest.mark.skipif(not LOGS, reason="FUSE_INDEX_LOGS names no folder of logs")


def queries(lines, chance):
    """Words, pairs, phrases and beginnings as they stand in some line."""
    for line in chance.sample(lines, 6):
        words = re.findall(r"[A-Za-z0-9]+", line)
        if len(words) > 2:
            at = chance.randrange(len(words) - 1)
            yield words[at]
            yield f"+{words[at]} +{chance.choice(words)}"
            yield f'"{words[at]} {words[at + 1]}"'
            yield f"{words[at][:3]}*"
            yield f"{words[0]} -{words[at]}"


@pytest.mark.parametrize("log", LOGS, ids=lambda path: path.stem)
@pytest.mark.parametrize("tokenizer", ["default", "whitespace", "en_stem"])
def test_the_index_finds_what_reading_every_line_finds(tmp_path, log, tokenizer):
    lines = log.read_bytes().decode("utf-8", "replace").splitlines()
    chance = random.Random(log.stem)
    table = fuse.create_table(str(tmp_path / "t"), "line STRING", properties={"block_rows": BLOCK_ROWS})
    table.create_index("words", "full_text", ["line"], tokenizer=tokenizer)
    table.append(pa.table({"line": lines}))

    kept = 0
    for query in queries(lines, chance):
        where = f"match(line, '{query}', 'tokenizer={tokenizer}')"
        found = table.scan(where).to_arrow()
        assert found == table.scan(where, indexes=False).to_arrow(), query
        kept += table.explain(where).to_dict()["blocks"]["kept"]
        best = table.search("line", query, 5, options=f"tokenizer={tokenizer}")
        assert len(best) == min(5, len(found))
    assert table.maintenance.verify_index("words").sound
    assert kept
