"""Shapes of queries over one source, in each of which an index must leave out a number of files, and no row."""

from tests.spark.foreign.sources import MISSING, a_of, b_of

X, Y, Z = a_of(777), a_of(1501), b_of(333)
"""Of the files 3, 7 and 1, where a file has 200 rows."""

SHAPES: dict[str, tuple[str, list[int]]] = {
    "lookup": (f"SELECT * FROM {{t}} WHERE a = '{X}'", [7]),
    "name in another case": (f"SELECT * FROM {{t}} WHERE A = '{X}'", [7]),
    "alias": (f"SELECT q.z FROM (SELECT a AS z, b AS a FROM {{t}}) q WHERE q.z = '{X}' AND q.a > ''", [7]),
    "nobody": (f"SELECT count(*), max(n) FROM {{t}} WHERE a = '{MISSING}'", [8]),
    "nobody, in a window": (f"SELECT id, row_number() OVER (ORDER BY id) FROM {{t}} WHERE a = '{MISSING}'", [8]),
    "self-join, two keys": (
        f"SELECT p.id, q.id FROM {{t}} p JOIN {{t}} q ON p.n <> q.n WHERE p.a = '{X}' AND q.a = '{Y}'",
        [7, 7],
    ),
    "self-join, one key": (f"SELECT p.id, q.b FROM {{t}} p JOIN {{t}} q ON p.id = q.id WHERE p.a = '{X}'", [7]),
    "outer join": (
        f"SELECT p.id, q.id FROM {{t}} p LEFT JOIN {{t}} q ON p.id = q.id AND q.a = '{Y}' WHERE p.a IN ('{X}', '{Y}')",
        [6, 7],
    ),
    "full join with nobody": (
        f"SELECT p.id, q.id FROM (SELECT * FROM {{t}} WHERE a = '{X}') p FULL JOIN "
        f"(SELECT * FROM {{t}} WHERE a = '{MISSING}') q ON p.id = q.id",
        [7, 8],
    ),
    "union": (f"SELECT id FROM {{t}} WHERE a = '{X}' UNION ALL SELECT id FROM {{t}} WHERE a = '{Y}'", [7, 7]),
    "grouped alike": (
        f"(SELECT n, count(*) FROM {{t}} WHERE a = '{X}' GROUP BY n) UNION ALL "
        f"(SELECT n, count(*) FROM {{t}} WHERE a = '{Y}' GROUP BY n)",
        [7, 7],
    ),
    "IN subquery": (f"SELECT id FROM {{t}} WHERE b IN (SELECT b FROM {{t}} WHERE a = '{X}') AND a < 'b'", [0, 7]),
    "EXISTS": (
        f"SELECT count(*) FROM {{t}} p WHERE a = '{X}' "
        f"AND EXISTS (SELECT 1 FROM {{t}} q WHERE q.n = p.n AND q.b = '{Z}')",
        [7, 7],
    ),
    "scalar subqueries": (
        f"SELECT (SELECT max(id) FROM {{t}} WHERE a = '{X}'), (SELECT count(*) FROM {{t}} WHERE a = '{MISSING}')",
        [7, 8],
    ),
    "CTE twice": (
        f"WITH c AS (SELECT * FROM {{t}} WHERE a = '{X}') SELECT p.id, q.n FROM c p JOIN c q ON p.id = q.id",
        [7],
    ),
    "limit": (f"SELECT id FROM {{t}} WHERE a IN ('{X}', '{Y}') LIMIT 5", [6]),
    "order and limit": (f"SELECT id FROM {{t}} WHERE a IN ('{X}', '{Y}') ORDER BY n DESC LIMIT 1", [6]),
    "window": (f"SELECT id, sum(n) OVER (PARTITION BY n % 3 ORDER BY id) FROM {{t}} WHERE a IN ('{X}', '{Y}')", [6]),
    "distinct and having": (f"SELECT n, count(DISTINCT b) c FROM {{t}} WHERE a = '{X}' GROUP BY n HAVING c > 0", [7]),
    "name of the file": (f"SELECT id, input_file_name() FROM {{t}} WHERE a = '{X}'", [7]),
    "which bytes, right above the scan": (f"SELECT id, input_file_block_length() FROM {{t}} WHERE a = '{X}'", [7]),
    "which bytes, far above the scan": (
        "SELECT input_file_block_start(), input_file_block_length(), each FROM {t} "
        f"LATERAL VIEW explode(array(1, 2)) numbers AS each WHERE a = '{X}'",
        [7],
    ),
    "a function of Python": (f"SELECT id FROM {{t}} WHERE a = '{X}' AND has_digits(b)", [7]),
    "numbers for rows": (f"SELECT id, monotonically_increasing_id() >= 0 FROM {{t}} WHERE a = '{X}'", [7]),
    "numbers and seeds by partition": (
        f"SELECT id, monotonically_increasing_id(), spark_partition_id(), rand(7) FROM {{t}} WHERE a IN ('{X}', '{Y}')",
        [6],
    ),
    "a sample by its seed": (
        f"SELECT id FROM (SELECT * FROM {{t}} WHERE a IN ('{X}', '{Y}')) TABLESAMPLE (50 PERCENT) REPEATABLE (3)",
        [6],
    ),
    "numbers before the condition": (
        f"SELECT id, m FROM (SELECT *, monotonically_increasing_id() m FROM {{t}}) WHERE a = '{X}'",
        [],
    ),
    "by chance": (f"SELECT id FROM {{t}} WHERE a = '{X}' AND rand() >= 0", [7]),
    "limit before the condition": (
        "SELECT id FROM (SELECT * FROM {t} ORDER BY id LIMIT 50) WHERE a = '" + a_of(3) + "'",
        [7],  # by bounds of id
    ),
}

OF_FILES: dict[str, tuple[str, list[int]]] = {
    "metadata of the file": (
        f"SELECT id, _metadata.file_name, _metadata.file_size, _metadata.row_index FROM {{t}} WHERE a = '{X}'",
        [7],
    ),
    "number of the row in the file": (f"SELECT id FROM {{t}} WHERE a = '{X}' AND _metadata.row_index > 100", [7]),
    "which bytes of the file": (
        f"SELECT _metadata.file_block_start, _metadata.file_block_length FROM {{t}} WHERE a = '{X}'",
        [7],
    ),
}
"""Of sources that Spark scans as files."""
