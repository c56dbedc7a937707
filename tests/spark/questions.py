"""Rows, and questions about them that every way of reading must answer alike."""

import math

import pyarrow as pa

BLOCKS, ROWS = 8, 100


def numbers(block: int) -> pa.Table:
    """A hundred rows; ids go on from block to block."""
    ids = list(range(block * ROWS, (block + 1) * ROWS))
    halves = [i / 2 if i % 7 else math.nan for i in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "kind": [f"k{i % 5}" for i in ids], "half": halves})


QUESTIONS = [
    "id = 250",
    "id < 3 OR id > 797",
    "id BETWEEN 99 AND 101",
    "id IN (1, 101, NULL)",
    "NOT (id >= 5)",
    "id <> 5 AND id < 8",
    "kind = 'k1' AND id < 20",
    "kind LIKE 'k%' AND id >= 795",
    "kind LIKE '%4' AND id <= 9",
    "half = double('nan') AND id < 30",
    "half > 398",
    "NOT (half <= 398)",
    "half = -0.0D",
    "half <=> NULL",
    "half IS NULL",
    "id = 250 AND half IS NOT NULL",
    "kind = 'K1'",
    "id = 2.5",
    "kind > '😀'",
    "id <=> 799",
    "id = 3 AND id = 4",
    "length(kind) = 2 AND id % 400 = 0",
]

FEW = ["id = 250", "id < 3 OR id > 797", "kind LIKE '%4' AND id <= 9", "NOT (half <= 398)", "half IS NULL"]
"""For where a question takes seconds."""
