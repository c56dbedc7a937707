"""Makes a file whose footer lies, with the version of pyarrow or Polars that is installed where this runs.

    python tests/golden/make_liars.py [polars | prefixes]

Run once with each of the versions that ``liars/README.md`` names, on a Python that has them (3.7 for pyarrow 0.15.1,
3.8 for the others of pyarrow and Polars 0.16, 3.11 for Polars 1.9, 3.12 for 1.38), and never again.
"""

import sys
from pathlib import Path

FOLDER = Path(__file__).parent / "liars"
FIRST, SECOND = ["a", "b", None], ["zzz", None, "frank"]
NUMBERS = [5, None, 3, None, None, 9]


def with_pyarrow():
    import pyarrow as pa
    import pyarrow.parquet as pq

    categories = pa.array(["a", "b", "frank", "zzz"])
    codes = [[0, 1, None], [3, None, 2]]
    chunks = [pa.DictionaryArray.from_arrays(pa.array(each, pa.int8()), categories) for each in codes]
    table = pa.Table.from_arrays([pa.chunked_array(chunks), pa.array(NUMBERS)], names=["f", "n"])
    pq.write_table(table, str(FOLDER / f"pyarrow-{pa.__version__}.parquet"))


def with_polars():
    import polars as pl

    f, n = pl.Series("f", FIRST + SECOND, dtype=pl.Categorical), pl.Series("n", NUMBERS)
    file = FOLDER / f"polars-{pl.__version__}.parquet"
    pages = {} if pl.__version__.startswith("0.") else {"data_page_size": 1}
    pl.DataFrame([f, n]).write_parquet(str(file), statistics=True, **pages)


def with_prefixes():
    import polars as pl

    file = FOLDER / "prefixes" / f"polars-{pl.__version__}.parquet"
    texts = {"f": ["ab", "abc", "b", "ba"], "g": ["bb", "b", "abc", ""], "x": [b"ab", b"abc", b"\x00", b""]}
    pl.DataFrame(texts).write_parquet(str(file), statistics=True, data_page_size=1)


if __name__ == "__main__":
    chosen = {"polars": with_polars, "prefixes": with_prefixes}
    chosen.get(sys.argv[-1], with_pyarrow)()
