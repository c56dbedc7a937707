"""Every kind of error has a code, by which programs know it in Python, on the command line and in SQL."""

import ast
import inspect
import pickle
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
import typer
from typer.main import get_command

import fuse_index as fuse
from fuse_index.cli.program import app, shell_command
from fuse_index.errors import IndexFault
from fuse_index.spark.failures import SQL_STATES
from fuse_index.table.accounts.explain import Explain
from fuse_index.table.inspection.inspect import Inspect
from fuse_index.table.maintenance import Maintenance
from fuse_storage import EXTERNAL_ERROR, Advice, CodedError, CommitUnknown, Operation, Sentence, TableUrl, Words

ROOT = Path(__file__).parents[1]
FILES = [path for room in ("fuse_storage", "fuse_index") for path in (ROOT / room).rglob("*.py")]
SOURCES = {path: path.read_text("utf-8") for path in FILES}
CLASS = re.compile(r"^class (\w+)\(([^)]*)\):", re.MULTILINE)
CODES = {
    "ALREADY_EXISTS", "ANALYSIS_ERROR", "BUILD_STOPPED", "COMMIT_UNKNOWN", "CONFLICT", "CORRUPT", "ENGINE_ERROR",
    "EXPIRED", "EXTERNAL_ERROR", "FORMAT_ERROR", "INDEX_FAULT", "INVALID_ARGUMENT", "INVALID_CONDITION",
    "INVALID_FILE", "INVALID_INDEX", "INVALID_INPUT", "INVALID_OPTION", "INVALID_TERM", "LEFT_TO_EXECUTORS",
    "MALFORMED_JSON", "NOT_EMPTY", "NOT_FOUND", "NOT_NATIVE", "NOT_REPRODUCIBLE", "OPAQUE_CONDITION", "READ_ONLY",
    "REPEATED_KEY", "SCHEMA_MISMATCH", "SPARK_NOT_INSTALLED", "SPARK_WOULD_RAISE", "STORAGE_ERROR", "STREAM_BROKEN",
    "TAIL_FULL", "UNSUPPORTED", "UNSUPPORTED_AGGREGATE", "UNSUPPORTED_EXPRESSION", "VOTES_ONLY",
}  # fmt: skip
"""Codes of every release: programs match on them, so that none goes."""


def error_classes() -> Iterator[type[CodedError]]:
    """All classes of ours, found in the sources, as not every module is imported by others."""
    known = {"CodedError"}
    found: dict[str, str] = {}
    classes = {
        (match[1], module_name(path)): {base.strip() for base in match[2].split(",")}
        for path, text in SOURCES.items()
        for match in CLASS.finditer(text)
    }
    while more := {key: bases for key, bases in classes.items() if bases & known and key[0] not in found}:
        found |= dict(more.keys())
        known |= found.keys()
    for name, module in found.items():
        yield getattr(import_module(module), name)


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


CLASSES = sorted(error_classes(), key=lambda kind: kind.__name__)


def test_there_are_errors() -> None:
    assert {"NotFound", "InputError", "OptionError", "InputFileError"} <= {kind.__name__ for kind in CLASSES}


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_a_kind_has_a_code_of_its_own(kind: type[CodedError]) -> None:
    assert re.fullmatch(r"[A-Z]+(_[A-Z]+)*", vars(kind)["code"])
    assert [other for other in CLASSES if other.code == kind.code] == [kind]


def test_no_code_goes() -> None:
    assert {kind.code for kind in CLASSES} | {EXTERNAL_ERROR} >= CODES


def test_each_code_has_a_state_in_sql() -> None:
    assert SQL_STATES.keys() == {kind.code for kind in CLASSES} | {EXTERNAL_ERROR}
    assert len(set(SQL_STATES.values())) == len(SQL_STATES)
    assert all(re.fullmatch(r"[0-9A-Z]{5}", state) for state in SQL_STATES.values())
    assert not [state for state in SQL_STATES.values() if state[:2] in ("00", "01", "02", "XX")]  # which none catches


def test_the_page_lists_them() -> None:
    rows = re.findall(r"^\| `(\w+)` \|(?: `(\w+)`)? +\| `(\w+)` \|", (ROOT / "docs/errors.md").read_text("utf-8"), re.M)
    expected = {(kind.code, kind.__name__, SQL_STATES[kind.code]) for kind in CLASSES}

    assert len(rows) == len(set(rows))
    assert set(rows) == expected | {(EXTERNAL_ERROR, "", SQL_STATES[EXTERNAL_ERROR])}


def test_what_java_raises_by_itself_has_the_same_states() -> None:
    [source] = [path.read_text("utf-8") for path in (ROOT / "fuse_index/spark/java").rglob("StatementError.java")]
    raised = re.findall(r'raise\("(\w+)", "(\w+)", ', source)

    assert len(raised) == 3
    assert raised == [(code, SQL_STATES[code]) for code, _ in raised]


SENTENCE = TableUrl("/t") + " lacks " + Operation.call("upsert") + ": " + Advice.argument("merge", on=["id"]) + "."


@pytest.mark.parametrize(
    "error",
    [
        fuse.NotFound(SENTENCE),
        fuse.Conflict(SENTENCE, "other"),
        CommitUnknown(SENTENCE, "c"),
        fuse.InputError(SENTENCE),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_keeps_its_values_through_processes(error: CodedError) -> None:
    again = pickle.loads(pickle.dumps(error))

    assert str(again) == str(error) == "/t lacks upsert: on=['id']."
    assert again.sentence == SENTENCE == Sentence.from_json(SENTENCE.to_json())
    assert again.advice == (Advice.argument("merge", on=["id"]),)


def test_an_error_with_text_alone_has_no_advice() -> None:
    assert fuse.NotFound("no").advice == ()
    assert str(fuse.NotFound("no").sentence) == "no"
    assert str(IndexFault("i", "bloom", "ERROR", "why").sentence) == "index 'i' of kind 'bloom': ERROR: why"


class Loud(Words):
    def table(self, url: str) -> str:
        return url.upper()

    def operation(self, meant: Operation) -> str:
        return f"<{meant.name}>"


def test_a_surface_has_words_of_its_own() -> None:
    assert fuse.InputError(SENTENCE).spell(Loud()) == "/T lacks <upsert>: <merge>."
    assert fuse.InputError("{not} a template").spell(Loud()) == "{not} a template"


NAMED = {"Advice", "Operation", "storage.Advice", "storage.Operation"}


@cache
def operations() -> list[tuple[str, str, list[str]]]:
    """Where operations are named in messages, their names and those of their arguments."""
    found = []
    for path, text in SOURCES.items():
        for node in ast.walk(ast.parse(text)) if any(f"{name}." in text for name in NAMED) else ():
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if node.func.attr not in ("call", "say", "argument"):
                continue
            if ast.unparse(node.func.value) in NAMED and isinstance(node.args[0], ast.Constant):
                arguments = [each.arg for each in node.keywords if each.arg]
                found.append((f"{path.name}:{node.lineno}", node.args[0].value, arguments))
    return found


OWNERS = (fuse, fuse.Catalog, Maintenance, Inspect, fuse.Table)


def test_operations_are_those_of_tables_and_catalogues() -> None:
    there = {name: getattr(owner, name) for owner in OWNERS for name in dir(owner)}
    there["explain"] = Explain.__call__

    assert len(operations()) > 20
    for where, name, arguments in operations():
        assert name in there, where
        function = Explain.__call__ if name == "explain" else there[name]
        assert set(arguments) <= set(inspect.signature(function).parameters), where


def test_the_shell_has_commands_and_options_for_them() -> None:
    program = get_command(app)
    for where, name, arguments in operations():
        command: typer.main.TyperGroup = program  # type: ignore[assignment]
        for word in shell_command(name).split():
            if not word.startswith("--"):
                command = command.commands[word] if name != "catalog" else command  # type: ignore[assignment]
        options = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
        if name != "catalog":
            assert {f"--{argument.replace('_', '-')}" for argument in arguments} <= options, where
