import pyarrow as pa
import pytest
from fuse_index_roaring import Roaring

import fuse_index as fuse
from fuse_index.testing import IndexTests

CITIES = ["Lima", "Bonn", "Oslo", None]


class TestRoaring(IndexTests):
    index = Roaring


@pytest.fixture
def people(tmp_path):
    table = fuse.create_table(
        str(tmp_path / "people"), "id BIGINT, city STRING", properties={"block_rows": 1000, "zone_rows": 300}
    )
    table.create_index("by_city", "roaring", ["city"])
    table.append(pa.table({"id": range(4000), "city": [CITIES[number % 4] for number in range(4000)]}))
    return table


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("city = 'Lima'", 1000),
        ("city <> 'Lima'", 2000),
        ("city IN ('Lima', 'Oslo')", 2000),
        ("city NOT IN ('Lima', 'Oslo')", 1000),
        ("city > 'C' AND city < 'M'", 1000),
        ("city IS NULL OR city = 'Bonn'", 2000),
        ("NOT (city = 'Bonn' OR id < 2000)", 1000),
    ],
)
def test_only_rows_that_match_are_read(people, where, rows):
    scan = people.scan(where, strict=True)
    found = scan.to_arrow()

    assert found.equals(people.scan(where, indexes=False).to_arrow())
    assert found.num_rows == rows
    assert scan.explanation.rows.kept <= {"city IS NULL OR city = 'Bonn'": 4000}.get(where, rows)


def test_explain_says_how_many_rows_it_removed(people):
    assert "3,000 rows removed" in str(people.explain("city = 'Lima'"))
