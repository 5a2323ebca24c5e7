"""The tests of one room: ``python -m scripts.room_tests actors/writing``.

Prints the paths of its unit tests, and of the integration tests that reach it by the fewest
imports: a test module that imports a module of the room has the distance 1, and one that imports it
through another module of the product or of ``tests/support/`` has the distance 2. Most integration
tests start a task, and so reach nearly every room. Therefore only the nearest are printed; standard
error gets the number of all of them.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Set
from pathlib import Path

from tests.support.source_trees import imports, module_name

ROOT = Path(__file__).parents[1]
MOST_NEAREST = 30
"""The number of integration test modules up to which those of the next distance are added."""
_TOPS = ("replicator", "actors", "config", "tests")


def distances(imported: Mapping[str, Set[str]], room: str) -> dict[str, int]:
    """Return the number of imports from each module to the room, if there is a way.

    `imported` has the imports of each module by its name, `room` the room's name as a package.
    """
    users: dict[str, set[str]] = {}
    for module, names in imported.items():
        for name in names:
            users.setdefault(name, set()).add(module)
    found = {name: 0 for name in imported if name == room or name.startswith(f"{room}.")}
    waiting = list(found)
    for module in waiting:
        for user in sorted(users.get(module, set()) - found.keys()):
            found[user] = found[module] + 1
            waiting.append(user)
    return found


def nearest(tests: Mapping[str, int]) -> list[str]:
    """Return the tests of the smallest distance, and of the next ones up to `MOST_NEAREST`."""
    chosen: list[str] = []
    for distance in sorted(set(tests.values())):
        ring = sorted(name for name, own in tests.items() if own == distance)
        if chosen and len(chosen) + len(ring) > MOST_NEAREST:
            break
        chosen += ring
    return chosen


def _import_map() -> tuple[dict[str, Path], dict[str, set[str]]]:
    paths = [ROOT / "cli.py", *(path for top in _TOPS for path in (ROOT / top).rglob("*.py"))]
    modules = {module_name(path, ROOT): path for path in paths}
    return modules, {name: set(imports(path, modules)) for name, path in modules.items()}


def main(room: str) -> int:
    """Print the paths of the tests of a room, one a line. Returns the exit code."""
    room = room.strip("/")
    if not room or not (ROOT / room / "__init__.py").exists():
        sys.stderr.write(f"{room or 'nothing'} is no room: name a folder as in actors/writing\n")
        return 2
    modules, imported = _import_map()
    reached = distances(imported, room.replace("/", "."))
    tests = {name for name in modules if name.startswith("tests.integration.") and ".test_" in name}
    reaching = {name: distance for name, distance in reached.items() if name in tests}
    chosen = nearest(reaching)
    steps = max((reaching[name] for name in chosen), default=0)
    sys.stderr.write(
        f"{len(reaching)} of {len(tests)} integration test modules reach {room};"
        f" the nearest {len(chosen)} do by at most {steps} imports\n"
    )
    unit = ROOT / "tests/unit" / room
    for path in [unit] * unit.exists() + [modules[name] for name in chosen]:
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]) if len(sys.argv) > 1 else main(""))
