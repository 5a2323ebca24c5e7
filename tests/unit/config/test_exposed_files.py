"""Files with secrets that others may read or change."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from config import Task, TaskFileError, load_task
from config.loading import changeable, readable
from config.secret_key import SecretKeyError, encrypt, make_key
from replicator import logs
from tests.unit.config.test_bad_files import TASK

NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def load(folder: Path, text: str, mode: int = 0o600) -> Task:
    path = folder / "task.yaml"
    path.write_text(text)
    path.chmod(mode)
    return load_task(path)


def with_key(key: Path) -> str:
    files = f"security: {{ssl-ca: {key}, ssl-cert: {key}, ssl-key: {key}}}"
    return TASK.replace("password: hidden-word", f"password: ENV, {files}")


@pytest.mark.parametrize(("mode", "warned"), [(0o644, 1), (0o640, 1), (0o604, 1), (0o600, 0)])
def test_a_task_file_with_a_password_that_others_may_read(
    tmp_path: Path, mode: int, warned: int
) -> None:
    found = load(tmp_path, TASK, mode).open_files
    assert len(found) == warned
    for text in found:
        assert f"task.yaml (mode {mode:04o}, owner {os.geteuid()})" in text
        assert "chmod 600" in text
        assert "hidden-word" not in text


def test_a_task_file_without_a_password_may_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORD", "x")
    assert load(tmp_path, TASK.replace("hidden-word", "'${WORD}'"), 0o644).open_files == ()


def test_password_and_source_files(tmp_path: Path) -> None:
    (tmp_path / "word").write_text("x")
    (tmp_path / "word").chmod(0o644)
    source = tmp_path / "a.yaml"
    source.write_text("source-id: shard-a\nfrom: {host: a, port: 3306, user: r, password: x}\n")
    source.chmod(0o644)
    text = TASK.replace("password: hidden-word", "password-file: word")
    inline = text[text.index("sources:") : text.index("mysql-instances:")]
    found = load(tmp_path, text.replace(inline, "source-files: [a.yaml]\n"), 0o644).open_files
    assert [line.split(" (")[0] for line in found] == [str(tmp_path / "word"), str(source)]


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_key_of_a_certificate_that_others_may_change_is_refused(
    tmp_path: Path, mode: int
) -> None:
    key = tmp_path / "key.pem"
    key.touch()
    key.chmod(mode)
    with pytest.raises(TaskFileError, match=f"key.pem .mode {mode:04o}. can be changed by others"):
        load(tmp_path, with_key(key))
    key.chmod(0o644)
    (warning,) = [text for text in load(tmp_path, with_key(key)).open_files if "key.pem" in text]
    assert "can be read by others" in warning


@NEEDS_ROOT
def test_files_of_another_account(tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    key.touch(mode=0o600)
    os.chown(key, 12345, 12345)
    with pytest.raises(TaskFileError, match=r"belongs to user 12345.*chown"):
        load(tmp_path, with_key(key))
    secret = tmp_path / "secret"
    make_key(secret)
    os.chown(secret, 12345, 12345)
    with pytest.raises(SecretKeyError, match=r"belongs to user 12345.*chown"):
        encrypt("word", secret)


@NEEDS_ROOT
def test_a_group_may_read_a_file_of_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = tmp_path / "key.pem"
    key.touch()
    key.chmod(0o640)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert (readable(key), changeable(key)) == ("", "")
    key.chmod(0o644)
    assert readable(key)


@pytest.mark.parametrize("umask", [0o022, 0o000, 0o077])
def test_a_log_file_is_no_ones_else(tmp_path: Path, umask: int) -> None:
    path = tmp_path / "log"
    root = logging.getLogger()
    handlers = root.handlers[:]
    before = os.umask(umask)
    try:
        logs.configure("info", path)
        logging.getLogger("x").warning("one")
        path.rename(tmp_path / "log.1")
        logging.getLogger("x").warning("two")
        modes = {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
        assert len(list(tmp_path.iterdir())) == 2
        assert modes == {0o640 & ~umask}
    finally:
        os.umask(before)
        for handler in root.handlers[:]:
            if handler not in handlers:
                handler.close()
        root.handlers[:] = handlers
