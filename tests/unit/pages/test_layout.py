"""The layout that docs/inside/layout.md sets out, checked on the source itself."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.support import source_trees
from tests.support.source_trees import module_name, nodes

ROOT = Path(__file__).parents[3]
FUNCTION_LINES = 70
FOLDER_MODULES = 24
PARAMETERS = 8

EVERYONE_MAY_IMPORT = {
    "replicator.kernels",
    "replicator.failpoints",
    "replicator.memory",
    "replicator.cache_folder",
    "replicator.watermark",
}
OUTERMOST = ("replicator.api", "replicator.demo")
"""Rooms of `replicator` that use the rooms of actors."""
ROW_ABOVE = "the row above"
SHARED_ROOMS = "the shared rooms"
SHARED = {f"actors.{room}" for room in ("counting", "errors", "jobs", "mailboxes", "setup")}
CONSOLES = "replicator.terminal.consoles"

# In parts, so that this file does not name them.
REGISTRY_HOSTS = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("golang", "org"),
        ("crates", "io"),
        ("maven", "org"),
        ("maven", "apache", "org"),
        ("debian", "org"),
    )
]


def sources() -> list[Path]:
    found = [ROOT / "cli.py", *(p for top in TOPS for p in (ROOT / top).rglob("*.py"))]
    return sorted(path for path in found if path.exists())


TOPS = ("replicator", "actors", "config")
BESIDE = ("tests", "benchmarks", "scripts")


MODULES = {module_name(path, ROOT): path for path in sources()}


def imports(module: str) -> Iterator[str]:
    """The modules of ours that a module imports, wherever in it."""
    return source_trees.imports(MODULES[module], MODULES)


def dotted(path: str) -> str:
    """The module that a path of the table names: ``actors/task/`` or ``replicator/status.py``."""
    return path.removesuffix(".py").removesuffix("/*").strip("/").replace("/", ".")


@cache
def table() -> dict[str, set[str]]:
    """By place, what it may import: the table of docs/inside/layout.md."""
    section = (ROOT / "docs/inside/layout.md").read_text()
    found: dict[str, set[str]] = {}
    above: set[str] = set()
    for line in section.splitlines():
        if not line.startswith("| `"):
            continue
        name, _, allowed = (cell.strip() for cell in line.strip("|").split("|"))
        above = {dotted(path) for path in re.findall("`([^`]+)`", allowed)} | (
            above if ROW_ABOVE in allowed else set()
        )
        above |= SHARED if SHARED_ROOMS in allowed else set()
        found[dotted(name.strip("`"))] = above
    return found


def place(module: str) -> str:
    """The place of the table that a module belongs to: the longest that holds it."""
    held = [name for name in table() if module == name or module.startswith(name + ".")]
    return max(held, key=len, default="")


def within(module: str, places: set[str]) -> bool:
    """Whether a module lies in one of these places, or in a room within them."""
    own = place(module)
    return module in places or any(own == at or own.startswith(f"{at}.") for at in places)


def test_the_table_names_every_package_and_nothing_else() -> None:
    packages = {module for module, path in MODULES.items() if path.name == "__init__.py"}
    assert packages - {"replicator"} - set(table()) == set()
    assert [name for name in table() if name not in MODULES] == []


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_follow_the_table(module: str) -> None:
    own = place(module)
    allowed = EVERYONE_MAY_IMPORT | table().get(own, set())
    if own in ("cli", *OUTERMOST):
        allowed |= {name for name in table() if name.startswith("actors")}
    # What lies around a room may be imported only module by module: its other rooms are apart.
    around = {at for at in allowed if own.startswith(f"{at}.") and own not in OUTERMOST}
    around.add(own)
    found = (name for name in imports(module) if place(name) not in around)
    assert [name for name in found if not within(name, allowed - around)] == []


def test_no_import_cycles() -> None:
    graph = {module: set(imports(module)) - {module} for module in MODULES}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def all_code() -> dict[str, Path]:
    """By path, production and what is beside it: one limit for all."""
    beside = (path for top in BESIDE for path in (ROOT / top).rglob("*.py"))
    return {str(path.relative_to(ROOT)): path for path in (*MODULES.values(), *beside)}


def test_executors_need_no_attrs() -> None:
    """What the Spark jobs import, wherever, is all that executors may load: they have no attrs."""
    loaded: set[str] = set()
    waiting = [module for module in MODULES if module.startswith("replicator.pipeline")]
    while waiting:
        module = waiting.pop()
        if module not in loaded:
            loaded.add(module)
            waiting += imports(module)
    uses = re.compile(r"^(from|import) attrs", re.MULTILINE)
    assert {module for module in loaded if uses.search(MODULES[module].read_text())} == set()


def test_folders_are_small() -> None:
    folders = Counter(path.parent for path in all_code().values())
    named = {str(folder.relative_to(ROOT)): n for folder, n in folders.items()}
    assert {name: n for name, n in named.items() if n > FOLDER_MODULES} == {}


def test_no_class_name_stands_twice() -> None:
    classes = Counter(
        node.name
        for path in MODULES.values()
        for node in nodes(path)
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, n in classes.items() if n > 1] == []


def test_functions_are_small() -> None:
    lengths = {
        f"{name}: {node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for name, path in all_code().items()
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {name: n for name, n in lengths.items() if n > FUNCTION_LINES} == {}


def names_in(node: ast.AST) -> set[str]:
    """The names of an annotation, also of one that is written as text."""
    parts = list(ast.walk(node))
    texts = (part.value for part in parts if isinstance(part, ast.Constant))
    named = {part.id for part in parts if isinstance(part, ast.Name)}
    return named.union(*(names_in(ast.parse(t)) for t in texts if isinstance(t, str)))


def classes() -> list[ast.ClassDef]:
    every = (node for path in MODULES.values() for node in nodes(path))
    return [node for node in every if isinstance(node, ast.ClassDef)]


def is_dataclass(node: ast.ClassDef) -> bool:
    return any("dataclass" in names_in(decorator) for decorator in node.decorator_list)


def has_fields(node: ast.ClassDef) -> bool:
    """Whether its constructor is made from its fields, by dataclasses or by attrs."""
    made_by = (ast.unparse(decorator).split("(")[0] for decorator in node.decorator_list)
    return is_dataclass(node) or any(name in ("define", "attrs.define") for name in made_by)


def is_given(field: ast.AnnAssign) -> bool:
    """Whether the constructor takes this field."""
    return field.value is None or "init=False" not in ast.unparse(field.value)


def does_something(node: ast.ClassDef) -> bool:
    """Whether its objects work with servers, files or time, rather than be read."""
    return any(isinstance(method, ast.AsyncFunctionDef) for method in node.body) or any(
        isinstance(method, ast.FunctionDef) and method.name in ("close", "run")
        for method in node.body
    )


def parameters() -> dict[str, int]:
    """How many things functions, attrs classes, and dataclasses that hold what does something take.

    Compiled loops take their arrays one by one, and a command has as many parameters as options. A
    record may have as many fields as it has facts.
    """
    found = {}
    for module, path in MODULES.items():
        for node in nodes(path):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if any(names_in(d) & {"compiled", "inlined"} for d in node.decorator_list):
                continue
            if of_the_command_line(module) and not node.name.startswith("_"):
                continue
            given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            count = sum(argument.arg not in ("self", "cls") for argument in given)
            found[f"{module}:{node.lineno} {node.name}"] = count
    every = classes()
    doing = {node.name for node in every if does_something(node)}
    for node in filter(has_fields, every):
        fields = [part for part in node.body if isinstance(part, ast.AnnAssign) and is_given(part)]
        held = set[str]().union(*(names_in(field.annotation) for field in fields))
        if not is_dataclass(node) or doing & held:
            found[node.name] = len(fields)
    return found


def test_nothing_takes_more_than_a_few_things() -> None:
    counted = parameters()
    assert {"Resources", "CoordinationTools", "BatchPlanner"} <= counted.keys()
    assert counted["BatchPlanner"] == 6
    assert {name: n for name, n in counted.items() if n > PARAMETERS} == {}


def of_the_command_line(module: str) -> bool:
    return module == "cli" or module.endswith(".commands")


def prints(node: ast.AST) -> bool:
    """Whether this is a call of ``print`` or ``typer.echo``."""
    match node:
        case ast.Call(func=ast.Name(id="print")):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id="typer"), attr="echo")):
            return True
    return False


def test_only_the_command_line_prints() -> None:
    printing = [
        f"{module}:{getattr(node, 'lineno', 0)}"
        for module, path in MODULES.items()
        if not of_the_command_line(module)
        for node in nodes(path)
        if prints(node)
    ]
    assert printing == []


def test_only_the_command_line_has_the_terminal() -> None:
    having = {module for module in MODULES if CONSOLES in imports(module)}
    assert "cli" in having
    assert {module for module in having if not of_the_command_line(module)} == set()


def test_no_file_names_a_package_registry() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git work tree: there is no list of the project's files")
    # A clone may belong to another user than the one who tests it.
    listing = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z", "-co", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    files = [ROOT / name for name in listing.stdout.split("\0") if name]
    assert Path(__file__) in files
    naming = [
        f"{path.relative_to(ROOT)}: {host}"
        for path in files
        if path.is_file()
        for host in REGISTRY_HOSTS
        if host.encode() in path.read_bytes()
    ]
    assert naming == []
