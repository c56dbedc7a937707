"""Both sides of the border to the JVM say the same words and keep to the same limits."""

import json
import re
from importlib import resources
from typing import get_args

import msgspec
import pytest

from fuse_index.errors import InputError
from fuse_index.spark.protocol import questions, requests, words
from fuse_index.spark.protocol.changes import AddColumn, TableChange

QUESTIONS = {each.__struct_config__.tag: each for each in get_args(questions.Question)}
REQUESTS = {each.__struct_config__.tag: each for each in get_args(requests.Request)}
MEMBERS = {
    "url": "/t",
    "snapshot": "1",
    "branch": "main",
    "format": "delta",
    "location": "file:/lake",
    "unknown_files": 3,
    "mode": "indexes",
    "context": {"time_zone": "UTC", "ansi": True, "case_sensitive": False},
    "filters": [{"node": "And", "children": []}],
    "off": "kind:bloom",
    "top": {"limit": 3, "by": None},
    "columns": ["a"],
    "exact": True,
    "max_bytes": 100,
    "seconds": 0.5,
    "keys": [],
    "groups": [],
    "aggregates": [],
}
CONSTANT = re.compile(r'public static final \w+ (\w+) = (\d+|"[^"]*");')


def members(tag: str) -> set[str]:
    return set(QUESTIONS[tag].__struct_fields__)


def test_java_has_the_names_and_values_of_python() -> None:
    text = (resources.files("fuse_index.spark") / "java" / "rpc" / "Protocol.java").read_text("utf-8")
    java = {name: json.loads(value) for name, value in CONSTANT.findall(text)}
    constants = {name: value for name, value in vars(words).items() if isinstance(value, int | str)}
    python = {name: value for name, value in constants.items() if name in words.__annotations__}

    assert len(java) == text.count("static final")
    tags = {tag.replace(" ", "_").upper(): tag for tag in (*QUESTIONS, *REQUESTS)}
    assert java == python | tags | {change.name: change.value for change in words.Change}


@pytest.mark.parametrize("tag", QUESTIONS)
def test_a_question_that_lacks_a_member_or_has_another_is_refused_by_name(tag: str) -> None:
    question = {"question": tag, **{name: value for name, value in MEMBERS.items() if name in members(tag)}}
    assert questions.decode_question(json.dumps(question)).url == "/t"
    with pytest.raises(msgspec.ValidationError, match="`more`"):
        questions.decode_question(json.dumps({**question, "more": 1}))
    for name in members(tag) - {"top", "off"}:
        with pytest.raises(msgspec.ValidationError, match=f"`{name}`"):
            questions.decode_question(json.dumps({key: value for key, value in question.items() if key != name}))


TEXTS: dict[str, object] = {
    "rows": "",
    "namespace": ["db"],
    "name": "t",
    "within": [],
    "at": "",
    "purpose": "read",
    "options": {},
    "mode": "create",
    "columns": [{"path": ["a"], "type": "long", "nullable": True}],
    "partitioning": [{"transform": "identity", "columns": [["a"]]}],
    "properties": {"a": "b"},
    "staged": "1",
    "changes": [{"change": "UpdateColumnType", "path": ["a"], "type": "long"}],
    "purge": False,
    "to": ["u"],
    "updates": {},
    "removals": [],
    "cascade": True,
    "index": "i",
    "path": ["a", "t"],
    "ignore": False,
    "kind": "bloom",
    "procedure": "compact",
    "arguments": {"table": None},
    "url": "/t",
    "snapshot": "1",
    "context": {"time_zone": "UTC", "ansi": True, "case_sensitive": False},
    "filters": None,
    "session": "s",
    "branch": "main",
    "change": "delete",
    "text": "OPTIMIZE t",
    "catalog": "fuse",
    "off": "bloom",
    "condition": "id = 1",
}
OTHERWISE: dict[str, dict[str, object]] = {
    "create index": {"columns": [{"path": ["a"]}]},
    "create source index": {"columns": [{"path": ["a"], "options": {"expression": "lower(a)"}}]},
    "change rows": {"mode": "indexes", "options": []},
}
"""Members that have other types than in the rest of the requests."""


@pytest.mark.parametrize("tag", REQUESTS)
def test_a_request_that_lacks_a_member_or_has_another_is_refused_by_name(tag: str) -> None:
    values = TEXTS | OTHERWISE.get(tag, {})
    request = {"operation": tag, **{name: values[name] for name in REQUESTS[tag].__struct_fields__}}
    assert type(requests.decode_request(json.dumps(request))) is requests.request_type(json.dumps(request))
    with pytest.raises(msgspec.ValidationError, match="`more`"):
        requests.decode_request(json.dumps({**request, "more": 1}))
    optional = {"load table": {"changes"}, "change rows": {"off", "condition"}}.get(tag, set())
    for name in set(REQUESTS[tag].__struct_fields__) - optional:
        with pytest.raises(msgspec.ValidationError, match=f"`{name}`"):
            requests.decode_request(json.dumps({key: value for key, value in request.items() if key != name}))


@pytest.mark.every_spark
def test_changes_are_named_as_spark_names_them_and_others_are_refused_in_words() -> None:
    request = {"operation": "alter table", "rows": "", "namespace": [], "name": "t", "within": []}
    added = {"change": "AddColumn", "path": ["s", "f"], "type": "string", "nullable": True, "first": True}
    decoded = requests.decode_request(json.dumps({**request, "changes": [added]}))
    assert isinstance(decoded, requests.AlterTableRequest)
    assert decoded.changes == (AddColumn(path=("s", "f"), type="string", nullable=True, first=True),)
    assert {each.__struct_config__.tag for each in get_args(TableChange)} == {
        each.__name__ for each in get_args(TableChange)
    }
    with pytest.raises(InputError, match="a table has no AddConstraint to change"):
        requests.decode_request(json.dumps({**request, "changes": [{"change": "AddConstraint", "constraint": "c"}]}))


@pytest.mark.every_spark
def test_what_is_planned_alike_has_one_plan() -> None:
    def ask(tag: str, **others: object) -> questions.ScanQuestion:
        given = MEMBERS | others
        found = questions.decode_question(
            json.dumps({"question": tag, **{name: given[name] for name in members(tag)}}),
        )
        assert isinstance(found, questions.ScanQuestion)
        return found

    plan = ask("prune").plan_key()
    assert plan == ask("read rows").plan_key() == ask("estimate columns", columns=[]).plan_key()
    others = (
        {"url": "/u"},
        {"snapshot": "2"},
        {"mode": "x"},
        {"context": {"ansi": False}},
        {"filters": []},
        {"top": None},
        {"off": ""},
    )
    assert len({plan, *(ask("prune", **other).plan_key() for other in others)}) == 1 + len(others)
