"""The reference page of the command line, made from the functions behind the commands.

``python -m scripts.cli_reference > docs/reference/cli.md`` writes it anew.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, get_args, get_type_hints

from typer import Typer
from typer.models import ArgumentInfo, OptionInfo

import cli

_HEAD = """\
# The command line

This page is made from the program (`python -m scripts.cli_reference`); don't edit it.

`TASK` is the name of a task that runs as this user on this host, or its task file. `TASK.yaml` is
the task file, see [the task file](task-file.md). Every command has `--help` (`-h`).

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | failed |
| 2 | wrong usage or configuration |
| 3 | no such running task |
"""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a command: its function's annotation, taken apart."""

    name: str
    kind: Any
    info: ArgumentInfo | OptionInfo
    default: object

    @property
    def usage(self) -> str:
        """How it is written: ``TASK``, ``--watch``, ``--log-file FILE``."""
        if isinstance(self.info, ArgumentInfo):
            word = self.info.metavar or self.name.upper()
            return word if self.default is inspect.Parameter.empty else f"[{word}]"
        # Within Annotated the first declaration lands in the place of the default.
        declared = (self.info.default, *(self.info.param_decls or ()))
        names = [name for name in declared if isinstance(name, str)]
        spelling = ", ".join(names) or f"--{self.name.replace('_', '-')}"
        return spelling if self.kind is bool else f"{spelling} {self._value()}"

    def _value(self) -> str:
        if self.info.metavar:
            return self.info.metavar
        kinds = [kind for kind in get_args(self.kind) or (self.kind,) if kind is not type(None)]
        if issubclass(kinds[0], Enum):
            return "{" + ",".join(str(choice.value) for choice in kinds[0]) + "}"
        return {"int": "N", "Path": "FILE"}.get(kinds[0].__name__, "TEXT")


def reference_page() -> str:
    """The page as Markdown: one section for each command, in the order of the help."""
    assert cli.app.registered_callback is not None
    sections = [_section("replicator", cli.app.registered_callback.callback)]
    sections += _commands("replicator", cli.app)
    for group in cli.app.registered_groups:
        assert group.typer_instance is not None
        sections += _commands(f"replicator {group.name}", group.typer_instance)
    return "\n".join([_HEAD, *sections])


def _commands(program: str, app: Typer) -> Iterator[str]:
    for command in app.registered_commands:
        assert command.callback is not None
        name = command.name or command.callback.__name__.replace("_", "-")
        yield _section(f"{program} {name}", command.callback, command.epilog or "")


def _section(name: str, function: Callable[..., Any] | None, epilog: str = "") -> str:
    assert function is not None
    found = list(_parameters(function))
    options = [p for p in found if isinstance(p.info, OptionInfo)]
    usage = [name, *(f"[{p.usage}]" for p in options)]
    usage += [p.usage for p in found if isinstance(p.info, ArgumentInfo)]
    lines = [f"## `{' '.join(usage)}`", "", " ".join((function.__doc__ or "").split())]
    if options:
        lines += ["", "| option | default | meaning |", "|---|---|---|", *map(_row, options)]
    if epilog:
        lines += ["", epilog]
    return "\n".join(lines) + "\n"


def _row(option: Parameter) -> str:
    default = option.default.value if isinstance(option.default, Enum) else option.default
    shown = "" if default in (None, False, "", inspect.Parameter.empty) else f"`{default}`"
    return f"| `{option.usage}` | {shown} | {option.info.help} |"


def _parameters(function: Callable[..., Any]) -> Iterator[Parameter]:
    hints = get_type_hints(function, include_extras=True)
    for name, parameter in inspect.signature(function).parameters.items():
        kind, info = get_args(hints[name])[:2]
        yield Parameter(name, kind, info, parameter.default)


if __name__ == "__main__":
    sys.stdout.write(reference_page())
