from itertools import product
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest
from fuse_index_vector import FEW_ROWS, L2_DISTANCE, Vector, VectorOptions, l2_distance
from hypothesis import strategies as st

import fuse_index as fuse
from fuse_index.plugin import Input
from fuse_index.predicate import Call, Column, Compare, In, Literal
from fuse_index.testing import FunctionTests, IndexTests

VECTORS = pa.list_(pa.float32())
COLUMN = Column(("v",), VECTORS)
INF, NAN = float("inf"), float("nan")
RANDOM = np.random.default_rng(0)
CENTRES = RANDOM.normal(0, 10, (20, 16))


def clustered(count):
    """Vectors in clusters, as those of texts are."""
    return (CENTRES[RANDOM.integers(0, len(CENTRES), count)] + RANDOM.normal(0, 1, (count, 16))).astype(np.float32)


class TestDistance(FunctionTests):
    function = L2_DISTANCE

    def values(self, number):
        vectors = ([0.0, 3.0], [4.0, 0.0], [1.0], [], [None, 1.0], [NAN, 1.0])
        return (0.5, 1.0) if number == 2 else vectors


class TestVector(IndexTests):
    index = Vector
    functions: ClassVar = {"l2_distance": L2_DISTANCE}
    inputs = (Input(COLUMN, VECTORS),)
    options = VectorOptions(dimensions=2)
    payload_bytes = 400.0
    rankings = tuple(
        Call("l2_distance", (COLUMN, Literal(point, VECTORS)), pa.float64()) for point in ([0.0, 0.0], [3.0, 4.0])
    )

    def rows(self, column):
        return ([0.0, 0.0], [3.0, 4.0], [-1.0, 2.5], [1e6, 1.0], [1.0], [], [None, 1.0], [NAN, 0.0])

    def drawn(self, column):
        return st.lists(st.none() | st.floats(width=32), min_size=1, max_size=3) | st.sampled_from(self.rows(column))

    def near(self, shelf, number, rows=None):
        return self.literals(COLUMN)

    def literals(self, term):
        return ([0.0, 0.0], [3.0, 4.0], [1e6, 1.0])

    def leaves(self, given, literals):
        for point, radius, operator in product(literals, (-1.0, 0.0, 5.0, 7.5, 1e6, INF, NAN), ("<", "<=", "=", ">")):
            wanted = Call("array", tuple(Literal(each, pa.float64()) for each in point), pa.list_(pa.float64()))
            for arguments in ((COLUMN, wanted), (wanted, COLUMN)):
                distance = Call("l2_distance", arguments, pa.float64())
                yield Compare(operator, distance, Literal(radius, pa.float64()))
            yield Compare("<>", distance, Literal(radius, pa.float64()))
            yield In(distance, (Literal(5.0, pa.float64()), Literal(radius, pa.float64())))

    def scores(self, ranking, rows):
        distances = l2_distance(rows.column("v"), pa.scalar(ranking.arguments[1].value, VECTORS))
        return -np.nan_to_num(distances.to_numpy(zero_copy_only=False), nan=np.inf)


@pytest.fixture(scope="module")
def vectors():
    return clustered(4 * (FEW_ROWS + 1000))


@pytest.fixture(scope="module")
def docs(tmp_path_factory, vectors):
    url = str(tmp_path_factory.mktemp("tables") / "docs")
    columns = pa.schema([("id", pa.int64()), ("lang", pa.string()), ("v", VECTORS)])
    table = fuse.create_table(url, columns, properties={"block_rows": FEW_ROWS + 1000, "zone_rows": 1000})
    table.create_index("by_meaning", "vector", ["v"], dimensions=16)
    ids = np.arange(len(vectors))
    table.append(pa.table({"id": ids, "lang": np.where(ids % 10, "en", "no"), "v": vectors.tolist()}, schema=columns))
    return table


def nearest(vectors, wanted, k, among=None):
    distances = np.sqrt(((vectors.astype(np.float64) - wanted) ** 2).sum(axis=1))
    return np.argsort(distances if among is None else np.where(among, distances, np.inf), kind="stable")[:k].tolist()


def test_a_search_is_exact_unless_it_says_otherwise(docs, vectors):
    for wanted in clustered(5):
        assert docs.search("v", wanted, select=["id"]).column("id").to_pylist() == nearest(vectors, wanted, 10)

    assert "exact" in str(docs.explain.search("v", vectors[0]))


@pytest.mark.parametrize("where", [None, "lang = 'en'", "lang = 'no'", "id < 100"])
def test_an_approximate_search_keeps_the_recall_that_it_states(docs, vectors, where):
    ids = np.arange(len(vectors))
    among = {None: None, "lang = 'en'": ids % 10 > 0, "lang = 'no'": ids % 10 == 0, "id < 100": ids < 100}[where]
    found = right = 0
    for wanted in clustered(20):
        rows = docs.search("v", wanted, where=where, select=["id"], recall=0.95).column("id").to_pylist()
        right += len(set(rows) & set(nearest(vectors, wanted, 10, among)))
        found += len(rows)

    assert found == 200
    assert right >= 0.95 * found
    told = str(docs.explain.search("v", vectors[0], where=where, recall=0.95))
    assert "approximate: recall 0.95, as the search allows" in told


def test_rows_without_an_index_are_measured_and_none_is_built(vectors, monkeypatch):
    table = fuse.create_table("memory://unindexed", pa.schema([("id", pa.int64()), ("v", VECTORS)]))
    table.append(pa.table({"id": range(100), "v": vectors[:100].tolist()}, schema=table.schema))
    table.create_index("by_meaning", "vector", ["v"], build=False, dimensions=16)
    monkeypatch.setattr(Vector, "build", None)

    found = table.search("v", vectors[7], limit=3, select=["id"], recall=0.9).column("id").to_pylist()

    assert found == nearest(vectors[:100], vectors[7], 3)


@pytest.mark.parametrize(
    ("query", "sentence"),
    [([1.0, 2.0], "16 numbers, not 2"), ("word", "constant vector"), ({"x": 1}, "is no value of column 'v'")],
)
def test_what_is_no_vector_of_the_column_is_refused_with_a_sentence(docs, query, sentence):
    with pytest.raises(fuse.FuseIndexError, match=sentence):
        docs.search("v", query)


@pytest.fixture(scope="module")
def map_of_points():
    """Blocks of 100 points that are near to each other, one of them NULL, one not whole, and one beyond all numbers."""
    schema = pa.schema([("id", pa.int64()), ("v", pa.list_(pa.float64()))])
    table = fuse.create_table("memory://points", schema, properties={"block_rows": 100, "zone_rows": 30})
    table.create_index("by_place", "vector", ["v"], dimensions=2)
    points = [[100.0 * (row // 100), row % 100 / 100] for row in range(1000)]
    points[105], points[205:207], points[305] = None, [[200.0], [NAN, 1.0]], [INF, 1.0]
    points[405], points[505], points[605] = [1e200, 1.0], [500.0, 1e160], [-1e-170, 0.0]
    table.append(pa.table({"id": range(1000), "v": points}, schema=schema))
    return table


DISTANCE = "l2_distance(v, array(700.0D, 0.5D))"


@pytest.mark.parametrize(
    ("where", "rows", "blocks"),
    [
        (f"{DISTANCE} < 0.3", 59, 5),
        (f"{DISTANCE} <= 100 AND id > 0", 102, 6),
        (f"{DISTANCE} > 0.1 AND {DISTANCE} < 0.2", 19, 5),
        (f"l2_distance(array(700.0D, 0.5D), v) < 0.3 OR {DISTANCE} IN (0.0, 100.0)", 61, 6),
        (f"{DISTANCE} < -1", 0, 0),
        (f"NOT ({DISTANCE} < 250)", 501, 7),
        (f"{DISTANCE} > 1e149", 5, 5),
        ("l2_distance(v, array(0.0D, 0.0D)) = 0", 2, 5),
        ("l2_distance(v, array(0.0D, 1e155D)) > 1e154", 999, 10),
        ("l2_distance(v, array(1.0D)) < 5", 0, 10),
    ],
)
def test_a_distance_in_a_condition_leaves_out_blocks_by_their_balls(map_of_points, where, rows, blocks):
    scan = map_of_points.scan(where, strict=True)

    found = scan.to_arrow().column("id")
    assert found.equals(map_of_points.scan(where, indexes=False).to_arrow().column("id"))
    assert (len(found), scan.explanation.blocks.kept) == (rows, blocks)


def test_the_distance_is_null_of_null_and_not_a_number_of_other_lengths():
    one = pa.array([[3.0, 4.0], None, [1.0], [None, 1.0]], VECTORS)

    by_constant = l2_distance(one, pa.scalar([0.0, 0.0], pa.list_(pa.float64()))).to_pylist()
    by_column = l2_distance(one, pa.array([[0.0, 0.0]] * 4, VECTORS)).to_pylist()

    assert str(by_constant) == str(by_column) == "[5.0, None, nan, nan]"


def test_the_shell_takes_a_vector_in_json(docs, vectors):
    from typer.testing import CliRunner

    from fuse_index.cli.program import app

    wanted = str(vectors[7].tolist())
    run = CliRunner().invoke(
        app, ["search", docs.stored.store.url, "v", wanted, "--columns", "id", "-n", "1", "--json"]
    )

    assert run.exit_code == 0, run.output
    assert '"id":7' in run.output.replace(" ", "")
