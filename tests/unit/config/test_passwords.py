"""Where passwords come from: the environment, files, and encrypted ones with their key."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

import cli
from config import TaskFileError, load_task
from config.secret_key import KEY_FILE_VARIABLE, encrypt, make_key

ODD = "pä'\"\\ %@:/#?&;$`\t{}日本😀"
TASK = """\
name: merge
task-mode: full
target-database: {host: t, port: 4000, user: root}
sources:
  - source-id: a
    from: {host: a, port: 3306, user: repl}
mysql-instances:
  - source-id: a
"""


def passwords(folder: Path, lines: str, *, head: str = "") -> list[str]:
    """Of target and source, where both say the same."""
    path = folder / "task.yaml"
    path.write_text(head + TASK.replace("}", f", {lines}}}"))
    task = load_task(path)
    assert ODD not in repr(task)
    assert ODD not in task.model_dump_json()
    servers = (task.target_database, task.source("a").connection)
    return [server.password.get_secret_value() for server in servers]


def refused(folder: Path, lines: str, *, head: str = "") -> str:
    with pytest.raises(TaskFileError) as caught:
        passwords(folder, lines, head=head)
    assert [p.line for p in caught.value.problems] == [3 + head.count("\n"), 6 + head.count("\n")]
    assert ODD not in str(caught.value)
    return caught.value.problems[0].message


def asked(*arguments: object, given: str | bytes = "") -> str:
    result = CliRunner().invoke(cli.app, ["encrypt", *map(str, arguments)], input=given)
    assert result.exit_code == 0, result.stderr
    return result.stdout.strip()


def test_a_password_in_a_file_of_its_own(tmp_path: Path) -> None:
    for content in (ODD, f"{ODD}\n", f"{ODD}\r\n", f"\ufeff{ODD}\r\n"):
        (tmp_path / "secret").write_bytes(content.encode())
        for name in ("secret", tmp_path / "secret"):
            assert passwords(tmp_path, f"password-file: {name}, password: ''") == [ODD, ODD]


def test_a_file_may_hold_what_looks_like_something_else(tmp_path: Path) -> None:
    for content in ("${HOME}", "ENC(x)", "******", "Up8156jArvIPymkVC+5LxkAT6rek"):
        (tmp_path / "secret").write_text(content)
        assert passwords(tmp_path, "password-file: secret") == [content, content]


@pytest.mark.parametrize(
    ("content", "lines", "says"),
    [
        (b"", "password-file: secret", "is empty"),
        (b"\n", "password-file: secret", "is empty"),
        (b"a\nb\n", "password-file: secret", "several lines"),
        (b"\xff", "password-file: secret", "not text in UTF-8"),
        (b"\xef\xbb\xbf\r\n", "password-file: secret", "is empty"),
        (b"a", "password-file: missing", "can't be read: No such file"),
        (b"a", 'password-file: "secret\\0"', "can't be read: embedded null byte"),
        (b"a", "password-file: secret, password: hidden", "keep one of the two"),
    ],
)
def test_files_that_hold_no_password(tmp_path: Path, content: bytes, lines: str, says: str) -> None:
    (tmp_path / "secret").write_bytes(content)
    message = refused(tmp_path, lines)
    assert says in message
    assert "hidden" not in message


@pytest.mark.parametrize(
    "written", ["*hidden", "!hidden", "!hidden x", "!!hidden x", "!hidden!x y", "&hidden"]
)
def test_what_yaml_takes_for_something_else_is_not_shown(tmp_path: Path, written: str) -> None:
    path = tmp_path / "task.yaml"
    path.write_text(TASK.replace("}", f",\n    password: {written} }}"))
    with pytest.raises(TaskFileError) as caught:
        load_task(path)
    (problem,) = caught.value.problems
    assert problem.line in (4, 8)
    assert "hidden" not in str(caught.value)
    assert "in quotes" in problem.message


@pytest.mark.parametrize("kind", ["bool", "timestamp", "int", "float"])
def test_a_tag_that_does_not_fit_leaves_text(tmp_path: Path, kind: str) -> None:
    assert passwords(tmp_path, f"password: !!{kind} hidden") == ["hidden", "hidden"]


def test_an_encrypted_password_is_what_was_encrypted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = tmp_path / "key"
    assert "secret-key-file" in asked("--new-key", key)
    assert key.stat().st_mode & 0o777 == 0o600
    for given in (ODD, f"{ODD}\n", f"\ufeff{ODD}\r\n", "0123", "ENC(x)", "${HOME}"):
        shown = asked("--key-file", key, given=given.encode())
        assert given.strip("\ufeff\r\n") not in shown
        line = f"password: '{shown}'"
        expected = [given.strip("\ufeff\r\n")] * 2
        assert passwords(tmp_path, line, head="secret-key-file: key\n") == expected
    monkeypatch.setenv(KEY_FILE_VARIABLE, str(key))
    assert passwords(tmp_path, line) == expected
    assert asked(given="x").startswith("ENC(")
    assert asked(given="x") != asked(given="x")


def test_a_key_is_only_made_where_there_is_none(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("precious")
    result = CliRunner().invoke(cli.app, ["encrypt", "--new-key", str(key)])
    assert result.exit_code == 2
    assert "is there already" in result.stderr
    assert key.read_text() == "precious"


@pytest.mark.parametrize("given", ["", "\n", "a\nb\n"])
def test_what_is_no_password_is_not_encrypted(tmp_path: Path, given: str) -> None:
    make_key(tmp_path / "key")
    result = CliRunner().invoke(
        cli.app, ["encrypt", "--key-file", str(tmp_path / "key")], input=given
    )
    assert result.exit_code == 2
    assert "one line" in result.stderr


def test_keys_that_are_of_no_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_FILE_VARIABLE, raising=False)
    key, other = tmp_path / "key", tmp_path / "other"
    make_key(key)
    make_key(other)
    written = encrypt(ODD, key)
    line = f"password: '{written}'"
    assert KEY_FILE_VARIABLE in refused(tmp_path, line)
    for name in ("gone", ".", '"a\\0b"'):
        assert "can't be read" in refused(tmp_path, line, head=f"secret-key-file: {name}\n")
    assert "not encrypted with the key" in refused(tmp_path, line, head="secret-key-file: other\n")
    middle = len(written) // 2
    changed = written[:middle] + ("A" if written[middle] != "A" else "B") + written[middle + 1 :]
    for wrong in (changed, "ENC()", "ENC(ä)", written[:-9] + ")"):
        message = refused(tmp_path, f"password: '{wrong}'", head="secret-key-file: key\n")
        assert "was changed since" in message
    for mode in (0o640, 0o604, 0o660):
        key.chmod(mode)
        message = refused(tmp_path, line, head="secret-key-file: key\n")
        assert f"chmod 600 {key}" in message
    key.chmod(0o600)
    key.write_text("nothing")
    assert "holds no key" in refused(tmp_path, line, head="secret-key-file: key\n")


def test_the_variables_with_passwords_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_A", ODD)
    path = tmp_path / "task.yaml"
    path.write_text(TASK.replace("user: root", "user: root, password: '${SECRET_A}'"))
    assert load_task(path).variables == ("SECRET_A",)
    assert os.environ["SECRET_A"] == ODD
