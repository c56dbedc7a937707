"""Row groups that readers choose by other bytes than those in which they lie: no row of theirs is passed over."""

import io
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.effort import everything
from tests.spark.foreign.odd_footers import with_columns_exchanged, with_dictionaries_at_0
from tests.spark.foreign.sources import MISSING, ROWS, ZONE, a_of, use_index
from tests.spark.foreign.ways import Use, Ways


@pytest.mark.every_spark
@pytest.mark.parametrize(("changed", "in_part"), [(bytes, 1), (with_columns_exchanged, 0), (with_dictionaries_at_0, 0)])
def test_row_groups_are_read_wherever_readers_look_for_them(
    ways: Ways, tmp_path: Path, changed: Callable[[bytes], bytes], in_part: int
) -> None:
    ids = range(ROWS)
    table = pa.table({"pad": [f"{i:0100d}" for i in ids], "a": [a_of(i) for i in ids]})
    table = table.replace_schema_metadata(
        {"pad": "x" * 10_000}
    )  # Spark itself passes over what it looks for behind the end
    file = io.BytesIO()
    pq.write_table(table, file, row_group_size=ZONE, use_dictionary=False, compression="none")
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "odd.parquet").write_bytes(changed(file.getvalue()))
    use_index(ways.spark, tmp_path / "lake", tmp_path / "index", columns=["a"])

    ways.spark.read.parquet(f"{tmp_path}/lake").createOrReplaceTempView("odd_groups")
    for number in range(0, ROWS, ZONE // 2 if everything() else ZONE):
        query = f"SELECT * FROM odd_groups WHERE a = '{a_of(number)}'"
        came, told = ways.with_votes(query)
        assert told == [Use(1, 0, 0, in_part)]
        assert len(came) == 1
        assert came == ways.without(query)
    assert ways.left_out(f"SELECT * FROM parquet.`{tmp_path}/lake` WHERE a = '{MISSING}'") == [1]
