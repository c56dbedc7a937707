"""Both sides of the border to the JVM say the same words and keep to the same limits."""

import json
import re
from importlib import resources
from typing import get_args

import msgspec
import pytest

from fuse_index.spark import protocol

TAGS = [each.__struct_config__.tag for each in get_args(protocol.Question)]
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
    [question] = [each for each in get_args(protocol.Question) if each.__struct_config__.tag == tag]
    return set(question.__struct_fields__)


def test_java_has_the_names_and_values_of_python() -> None:
    text = (resources.files("fuse_index.spark") / "java" / "rpc" / "Protocol.java").read_text("utf-8")
    java = {name: json.loads(value) for name, value in CONSTANT.findall(text)}
    constants = {name: value for name, value in vars(protocol).items() if isinstance(value, int | str)}
    python = {name: value for name, value in constants.items() if name in protocol.__annotations__}

    assert len(java) == text.count("static final")
    questions = {tag.replace(" ", "_").upper(): tag for tag in TAGS}
    assert java == python | questions | {change.name: change.value for change in protocol.Change}


@pytest.mark.parametrize("tag", TAGS)
def test_a_question_that_lacks_a_member_or_has_another_is_refused_by_name(tag: str) -> None:
    question = {"question": tag, **{name: value for name, value in MEMBERS.items() if name in members(tag)}}
    assert protocol.decode_question(json.dumps(question)).url == "/t"
    with pytest.raises(msgspec.ValidationError, match="`more`"):
        protocol.decode_question(json.dumps({**question, "more": 1}))
    for name in members(tag) - {"top"}:
        with pytest.raises(msgspec.ValidationError, match=f"`{name}`"):
            protocol.decode_question(json.dumps({key: value for key, value in question.items() if key != name}))


def test_what_is_planned_alike_has_one_plan() -> None:
    def ask(tag: str, **others: object) -> protocol.ScanQuestion:
        given = MEMBERS | others
        found = protocol.decode_question(
            json.dumps({"question": tag, **{name: given[name] for name in members(tag)}}),
        )
        assert isinstance(found, protocol.ScanQuestion)
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
    )
    assert len({plan, *(ask("prune", **other).plan_key() for other in others)}) == 1 + len(others)
