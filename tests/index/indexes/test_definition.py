"""Definitions: what can be asked for, what is stored, and when a stored one cannot be used."""

import json
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, Literal
from uuid import uuid4

import pyarrow as pa
import pytest

from fuse_index.errors import DefinitionError, WhereError
from fuse_index.indexes.builder import IndexBuilder
from fuse_index.indexes.define import define_index, redefine_index
from fuse_index.indexes.definition import IndexDefinition, UnavailableIndex, load_definitions, session_dependence
from fuse_index.indexes.engine import Engine
from fuse_index.indexes.options import parse_options
from fuse_index.indexes.plugins import Plugin
from fuse_index.indexes.registry import Host
from fuse_index.plugin import Function, IndexKind, hookimpl
from fuse_index.predicate import Column, Context
from fuse_index.reasons import Reason
from fuse_index.sql.parse import parse_term
from fuse_plugins import bloom, min_max
from fuse_storage import Schema, Snapshot
from tests.index.kinds import Values

ADDRESS = pa.struct([("city", pa.string()), ("zip code", pa.int32())])
SCHEMA = Schema.create(
    pa.schema(
        [
            ("id", pa.int64()),
            ("email", pa.string()),
            ("at", pa.timestamp("us", "UTC")),
            ("price", pa.decimal128(9, 2)),
            ("address", ADDRESS),
            ("tags", pa.map_(pa.string(), pa.string())),
            ("day.night", pa.int32()),
        ]
    )
)
HOST = Host([min_max, bloom, Values])


def made(
    *terms: Any, kind: str = "values", host: Host = HOST, context: Context | None = None, **options: Any
) -> IndexDefinition:
    return define_index("x", kind, terms, options, SCHEMA, Engine(host, context or Context()))


def snapshot(content: Any, schema: Schema = SCHEMA) -> Snapshot:
    """As much of one as definitions look at."""
    return SimpleNamespace(id=uuid4().hex, definitions={"x": content}, schema=schema)  # type: ignore[return-value]


def read(
    content: Any, host: Host = HOST, schema: Schema = SCHEMA, context: Context | None = None
) -> IndexDefinition | UnavailableIndex:
    (found,) = load_definitions(snapshot(content, schema), host, context)
    return found


def changed(number: int, **what: Any) -> Schema:
    """The schema with its column of this number changed."""
    fields = [replace(field, **what) if place == number else field for place, field in enumerate(SCHEMA.fields)]
    return Schema(1, tuple(fields))


@pytest.mark.parametrize(
    ("term", "shown"),
    [
        ("id", "id"),
        ("address.city", "address.city"),
        ("ADDRESS.City", "address.city"),
        ("address.`zip code`", "address.`zip code`"),
        ("day.night", "`day.night`"),
        ("CAST(at AS DATE)", "CAST(at AS DATE)"),
        (Column(("email",), pa.string()), "email"),
    ],
)
def test_an_index_is_on_terms(term, shown):
    definition = made(term)

    assert definition.columns == [shown]
    assert read(definition.content) == definition


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"name": "my index"}, "'my index' cannot name an index"),
        ({"name": ""}, "cannot name an index"),
        ({"kind": "valeus"}, "no index kind 'valeus': did you mean 'values'"),
        ({"terms": "id"}, "needs a list of columns"),
        ({"terms": []}, "needs a list of columns"),
        ({"terms": ["id", "id"]}, "on id twice"),
        ({"terms": ["tags"]}, "index kind 'values' cannot be on tags: cannot list values of map"),
        ({"terms": ["1"]}, "names no column"),
        ({"kind": "min_max"}, "without a definition"),
        ({"options": {"limt": 3}}, "index kind 'values' has no option 'limt': did you mean 'limit'"),
        ({"options": {"q": 3}}, "it has limit, share, words"),
        ({"options": {"limit": "3"}}, "option 'limit' of index kind 'values' is to be int, and is '3'"),
        ({"options": {"limit": True}}, "to be int, and is True"),
        ({"options": {"words": [1]}}, "option 'words'"),
        ({"kind": "bloom", "options": {"fpp": 2.0}}, "fpp=2.0: choose a share"),
        ({"kind": "bloom", "options": {"fpp": float("nan")}}, "fpp=nan"),
    ],
)
def test_what_cannot_be_is_refused_with_what_to_do(arguments, said):
    asked = {"name": "x", "kind": "values", "terms": ["id"], "options": {}, **arguments}

    with pytest.raises(DefinitionError) as refusal:
        define_index(asked["name"], asked["kind"], asked["terms"], asked["options"], SCHEMA, Engine(HOST))

    assert said in str(refusal.value)


def test_an_unknown_column_is_answered_with_near_names():
    with pytest.raises(WhereError, match=r"emial.*did you mean.*email"):
        made("emial")


def test_a_term_that_cannot_be_computed_here_is_refused():
    with pytest.raises(WhereError, match="not_a_function"):
        made("not_a_function(email)")


def test_a_kind_that_raises_while_it_is_asked_is_named():
    class Moody(Values):
        name = "moody"

        def accepts(self, inputs, options):
            raise OSError("not today")

    class Vague(Values):
        name = "vague"

        def summary_type(self, inputs, options):
            raise OSError("not today")

    for kind in (Moody, Vague):
        with pytest.raises(DefinitionError, match=f"index kind '{kind.name}' failed to .* OSError: not today"):
            made("id", kind=kind.name, host=Host([kind]))


def test_a_kind_that_votes_cannot_be_on_some_rows():
    class OnSome(Values):
        name = "on_some"

        def condition(self, options):
            return "id > 0"

    with pytest.raises(DefinitionError, match="index 'x' cannot be on some rows only: its kind 'on_some'"):
        made("id", kind="on_some", host=Host([OnSome]))


def test_a_definition_is_json_with_the_ids_of_columns():
    definition = made("address.city", "email", limit=5, words=["a", "b"])

    assert json.loads(json.dumps(definition.content)) == {
        "key": definition.key,
        "kind": "values",
        "by": "tests.index.kinds",
        "version": 1,
        "inputs": [{"column": 6}, {"column": 2}],
        "types": ["string", "string"],
        "summary": "int64",
        "options": {"limit": 5, "share": 0.5, "words": ["a", "b"]},
    }
    assert len(definition.key) == 32


def test_the_key_changes_with_all_that_sidecars_depend_on():
    class Newer(Values):
        writes, reads = 2, frozenset({1, 2})

    class Wider(Values):
        def summary_type(self, inputs, options):
            return pa.float64()

    keys = [
        made("id").key,
        made("email").key,
        made("id", limit=5).key,
        made("id", host=Host([Newer])).key,
        made("id", host=Host([Wider])).key,
        made("id", host=Host([Plugin(Values, "acme")])).key,
        define_index("x", "values", ["id"], {}, changed(0, type=pa.int32()), Engine(HOST)).key,
        made("CAST(at AS DATE)", context=Context("Asia/Tokyo")).key,
        made("CAST(at AS DATE)", context=Context("Europe/Berlin")).key,
    ]

    assert len(set(keys)) == len(keys)


def test_the_key_does_not_depend_on_how_things_are_said():
    assert (
        made("id").key == made("`id`").key == made("id", context=Context("Asia/Tokyo")).key == made("id", limit=100).key
    )
    assert made("id", share=1).key == made("id", share=1.0).key


def test_a_definition_follows_its_column_when_that_is_renamed():
    definition = made("email")

    found = read(definition.content, schema=changed(1, name="mail"))

    assert found.columns == ["mail"]
    assert found.key == definition.key


def unavailable(content: Any, **where: Any) -> tuple[Reason, str]:
    found = read(content, **where)
    assert isinstance(found, UnavailableIndex)
    return found.refusal.reason, found.refusal.detail


def test_a_missing_plugin_makes_an_index_unavailable():
    reason, detail = unavailable(made("id").content, host=Host([bloom]))

    assert reason == Reason.PLUGIN_MISSING
    assert "no index kind 'values'" in detail


def test_a_kind_of_the_same_name_from_elsewhere_is_not_taken_for_the_right_one():
    reason, detail = unavailable(made("id").content, host=Host([Plugin(Rival, "zeta", "2")]))

    assert reason == Reason.PLUGIN_MISSING
    assert "made with the 'values' of tests.index.kinds" in detail
    assert "zeta 2 brings another kind of that name: install tests.index.kinds, or rebuild the index" in detail


class Rival(IndexKind):
    """Another kind of the same name, payload version and type of summaries."""

    name = "values"
    Options = Values.Options

    def summary_type(self, inputs, options):
        return pa.int64()


ACME, ZETA = Plugin(Values, "acme", "1"), Plugin(Rival, "zeta", "2")


@pytest.mark.parametrize("installed", [[ACME, ZETA], [ZETA, ACME], [ACME]])
def test_an_index_is_read_by_the_kind_that_made_it_whoever_brings_another(installed):
    content = made("id", host=Host([ACME])).content
    host = Host(installed)

    found = read(content, host=host)

    assert isinstance(found, IndexDefinition)
    assert type(found.kind_in(host)) is Values
    assert type(IndexBuilder.for_definition(found, host).kind) is Values
    assert redefine_index(found, SCHEMA, host).key == found.key


def test_what_nobody_made_is_rebuilt_only_where_one_kind_is_meant():
    found = read(made("id", host=Host([ACME])).content, host=Host([ZETA]))

    assert redefine_index(found, SCHEMA, Host([ZETA])).content["by"] == "zeta"
    with pytest.raises(DefinitionError, match="uninstall all but one"):
        redefine_index(found, SCHEMA, Host([ZETA, Plugin(type("Third", (Rival,), {}), "omega")]))


def test_a_definition_of_a_newer_kind_waits_for_an_upgrade():
    reason, detail = unavailable({**made("id").content, "version": 2})

    assert reason == Reason.PAYLOAD_TOO_NEW
    assert "upgrade tests.index.kinds" in detail


def test_a_definition_of_an_older_kind_is_used():
    class Newer(Values):
        writes, reads = 2, frozenset({1, 2})

    assert isinstance(read(made("id").content, host=Host([Plugin(Newer, "tests.index.kinds")])), IndexDefinition)


def test_a_column_of_another_type_makes_an_index_unavailable():
    content = define_index("x", "values", ["id"], {}, changed(0, type=pa.int32()), Engine(HOST)).content

    reason, detail = unavailable(content)

    assert reason == Reason.TYPE_MISMATCH
    assert detail == "it was built on int, and its columns are bigint now: rebuild the index"


def test_a_dropped_column_makes_an_index_unavailable():
    _, detail = unavailable(made("id").content, schema=Schema(1, SCHEMA.fields[1:]))

    assert "the column with id 1 is no longer in the table" in detail


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"inputs": [{"from_the_future": 1}]}, Reason.LEAF_UNSUPPORTED),
        ({"inputs": None}, Reason.LEAF_UNSUPPORTED),
        ({"options": {"new_option": 1}}, Reason.OPTION_MISMATCH),
        ({"summary": "double"}, Reason.OPTION_MISMATCH),
        ({"context": {"moon": "full"}}, Reason.OPTION_MISMATCH),
    ],
)
def test_what_is_stored_may_be_of_any_version_and_never_raises(change, reason):
    assert unavailable({**made("id").content, **change})[0] == reason


def test_an_empty_definition_never_raises():
    assert unavailable({})[0] == Reason.LEAF_UNSUPPORTED


def test_fields_of_newer_versions_are_kept():
    content = {**made("id").content, "colour": "blue"}

    found = read(content)

    assert isinstance(found, IndexDefinition)
    assert redefine_index(found, SCHEMA, HOST).content == content


def test_a_session_with_other_semantics_is_refused_only_where_it_matters():
    tokyo, berlin = Context("Asia/Tokyo"), Context("Europe/Berlin")
    date, plain = made("CAST(at AS DATE)", context=tokyo).content, made("at", context=tokyo).content

    assert isinstance(read(date, context=tokyo), IndexDefinition)
    assert isinstance(read(plain, context=berlin), IndexDefinition)
    assert unavailable(date, context=berlin)[0] == Reason.SESSION_SEMANTICS


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ("at", False),
        ("CAST(at AS BIGINT)", False),
        ("CAST(at AS STRING)", True),
        ("CAST(email AS TIMESTAMP)", True),
        ("CAST(id AS STRING)", False),
        ("CAST(price AS STRING)", True),
        ("CAST(CAST(at AS DATE) AS STRING)", True),
        ("get_json_object(email, '$.a')", False),
        ("get_json_object(CAST(at AS STRING), '$.a')", True),
    ],
)
def test_values_depend_on_the_session_where_calendars_are_read(term, expected):
    assert bool(session_dependence(parse_term(term, SCHEMA))) == expected


def test_a_rebuild_defines_an_index_as_it_would_be_today():
    old = define_index("x", "values", ["id"], {"limit": 5}, changed(0, type=pa.int32()), Engine(HOST))

    found = redefine_index(read(old.content), SCHEMA, HOST)

    assert found == made("id", limit=5)
    with pytest.raises(DefinitionError, match="no longer in the table"):
        redefine_index(read(old.content, schema=Schema(1, SCHEMA.fields[1:])), Schema(1, SCHEMA.fields[1:]), HOST)


def test_a_host_remembers_what_the_definitions_of_a_snapshot_mean():
    asked = []

    class Counting(Values):
        def summary_type(self, inputs, options):
            asked.append(1)
            return pa.int64()

    host = Host([Counting])
    found = snapshot(made("id", host=host).content)
    first = load_definitions(found, host)
    before = len(asked)

    assert load_definitions(found, host) == first
    assert len(asked) == before
    assert isinstance(load_definitions(found, Host([bloom]))[0], UnavailableIndex)


def test_terms_may_call_functions_of_plugins():
    @hookimpl
    def fuse_index_functions():
        return [
            Function("is_long", (pa.string(),), lambda values: pa.compute.greater(pa.compute.utf8_length(values), 3))
        ]

    host = Host([Values, SimpleNamespace(fuse_index_functions=fuse_index_functions)])

    definition = made("is_long(email)", host=host)

    assert definition.inputs[0].type == pa.bool_()
    assert read(definition.content, host=host) == definition


def test_a_function_of_the_same_name_from_elsewhere_is_not_taken_for_the_right_one():
    def bringing(distribution, longest):
        def evaluate(values):
            return pa.compute.greater(pa.compute.utf8_length(values), longest)

        def fuse_index_functions():
            return [Function("is_long", (pa.string(),), evaluate)]

        plugin = SimpleNamespace(fuse_index_functions=hookimpl(fuse_index_functions))
        return Plugin(plugin, distribution)

    content = made("is_long(email)", host=Host([Values, bringing("acme", 3)])).content

    assert isinstance(read(content, host=Host([Values, bringing("acme", 3)])), IndexDefinition)
    reason, detail = unavailable(content, host=Host([Values, bringing("zeta", 4)]))
    assert reason == Reason.PLUGIN_MISSING
    assert "call the 'is_long' of acme, and here zeta brings a function of that name: install acme" in detail
    assert unavailable(content, host=Host([Values]))[0] == Reason.PLUGIN_MISSING
    older = {name: value for name, value in content.items() if name != "functions_by"}
    assert isinstance(read(older, host=Host([Values, bringing("zeta", 4)])), IndexDefinition)


@dataclass(frozen=True)
class Typed:
    mode: Literal["fast", "small"] = "fast"
    size: int | None = None
    ratio: float = 1.0
    names: tuple[str, ...] = ()
    pair: list[int] | None = None


class Chosen(IndexKind):
    name, Options = "chosen", Typed


@pytest.mark.parametrize(
    "given", [{"mode": "fast"}, {"size": 3}, {"size": None}, {"ratio": 1}, {"names": ["a"]}, {"pair": [1, 2]}]
)
def test_options_of_many_types_are_understood(given):
    assert parse_options(Chosen(), given) == Typed(
        **{name: tuple(v) if name == "names" else v for name, v in given.items()}
    )


@pytest.mark.parametrize(
    "given", [{"mode": "slow"}, {"size": "3"}, {"ratio": "1"}, {"names": "a"}, {"names": [1]}, {"pair": ["a"]}]
)
def test_options_of_the_wrong_type_are_refused(given):
    with pytest.raises(DefinitionError, match="is to be"):
        parse_options(Chosen(), given)


@dataclass(frozen=True)
class Untyped:
    size: "NotThere" = 0  # type: ignore[name-defined]  # noqa: F821


class Vague(IndexKind):
    name, Options = "vague", Untyped


def test_options_whose_types_cannot_be_found_are_taken_as_they_are():
    assert parse_options(Vague(), {"size": "any"}) == Untyped("any")
