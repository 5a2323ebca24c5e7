"""Commands that need no task: `encrypt` makes passwords, `files` copies files of the package."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def encrypt(
    key_file: Annotated[
        Path | None,
        typer.Option(
            envvar="REPLICATOR_SECRET_KEY_FILE",
            help="The file with the key; by default the one that REPLICATOR_SECRET_KEY_FILE names.",
        ),
    ] = None,
    new_key: Annotated[
        Path | None,
        typer.Option(help="Write a new key to this file, which must not exist yet, and end."),
    ] = None,
) -> None:
    """Encrypt a password for the task file. The command prompts for it, or reads standard input."""
    from config import secret_key

    try:
        if new_key is not None:
            secret_key.make_key(new_key)
            typer.echo(f"{new_key} holds a new key: name it in `secret-key-file` of the task file")
            return
        if key_file is None:
            raise typer.BadParameter(
                "name the file with the key: --key-file FILE; --new-key FILE makes one"
            )
        # An unusable key has to be an error before the user types a password.
        secret_key.encrypt("", key_file)
        typer.echo(secret_key.encrypt(_password(), key_file))
    except secret_key.SecretKeyError as error:
        raise typer.BadParameter(str(error)) from error


def files(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Where to; it is made if it is missing.")
    ],
) -> None:
    """Copy examples of task files, the JSON schema of the task file for editors, alert rules for
    Prometheus and a Grafana dashboard to a folder.

    Existing files are not changed: if there are any, the command copies nothing, and exits with 1.
    """
    import shutil

    import config
    from replicator.terminal.consoles import complain

    origin = Path(config.__file__).parent
    found = [
        origin / "task-schema.json",
        *sorted(origin.glob("examples/*.yaml")),
        *sorted(path for path in origin.glob("monitoring/*") if path.is_file()),
    ]
    copies = {path: folder / path.relative_to(origin) for path in found}
    try:
        if there := [str(copy) for copy in copies.values() if copy.exists()]:
            complain(f"nothing is copied, since there is {there[0]} already: name another folder")
            raise typer.Exit(1)
        for path, copy in copies.items():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
            typer.echo(copy)
    except OSError as error:
        complain(f"{folder} can't be written to: {error}")
        raise typer.Exit(1) from None


def _password() -> str:
    if sys.stdin.isatty():
        return str(typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
    password = sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
    password = password.removeprefix("\ufeff").removesuffix("\n").removesuffix("\r")
    if not password or "\n" in password:
        raise typer.BadParameter("the standard input must hold one line, the password")
    return password
