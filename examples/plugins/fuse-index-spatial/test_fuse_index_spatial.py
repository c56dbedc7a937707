import math
import struct
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest
import shapely
from fuse_index_spatial import ST_INTERSECTS, Spatial, boxes_of, shapes_of

import fuse_index as fuse
from fuse_index.errors import WhereError
from fuse_index.plugin import Input
from fuse_index.predicate import Call, Column, Literal
from fuse_index.testing import FunctionTests, IndexTests

COLUMN = Column(("shape",), pa.binary())
SHAPES = [
    "POINT (0 0)",
    "POINT (0.1 2)",
    "LINESTRING (0 0, 4 4)",
    "LINESTRING (1 5, 1 9, 7 9)",
    "POLYGON ((2 2, 6 2, 6 6, 2 6, 2 2), (3 3, 5 3, 5 5, 3 5, 3 3))",
    "MULTIPOINT ((-7 1), (9 9))",
    "POINT Z (3 4 5)",
    "POINT (1e300 1)",
    "POLYGON EMPTY",
]
WANTED = ["POINT (0.1 2)", "POLYGON ((3.2 3.2, 4.8 3.2, 4.8 4.8, 3.2 4.8, 3.2 3.2))", "LINESTRING (6 6, 9 9)"]
WANTED += ["POLYGON EMPTY", "POINT (0.10000000000000001 2)", "POINT (1e300 1)", "GEOMETRYCOLLECTION (POINT (4 4))"]
NOT_A_NUMBER = struct.pack("<BII6d", 1, 2, 3, 0, 0, math.nan, 1, 4, 4)  # a line
ROWS = [*shapely.to_wkb(shapely.from_wkt(SHAPES)), NOT_A_NUMBER, b"", b"no shape"]


class TestIntersects(FunctionTests):
    function = ST_INTERSECTS

    def values(self, number):
        return WANTED if number == 1 else ROWS


class TestSpatial(IndexTests):
    index = Spatial
    functions: ClassVar = {"st_intersects": ST_INTERSECTS}
    inputs = (Input(COLUMN, pa.binary()),)

    def rows(self, column):
        return ROWS

    def leaves(self, given, literals):
        return [Call("st_intersects", (COLUMN, Literal(text, pa.string()))) for text in WANTED]


@pytest.fixture
def shops(tmp_path):
    table = fuse.create_table(
        str(tmp_path / "shops"), "id BIGINT, shape BINARY", properties={"block_rows": 1000, "zone_rows": 250}
    )
    table.create_index("by_place", "spatial", ["shape"])
    points = shapely.to_wkb(shapely.points([(number % 100, number // 100) for number in range(4000)])).tolist()
    shapes = [None if number == 777 else each for number, each in enumerate(points)]
    table.append(pa.table({"id": range(4000), "shape": pa.array(shapes, pa.binary())}))
    return table


@pytest.mark.parametrize(
    ("shape", "blocks", "rows"),
    [
        ("POLYGON ((3 12, 7 12, 7 14, 3 14, 3 12))", 1, 15),
        ("POLYGON ((3 12, 7 12, 3 14, 3 12))", 1, 9),
        ("LINESTRING (0 0, 0 39)", 4, 40),
        ("POINT (77 7)", 1, 0),
        ("POINT (500 500)", 0, 0),
    ],
)
def test_only_rows_whose_boxes_meet_are_read(shops, shape, blocks, rows):
    where = f"st_intersects(shape, '{shape}')"

    scan = shops.scan(where, strict=True)

    assert scan.to_arrow().equals(shops.scan(where, indexes=False).to_arrow())
    assert scan.count() == rows
    assert scan.explanation.blocks.kept <= blocks
    assert scan.explanation.rows.kept <= 15 or shape.startswith("LINE")
    assert shops.count(f"NOT {where}") == 3999 - rows


def test_boxes_are_rounded_outwards():
    nulls, boxes = boxes_of(pa.array(ROWS))
    exact = shapely.bounds(shapes_of(pa.array(ROWS)))
    known = ~np.isnan(exact).any(axis=1)

    assert (boxes[known, :2] <= exact[known, :2]).all()
    assert (boxes[known, 2:] >= exact[known, 2:]).all()
    assert known.sum() == len(SHAPES) - 1
    assert not nulls.any()


def test_what_is_no_shape_is_said_before_a_row_is_read(shops):
    with pytest.raises(WhereError, match="'POLYGON 7' is no shape"):
        shops.scan("st_intersects(shape, 'POLYGON 7')")
    with pytest.raises(WhereError, match="no numbers"):
        shops.scan("st_intersects(shape, 'POINT (NaN 1)')")
