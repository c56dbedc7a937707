"""The house keeps its order: rooms stay small, files short, names single, and arrays are described."""

import ast
import re
import statistics
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = (ROOT / "fuse_storage", ROOT / "fuse_index", ROOT / "plugins" / "fuse_plugins")
FILES = [path for package in PACKAGES for path in sorted(package.rglob("*.py"))]
ROOMS = sorted({path.parent for path in FILES})
JAVA = ROOT / "fuse_index" / "spark" / "java"
JAVA_CLASSES = [
    path
    for path in sorted(JAVA.rglob("*.java"))
    if path.name != "package-info.java" and path.parent.name != "older"  # of Spark's package
]
JAVA_ROOMS = (
    "named",
    "server",
    "foreign",
    "rules",
    "catalog",
    "statements",
    "write",
    "aggregate",
    "report",
    "driver",
    "sources",
    "read",
    "files",
    "rpc",
    "catalyst",
)
"""From the top: each imports those after it."""


class Trees(dict[Path, ast.Module]):
    """Parsed sources, of files that somebody asked for."""

    def __missing__(self, path: Path) -> ast.Module:
        self[path] = ast.parse(path.read_text("utf-8"))
        return self[path]


TREES = Trees()

CROWDED = {ROOT / "fuse_index" / "expressions"}
"""Rooms that may have more than twelve modules: an expression language has many small parts."""
HOOKS = {"fuse_index_kinds", "fuse_index_functions", "fuse_index_events"}
"""pluggy finds these by name, so that each plugin defines them."""
SHAPE = re.compile(
    r"\bshape\b|\blength\b|\bone (?:value )?(?:per|for each|a)\b|\bper (?:unit|block|row|zone|segment|value)\b"
)
DTYPE = re.compile(r"\bu?int(?:8|16|32|64)?\b|\bbool(?:eans)?\b|\bfloat(?:16|32|64)?\b|\bobject\b|\bdtype\b")


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def functions(tree: ast.Module) -> Iterator[tuple[str, bool, ast.FunctionDef]]:
    """All functions and methods by their dotted names, and whether the name is public."""

    def within(body: list[ast.stmt], prefix: str, public: bool) -> Iterator[tuple[str, bool, ast.FunctionDef]]:
        for node in body:
            if isinstance(node, ast.FunctionDef):
                yield prefix + node.name, public and not node.name.startswith("_"), node
            elif isinstance(node, ast.ClassDef):
                yield from within(node.body, f"{prefix}{node.name}.", public and not node.name.startswith("_"))

    return within(tree.body, "", True)


def defined(tree: ast.Module) -> Iterator[str]:
    """Public names that a module defines at its top level."""
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                names = [name]
            case ast.Assign(targets=targets):
                names = [target.id for target in targets if isinstance(target, ast.Name)]
            case _:
                names = []
        yield from (name for name in names if not name.startswith("_"))


def parameters(node: ast.FunctionDef) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


ALIASES = sorted(
    {
        target.id
        for tree in map(TREES.__getitem__, FILES)
        for node in tree.body
        if isinstance(node, ast.Assign) and "NDArray" in ast.unparse(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
)
ARRAY = re.compile(rf"NDArray|\b(?:{'|'.join(ALIASES)})\b")


def takes_arrays(node: ast.FunctionDef) -> bool:
    annotations = [parameter.annotation for parameter in parameters(node)] + [node.returns]
    return any(annotation is not None and ARRAY.search(ast.unparse(annotation)) for annotation in annotations)


@pytest.mark.parametrize("room", ROOMS, ids=named)
def test_a_room_has_at_most_twelve_modules(room: Path) -> None:
    modules = [path.name for path in room.glob("*.py") if path.name != "__init__.py"]

    assert len(modules) <= 12 or room in CROWDED


def test_a_room_of_java_says_what_it_answers_and_has_at_most_twelve_classes() -> None:
    rooms = {path.parent for path in JAVA_CLASSES} - {JAVA}

    assert {room.name for room in rooms} == set(JAVA_ROOMS)
    assert {named(room) for room in rooms if not (room / "package-info.java").exists()} == set()
    assert {named(room) for room in rooms if len(list(room.glob("*.java"))) > 12 + 1} == set()


def test_a_file_of_java_is_short_and_has_one_class_of_the_package_of_its_folder() -> None:
    top = re.compile(r"^(?:public |abstract |final )*(?:class|interface|enum) (\w+)", re.MULTILINE)
    texts = {path: path.read_text("utf-8") for path in JAVA_CLASSES}

    assert {named(path) for path, text in texts.items() if len(text.splitlines()) > 300} == set()
    assert {named(path) for path, text in texts.items() if top.findall(text) != [path.stem]} == set()
    packages = {path: ".".join(path.parent.relative_to(ROOT).parts) for path in texts}
    assert {named(path) for path, text in texts.items() if not text.startswith(f"package {packages[path]};")} == set()


def test_java_that_is_named_in_text_exists() -> None:
    files = {path.name for path in JAVA_CLASSES}
    gone = {
        f"{named(path)} names {name}"
        for path in [*FILES, *JAVA_CLASSES, *sorted((ROOT / "docs").rglob("*.md"))]
        for name in re.findall(r"\b([A-Z]\w+\.java)\b", path.read_text("utf-8"))
        if name not in files
    }

    assert gone == set()


def test_java_imports_downwards() -> None:
    up = {
        f"{named(path)} imports {room}"
        for path in JAVA_CLASSES
        for room in re.findall(r"^import fuse_index\.spark\.java\.(\w+)\.\*;", path.read_text("utf-8"), re.MULTILINE)
        if path.parent != JAVA and JAVA_ROOMS.index(room) <= JAVA_ROOMS.index(path.parent.name)
    }

    assert up == set()


@pytest.mark.parametrize("room", [room for room in ROOMS if room not in PACKAGES], ids=named)
def test_a_room_says_what_it_answers(room: Path) -> None:
    said = ast.get_docstring(TREES[room / "__init__.py"]) or ""

    assert len(said.split()) >= 10


def module_name(path: Path) -> str:
    base = ROOT / "plugins" if "plugins" in path.relative_to(ROOT).parts else ROOT
    return ".".join(path.relative_to(base).with_suffix("").parts).removesuffix(".__init__")


def imported(tree: ast.Module, modules: set[str]) -> set[str]:
    """Modules of ours that a module imports anywhere, be it within a function or for types alone."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{name.name}" for name in node.names}
    return {name if name in modules else name.rpartition(".")[0] for name in names} & modules


def test_no_module_imports_itself_by_way_of_others() -> None:
    modules = {module_name(path): path for path in FILES}
    left = {name: imported(TREES[path], set(modules)) - {name} for name, path in modules.items()}

    while leaves := {name for name, needs in left.items() if not needs}:
        left = {name: needs - leaves for name, needs in left.items() if name not in leaves}

    assert left == {}


def test_files_are_short() -> None:
    lengths = {named(path): len(path.read_text("utf-8").splitlines()) for path in FILES}

    assert {name: length for name, length in lengths.items() if length > 300} == {}
    assert statistics.median(lengths.values()) <= 200


def test_functions_are_short_and_take_few_parameters() -> None:
    every = [(path, name, node) for path in FILES for name, _, node in functions(TREES[path])]
    lengths = [(node.end_lineno or node.lineno) - node.lineno + 1 for _, _, node in every]
    # A parameter of a command is an option of the command line.
    wide = [
        f"{named(path)} {name}"
        for path, name, node in every
        if len([one for one in parameters(node) if one.arg not in ("self", "cls")]) > 6 and "cli" not in path.parts
    ]

    assert statistics.median(lengths) <= 10
    assert len(wide) <= 15, wide  # whose parameters the public face promises


def test_a_public_name_is_defined_once() -> None:
    count = Counter(name for tree in map(TREES.__getitem__, FILES) for name in set(defined(tree)) - HOOKS)

    assert [name for name, times in count.items() if times > 1] == []


def test_who_takes_or_gives_arrays_says_shape_and_dtype() -> None:
    silent = [
        f"{named(path)}:{node.lineno} {name}"
        for path in FILES
        for name, public, node in functions(TREES[path])
        if public and takes_arrays(node)
        for text in [ast.get_docstring(node) or ""]
        if not (SHAPE.search(text) and DTYPE.search(text))
    ]

    assert silent == []


def test_docstrings_begin_with_a_verb_or_a_noun() -> None:
    riddle = re.compile(r'("""|/\*\* )(The same|These|Those|Of|It|What it|Such|As)\b')
    java = [path for package in PACKAGES for path in sorted(package.rglob("*.java"))]
    riddles = [
        f"{named(path)}:{number}"
        for path in [*FILES, *java]
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if riddle.search(line)
    ]

    assert riddles == []


def test_docstrings_begin_with_one_line() -> None:
    broken = [
        f"{named(path)}:{getattr(node, 'lineno', 1)}"
        for path in FILES
        for node in ast.walk(TREES[path])
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        for text in [ast.get_docstring(node) or ""]
        if len(lines := text.splitlines()) > 1 and lines[1].strip()
    ]

    assert broken == []


def test_whether_a_table_has_a_primary_key_is_asked_where_a_way_is_chosen() -> None:
    """Others call one of two ways: ``row_rules`` in storage, ``RowStore`` in the engine, ``target_kind`` in Spark."""
    asks = re.compile(r"(?<!def )\bis_keyed\(|\bPRIMARY_KEY_FEATURE (?:not )?in\b")
    asking = [named(path) for path in FILES for line in path.read_text("utf-8").splitlines() if asks.search(line)]

    assert len(asking) <= 8 + 1, asking  # and ``is_keyed`` itself
