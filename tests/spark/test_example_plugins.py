"""Index kinds of strangers, installed as wheels, skip blocks and rows in Spark SQL, and answer orders by a function."""

import json

from tests.plugins.test_examples import EXAMPLES, installed
from tests.spark import programs


def test_kinds_of_installed_wheels_are_used_in_spark_sql(tmp_path):
    reader = installed(tmp_path, *EXAMPLES)

    program = f"{programs.__path__[0]}/example_plugins.py"
    told = json.loads(reader.shell(f"python {program} {tmp_path}/warehouse", "Spark").strip().splitlines()[-1])

    assert told == {
        "line LIKE '%timeout%'": [1, 1, 1000, 4000],
        "contains(line, 'no such thing')": [0, 0, 0, 4000],
        "line RLIKE 'by a time(out|less)'": [1, 4, 4000, 4000],
        "line RLIKE 'ended by .* time'": [1, 1, 1000, 4000],
        "NOT (line RLIKE 'ended')": [3998, 4, 4000, 4000],
        "line ILIKE '%A TIMEOUT%'": [1, 1, 1000, 4000],
        "substring(line, 1, 3) = 'req' AND line RLIKE 'no such'": [0, 0, 0, 4000],
        "city = 'Lima'": [1000, 4, 1000, 4000],
        "city NOT IN ('Lima', 'Oslo')": [2000, 4, 2000, 4000],
        "st_intersects(shape, 'POLYGON ((3 12, 7 12, 7 14, 3 14, 3 12))')": [15, 1, 15, 4000],
        "st_intersects(shape, 'POINT (77 7)') OR id = 5": [1, 1, 1000, 4000],
        "NOT st_intersects(shape, 'POINT (3 12)')": [3998, 4, 4000, 4000],
        "near < 1.5": [7, 4, 4000, 4000],
        "NOT (near >= 1.5) AND id > 3150": [3, 1, 1000, 4000],
        "near > 60 OR v IS NULL": [1, 4, 4000, 4000],
        "58 < near AND v IS NOT NULL": [4, 2, 2000, 4000],
        "near IN (-1, 1000)": [0, 0, 0, 4000],
        "SELECT id FROM fuse.logs.docs ORDER BY near NULLS LAST LIMIT 3": [[3150, 3151, 3250], 1, "exact"],
        "SELECT id, near AS d FROM fuse.logs.docs WHERE v IS NOT NULL AND id <> 3150 ORDER BY d LIMIT 2": [
            [3151, 3250],
            1,
            "exact",
        ],
        "SELECT id FROM fuse.logs.docs ORDER BY near LIMIT 2": [
            [5, 3150],
            4,
            "NULL comes first: say NULLS LAST, or that the column IS NOT NULL",
        ],
        "SELECT id FROM fuse.logs.docs ORDER BY near DESC LIMIT 1": [[0], 4],
        "SELECT id FROM fuse.logs.docs ORDER BY near NULLS LAST, id LIMIT 1": [
            [3150],
            4,
            "a second column may decide between equal rows",
        ],
        "SELECT id FROM fuse.logs.docs ORDER BY l2_distance(v, array(50.2, 31.1), 0.9) NULLS LAST LIMIT 3": [
            [3150, 3151, 3250],
            1,
            "approximate: recall 0.9, as the search allows",
        ],
        "SELECT id FROM fuse.logs.docs ORDER BY -near NULLS LAST LIMIT 1": [[0], 4],
        "SELECT id FROM fuse.logs.docs WHERE near > 1 AND id < 3200 ORDER BY near NULLS LAST LIMIT 1": [
            [3050],
            4,
            "",
        ],
    }
