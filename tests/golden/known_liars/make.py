"""Files whose footers lie, by writers that did: ``pyarrow==10.0.1``, ``pyarrow==4.0.1`` and ``polars==0.16.7``.

Each has 200 rows: ``id``; ``f``, of Arrow's dictionaries in two chunks; and ``s``, the same values as plain text. Arrow
10 tells of ``f`` the bounds and NULLs of the first chunk, Arrow 4 no NULLs, Polars those of the dictionary.
"""

import sys

VALUES = [None if n % 5 == 0 else ("aa", "rusty", "sean")[n % 3] for n in range(100)] + [
    None if n % 7 == 0 else ("frank", "zzz")[n % 2] for n in range(100)
]
NAME = sys.argv[1]

if NAME.startswith("polars"):
    import polars as pl

    rows = pl.DataFrame({"id": list(range(200)), "f": VALUES, "s": VALUES}).with_columns(
        pl.col("f").cast(pl.Categorical)
    )
    rows.write_parquet(f"{NAME}.parquet", statistics=True, use_pyarrow=False)
else:
    import pyarrow as pa
    import pyarrow.parquet as pq

    parts = [
        pa.record_batch(
            [
                pa.array(range(start, start + 100)),
                pa.array(VALUES[start : start + 100]).dictionary_encode(),
                pa.array(VALUES[start : start + 100]),
            ],
            names=["id", "f", "s"],
        )
        for start in (0, 100)
    ]
    pq.write_table(pa.Table.from_batches(parts).unify_dictionaries(), f"{NAME}.parquet", compression="snappy")
