"""An index that is not there is tried on a sample, and what is told of it is what it does once it is made."""

from uuid import uuid4

import pyarrow as pa
import pytest

import fuse_index as fuse
from fuse_index.errors import BuildError, DefinitionError, InputError, WhereError
from fuse_index.indexes.registry import Host
from fuse_index.signals.events import Event
from fuse_plugins import bloom, full_text, min_max
from tests.index.kinds import Values

BLOCKS, ROWS = 24, 40


def make_table(*kinds: object) -> fuse.Table:
    host = Host([min_max, bloom, full_text, *kinds])
    table = fuse.create_table(
        f"memory://what-if-{uuid4().hex}",
        "id BIGINT, name STRING, text STRING, n INT",
        ["id"],
        {"block_rows": ROWS, "zone_rows": ROWS // 2},
        host=host,
    )
    count = BLOCKS * ROWS
    numbers = [(n * 7919) % count for n in range(count)]
    table.append(
        pa.table(
            {
                "id": range(count),
                "name": [f"name {n}" for n in numbers],
                "text": [f"word{n % 50} of {n}" for n in numbers],
                "n": pa.array(numbers, pa.int32()),
            }
        )
    )
    return table


@pytest.fixture(scope="module")
def table() -> fuse.Table:
    return make_table(Values)


@pytest.mark.parametrize(
    ("kind", "columns", "where"),
    [
        ("bloom", ["name"], "name = 'name 17'"),
        ("bloom", ["lower(name)"], "lower(name) = 'name 17'"),
        ("bloom", ["n"], "n = 17 AND id < 200"),
        ("full_text", ["text"], "match(text, 'word7')"),
    ],
)
def test_what_is_told_is_what_comes(kind: str, columns: list[str], where: str) -> None:
    table = make_table()
    now = table.explain(where).blocks.kept
    before = table.snapshot

    told = table.explain.what_if(kind, columns, where=[where]).to_pylist()[0]

    assert table.refresh().snapshot == before
    table.create_index("real", kind, columns)
    real = table.explain(where).blocks.kept
    weight = sum(found.size for prefix in ("_i/", "_x/") for found in table.stored.store.list(prefix))
    assert told["blocks_now"] == now
    assert abs(told["blocks_then"] - real) <= max(2, BLOCKS // 8)
    if told["sampled"] > BLOCKS // 4:  # of few blocks most bytes are the heads of files
        assert weight / 3 <= told["bytes"] <= weight * 3
    assert told["seconds"] > 0


def test_indexes_that_are_there_count(table: fuse.Table) -> None:
    indexed = make_table()
    indexed.create_index("by_name", "bloom", ["name"])

    told = indexed.explain.what_if("bloom", ["name"], where=["name = 'name 17'"]).to_pylist()[0]

    assert told["blocks_now"] == told["blocks_then"] <= 2


def test_the_best_index_for_what_is_asked_comes_first(table: fuse.Table) -> None:
    ranked = table.explain.suggest(["name = 'name 17'", "name = 'name 99' AND n > 3", "id = 3"]).to_pylist()

    assert (ranked[0]["kind"], ranked[0]["columns"], ranked[0]["queries"]) in (
        ("bloom", ["name"], 2),
        ("values", ["name"], 2),
    )
    assert ranked[0]["blocks_then"] < ranked[0]["blocks_now"] / 2
    assert {row["kind"] for row in ranked} >= {"bloom"}


def test_conditions_of_late_are_the_default() -> None:
    table = make_table()
    with pytest.raises(InputError, match="log of plans"):
        table.explain.suggest()
    table.count("name = 'name 17'")
    table.count("name = 'name 18'")

    assert table.explain.suggest().to_pylist()[0]["queries"] == 2
    assert table.explain.what_if("bloom", ["name"]).num_rows == 2
    assert table.inspect.plans().num_rows == 2


def test_nobody_hears_of_a_trial(table: fuse.Table) -> None:
    events: list[Event] = []
    with fuse.listen(events.append):
        table.explain.what_if("bloom", ["name"], where=["name = 'name 17'"])

    assert events == []


def test_what_cannot_be_tried_is_refused(table: fuse.Table) -> None:
    with pytest.raises(DefinitionError, match="no index kind 'blom'"):
        table.explain.what_if("blom", ["name"], where=["n = 3"])
    with pytest.raises(WhereError, match="nme"):
        table.explain.what_if("bloom", ["nme"], where=["n = 3"])
    with pytest.raises(DefinitionError, match="no option 'fp'"):
        table.explain.what_if("bloom", ["name"], {"fp": 1}, where=["n = 3"])
    with pytest.raises(WhereError):
        table.explain.what_if("bloom", ["name"], where=["n ="])


def test_a_condition_that_reads_nothing_costs_nothing(table: fuse.Table) -> None:
    told = table.explain.what_if("bloom", ["name"], where=["id < 0"]).to_pylist()[0]

    assert (told["blocks_now"], told["blocks_then"], told["sampled"]) == (0, 0, 0)


class Unbuilt(Values):
    name = "unbuilt"

    def build(self, rows, zones, options):
        raise RuntimeError("no build today")


def test_a_kind_that_fails_is_no_suggestion_but_a_problem(recwarn: pytest.WarningsRecorder) -> None:
    table = fuse.create_table(
        f"memory://{uuid4().hex}", "n BIGINT", properties={"block_rows": 10}, host=Host([min_max, bloom, Unbuilt])
    )
    table.append([{"n": number * 7 % 40} for number in range(40)])

    good, bad = table.explain.suggest(["n = 3"]).to_pylist()
    with pytest.raises(BuildError, match="kind 'unbuilt' failed on each block, in build"):
        table.explain.what_if("unbuilt", ["n"], where=["n = 3"])

    assert (good["kind"], good["problem"]) == ("bloom", None)
    assert (bad["kind"], "no build today" in bad["problem"]) == ("unbuilt", True)
    assert not recwarn.list


def test_a_log_that_is_switched_off_shows_no_plans_of_before() -> None:
    table = make_table()
    table.count("n = 3")
    assert table.inspect.plans().num_rows == 1

    table.set_properties({"plan_log": "off"})
    table.count("n = 4")
    assert table.inspect.plans().num_rows == 0
