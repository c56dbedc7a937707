"""Plugins: found by entry point, refused by name, and never in the way of a query."""

import importlib.metadata
import os
import pickle
import shutil
import sys
import time
import types
from dataclasses import dataclass

import pyarrow as pa
import pytest

from fuse_index.errors import DefinitionError
from fuse_index.indexes.plugins import Plugin, installed_plugins
from fuse_index.indexes.registry import Host, PluginWarning
from fuse_index.plugin import Function, IndexKind, hookimpl
from fuse_plugins import bloom, min_max
from tests.index import strangers

DESCRIBE = """
import json
from fuse_index.indexes.registry import Host
host = Host.discover()
Host.discover()
print(json.dumps({"kinds": sorted(host.kinds), "problems": list(host.problems),
                  "sources": {name: plugin.source for name, plugin in host.sources.items()}}))
"""

QUERY = """
import json, sys
import pyarrow as pa
import fuse_index as fuse

table = fuse.create_table(sys.argv[1], "n BIGINT", properties={"block_rows": 10})
table.create_index("rest", "remainder", ["n"], modulus=4)
table.append(pa.table({"n": [4 * (i % 10) + i // 10 for i in range(40)]}))
found = table.explain("n = 18")
print(json.dumps({"blocks": found.to_dict()["blocks"], "rows": table.scan("n = 18").count(), "text": str(found)}))
"""


class Plain(IndexKind):
    name = "plain"


def module(name: str = "made_here", **members: object) -> types.ModuleType:
    made = types.ModuleType(name)
    for member, value in members.items():
        setattr(made, member, value)
    return made


def bringing(*kinds: object) -> types.ModuleType:
    @hookimpl
    def fuse_index_kinds():
        return list(kinds)

    return module(fuse_index_kinds=fuse_index_kinds)


def problem_of(kind: object) -> str:
    host = Host([bringing(kind)])

    assert host.kinds == {}
    (problem,) = host.problems
    return problem


def test_installed_kinds_are_found_by_their_entry_points():
    host = Host.discover()

    assert {"min_max", "bloom"} <= set(host.kinds)
    assert host.sources["bloom"].distribution == "fuse-index"
    assert host.problems == ()


def test_what_is_installed_is_one_host_until_a_module_has_other_hooks(monkeypatch):
    before = Host.discover()
    assert Host.discover() is before

    def fuse_index_kinds():
        return [Plain]

    monkeypatch.setattr(before.sources["bloom"].implementation, "fuse_index_kinds", hookimpl(fuse_index_kinds))

    assert "plain" in Host.discover().kinds


def test_a_host_with_problems_is_made_anew_as_what_it_lacks_may_come(tmp_path):
    folder = tmp_path / "late-0.1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: late\nVersion: 0.1\n")
    (folder / "entry_points.txt").write_text("[fuse_index.plugins]\nlate = late_kind\n")
    (tmp_path / "late_kind.py").write_text(
        "from fuse_index.plugin import IndexKind, hookimpl\n\n\n"
        "class Late(IndexKind):\n    name = 'late'\n\n\n"
        "@hookimpl\ndef fuse_index_kinds():\n    import came_later\n\n    return [Late]\n"
    )
    program = (
        "import json, pathlib, sys, warnings\n"
        "from fuse_index.indexes.registry import Host\n"
        "warnings.simplefilter('ignore')\n"
        "before = sorted(Host.discover().kinds)\n"
        "pathlib.Path(sys.argv[1], 'came_later.py').touch()\n"
        "__import__('importlib').invalidate_caches()\n"
        "print(json.dumps([before, sorted(Host.discover().kinds)]))\n"
    )

    before, after = strangers.run(program, tmp_path, arguments=(str(tmp_path),))

    assert set(after) - set(before) == {"late"}


@pytest.fixture
def aged_path(tmp_path, monkeypatch):
    """A folder of ``sys.path`` in which nothing was installed for an hour; no other one has changed just now, too."""
    os.utime(tmp_path, (time.time() - 3600,) * 2)
    aged = [path for path in sys.path if os.path.isdir(path) and time.time() - os.stat(path).st_mtime > 10]
    monkeypatch.setattr(sys, "path", [str(tmp_path), *aged])
    return tmp_path


def test_what_is_installed_is_read_once_a_process(aged_path, monkeypatch):
    expected, reads = installed_plugins(), []
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **named: reads.append(named) or ())

    assert expected == installed_plugins()
    assert reads == []


@pytest.mark.parametrize("age", [0, 60])
def test_what_is_installed_later_is_seen(aged_path, age):
    before = installed_plugins()
    folder = aged_path / "late-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: late\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("[fuse_index.plugins]\nlate = late_module\n")
    os.utime(aged_path, (time.time() - age,) * 2)

    added = [plugin for plugin in installed_plugins() if plugin not in before]
    assert added == [("late_module", "late", "1.0")]


def test_a_plugin_that_is_removed_is_gone(aged_path):
    test_what_is_installed_later_is_seen(aged_path, 60)
    shutil.rmtree(aged_path / "late-1.0.dist-info")

    assert "late" not in {distribution for _, distribution, _ in installed_plugins()}


def test_a_strangers_kind_is_used_like_a_built_in_one(tmp_path):
    found = strangers.run(QUERY, strangers.ACME, arguments=(str(tmp_path / "t"),))

    assert found["blocks"] == {"total": 4, "kept": 1}
    assert found["rows"] == 1
    assert "remainder" in strangers.run(DESCRIBE, strangers.ACME)["kinds"]
    assert found["stderr"] == ""


@pytest.fixture(scope="module")
def broken():
    return strangers.run(DESCRIBE, strangers.BROKEN)


@pytest.mark.parametrize(
    ("distribution", "said"),
    [
        ("broken-import 1.0", "no licence file"),
        ("broken-library 1.0", "'a_library_that_nobody_has', which is not installed"),
        ("broken-name 1.0", "fuse-index 0.1.0 brings one of that name"),
        ("broken-api 1.0", "version 99 of the plugin interface, and this is 2; upgrade fuse-index"),
        ("broken-hook 1.0", "fuse_index_kind"),
    ],
)
def test_a_broken_plugin_is_a_problem_that_names_its_distribution(broken, distribution, said):
    (problem,) = (problem for problem in broken["problems"] if distribution in problem)

    assert said in problem


def test_a_broken_plugin_does_not_disturb_the_others(broken):
    assert {"bloom", "min_max", "lies", "hangs"} <= set(broken["kinds"])
    assert broken["sources"]["bloom"] == "fuse-index 0.1.0"


def test_each_problem_is_warned_of_once_a_process(broken):
    assert [1] * len(broken["problems"]) == [broken["stderr"].count(problem) for problem in broken["problems"]]


def test_a_distribution_that_is_found_twice_is_no_problem():
    found = strangers.run(DESCRIBE, strangers.ACME, strangers.ACME)

    assert found["problems"] == []


def test_kinds_and_modules_may_be_handed_over():
    host = Host([Plain, bloom])

    assert sorted(host.kinds) == ["bloom", "plain"]


class Impostor(IndexKind):
    name = "plain"


ACME, ZETA = Plugin(Plain, "acme", "1"), Plugin(Impostor, "zeta", "2")


@pytest.mark.parametrize("plugins", [[ACME, ZETA], [ZETA, ACME]])
def test_of_two_kinds_with_one_name_none_is_meant_and_both_are_named(plugins):
    host = Host(plugins)

    assert host.kinds == {}
    (problem,) = host.problems
    assert "index kind 'plain' is brought by" in problem
    assert "by acme 1" in problem
    assert "by zeta 2" in problem
    with pytest.raises(DefinitionError, match="uninstall all but one"):
        host.kind("plain")


@pytest.mark.parametrize("plugins", [[ACME, ZETA], [ZETA, ACME]])
def test_who_knows_the_distribution_gets_its_kind(plugins):
    for host in (Host(plugins), pickle.loads(pickle.dumps(Host(plugins)))):
        assert type(host.kind_by("plain", "acme")) is Plain
        assert type(host.kind_by("plain", "zeta")) is Impostor
        assert host.kind_by("plain", "omega") is None


@pytest.mark.parametrize("first", [True, False])
def test_what_is_built_in_comes_before_others(first):
    built_in = Plugin(Plain, "fuse-index", "1")

    host = Host([built_in, ZETA] if first else [ZETA, built_in])

    assert type(host.kinds["plain"]) is Plain
    assert host.sources["plain"] is built_in
    assert host.problems == ("index kind 'plain' of zeta 2 is not used: fuse-index 1 brings one of that name",)


def test_two_kinds_of_one_name_in_one_distribution_are_none():
    host = Host([ACME, Plugin(Impostor, "acme", "1")])

    assert (host.kinds, host.kind_by("plain", "acme")) == ({}, None)
    assert len(host.problems) == 1


def test_one_kind_brought_twice_is_one_kind():
    host = Host([Plain, bringing(Plain)])

    assert host.problems == ()
    assert host.kind_by("plain", "made_here") is host.kind_by("plain", __name__) is host.kinds["plain"]


@dataclass
class Loose:
    size: int = 1


@dataclass(frozen=True)
class Demanding:
    size: int


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({}, "it has no name"),
        ({"name": "x", "api": 0}, "upgrade made_here"),
        ({"name": "x", "writes": 3}, "writes payload version 3 and reads only [1]"),
        ({"name": "x", "Options": Loose}, "no frozen dataclass"),
        ({"name": "x", "Options": Demanding}, "option 'size' has no default"),
    ],
)
def test_a_kind_that_does_not_keep_to_the_interface_is_refused(members, said):
    assert said in problem_of(type("Odd", (IndexKind,), members))


def test_what_is_no_kind_is_refused():
    assert "subclasses of IndexKind" in problem_of(object)
    assert "subclasses of IndexKind" in problem_of(Plain())


def test_a_kind_that_cannot_be_made_is_refused():
    class Fragile(IndexKind):
        name = "fragile"

        def __init__(self):
            raise OSError("no disk")

    assert "no disk" in problem_of(Fragile)


def test_a_hook_that_raises_is_a_problem():
    @hookimpl
    def fuse_index_kinds():
        raise LookupError("nothing here")

    (problem,) = Host([module(fuse_index_kinds=fuse_index_kinds)]).problems

    assert "made_here" in problem
    assert "nothing here" in problem


def test_a_module_without_hooks_is_a_problem():
    def fuse_index_kinds():
        return [Plain]

    (problem,) = Host([module(fuse_index_kinds=fuse_index_kinds)]).problems

    assert "decorate" in problem


def test_functions_come_with_plugins_too():
    first, second = (Function("starts", (pa.string(),), lambda values: values) for _ in range(2))

    def named(function: object, name: str) -> types.ModuleType:
        def fuse_index_functions():
            return [function]

        return module(name, fuse_index_functions=hookimpl(fuse_index_functions))

    host = Host([named(first, "one"), named(second, "other"), named("starts", "third")])

    assert host.functions == {}
    assert len(host.problems) == 2
    assert "give Function objects" in host.problems[0]
    assert "function 'starts' is brought by one and by other" in host.problems[1]
    assert Host([named(first, "one")]).functions["starts"] is first


def test_a_host_crosses_processes():
    host = pickle.loads(pickle.dumps(Host([min_max, bloom])))

    assert {"min_max": min_max.MinMax, "bloom": bloom.Bloom} == {name: type(kind) for name, kind in host.kinds.items()}
    assert host.problems == ()


SEND = """
import json, pickle, sys
from fuse_index.indexes.registry import Host
open(sys.argv[1], "wb").write(pickle.dumps(Host.discover()))
print("[]")
"""
RECEIVE = """
import json, pickle, sys
host = pickle.loads(open(sys.argv[1], "rb").read())
print(json.dumps({"kinds": sorted(host.kinds), "problems": list(host.problems)}))
"""


def test_a_host_arrives_where_a_plugin_is_missing(tmp_path):
    sent = (str(tmp_path / "host"),)
    strangers.run(SEND, strangers.ACME, arguments=sent)

    found = strangers.run(RECEIVE, arguments=sent)

    assert {"bloom", "min_max"} <= set(found["kinds"])
    assert "remainder" not in found["kinds"]
    assert [problem.partition(" (")[0] for problem in found["problems"]] == [
        "plugin 'acme_index' of acme-index 0.1 cannot be loaded: it needs 'acme_index', which is not installed"
    ]


def test_a_host_arrives_where_another_version_of_a_plugin_is(tmp_path):
    sent = (str(tmp_path / "host"),)
    strangers.run(SEND, strangers.ACME, arguments=sent)
    source = (strangers.ACME / "acme_index.py").read_text()
    newer = source.replace('name = "remainder"', 'name = "remainder"\n    writes, reads = 2, frozenset({1, 2})')
    (tmp_path / "acme_index.py").write_text(newer)

    found = strangers.run(RECEIVE, tmp_path, arguments=sent)

    assert "remainder" not in found["kinds"]
    versions = "it writes payload version 2 here, and 1 where the query was planned; install one version everywhere"
    assert found["problems"] == [f"index kind 'remainder' of acme-index 0.1 is not used: {versions}"]


def test_an_unknown_kind_is_answered_with_near_names_and_with_what_could_not_be_loaded():
    with pytest.raises(DefinitionError, match="no index kind 'blom': did you mean 'bloom'"):
        Host([bloom]).kind("blom")
    with pytest.raises(DefinitionError, match="no licence"):
        Host([Plugin(None, "acme", load_error="plugin 'acme' cannot be loaded: no licence")]).kind("remainder")


def test_a_refused_kind_is_answered_with_the_reason():
    with pytest.raises(DefinitionError, match="version 7 of the plugin interface"):
        Host([bringing(type("Odd", (IndexKind,), {"name": "odd", "api": 7}))]).kind("odd")


def test_warnings_are_of_a_class_of_their_own():
    assert issubclass(PluginWarning, UserWarning)


def test_a_kind_of_the_first_version_of_the_interface_goes_on():
    class Former(IndexKind):
        name = "former"
        api = 1

    assert "former" in Host([Former]).kinds
