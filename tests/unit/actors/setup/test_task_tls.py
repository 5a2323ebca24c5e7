"""What `security` of a task file comes to on the way to a connection."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
import yaml

from actors.setup.task_setup import address_of, source_setups
from config import TaskFileError, load_task
from replicator.mysql.connection.tls import Pem, Tls
from tests.support.servers.certificates import make_authority

AUTHORITY = make_authority()
CLIENT = AUTHORITY.sign("client")


def tls_of(folder: Path, security: object) -> Tls | None:
    """Of the target, and the same of the source: look-ups, executors and the binlog alike."""
    server = {"host": "h", "port": 1, "user": "u", "password": "p", "security": security}
    path = folder / "task.yaml"
    path.write_text(
        yaml.safe_dump(
            {
                "name": "merge",
                "task-mode": "full",
                "target-database": server,
                "sources": [{"source-id": "a", "from": server}],
                "mysql-instances": [{"source-id": "a"}],
            }
        )
    )
    task = load_task(path)
    (setup,) = source_setups(task)
    assert setup.address == address_of(task.target_database)
    assert CLIENT.key not in repr(task)
    return setup.address.tls


def base64_of(text: str) -> str:
    return base64.encodebytes(text.encode()).decode()


@pytest.mark.parametrize(
    "shown",
    [str, lambda text: text.encode(), lambda text: list(text.encode())],
    ids=["text", "binary", "list"],
)
def test_what_the_task_file_holds_itself_counts_before_files(
    tmp_path: Path, shown: type[str]
) -> None:
    given = {
        "ssl-ca-base64": base64_of(AUTHORITY.certificate),
        "ssl-ca": "/ca.pem",
        "ssl-cert-bytes": shown(CLIENT.certificate),
        "ssl-cert-base64": base64_of(AUTHORITY.certificate),
        "ssl-key-bytes": shown(CLIENT.key),
        "ssl-key-base64": "",
        "cert-allowed-cn": ["db"],
    }
    assert tls_of(tmp_path, given) == Tls(
        Pem("/ca.pem", AUTHORITY.certificate),
        Pem("", CLIENT.certificate),
        Pem("", CLIENT.key),
        ("db",),
    )


def test_files_are_only_named(tmp_path: Path) -> None:
    given = {"ssl-ca": "/ca.pem", "ssl-cert": "/cert.pem", "ssl-key": "/key.pem"}
    assert tls_of(tmp_path, given) == Tls(Pem("/ca.pem"), Pem("/cert.pem"), Pem("/key.pem"))


@pytest.mark.parametrize("given", [None, {}, {"ssl-ca": "", "ssl-key-bytes": [], "ssl-cert": ""}])
def test_a_section_that_says_nothing_asks_for_nothing(tmp_path: Path, given: object) -> None:
    assert tls_of(tmp_path, given) is None


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"ssl-ca-bytes": [45, 45]}, "ssl-ca-bytes: is not in PEM"),
        ({"ssl-key-bytes": "hidden-word"}, "ssl-key-bytes: is not in PEM"),
        ({"ssl-key-bytes": [1, "hidden-word"]}, "ssl-key-bytes: must be text in PEM"),
        ({"ssl-key-bytes": [256]}, "ssl-key-bytes: must be text in PEM"),
        ({"ssl-key-bytes": "-----BEGIN ENCRYPTED PRIVATE KEY-----"}, "openssl pkey"),
        ({"ssl-key-base64": "hidden-word"}, "ssl-key-base64: is not base64"),
        ({"ssl-key-base64": ["hidden-word"]}, "ssl-key-base64: must be text in base64"),
        ({"ssl-cert-base64": "LS0t"}, "ssl-cert-base64: is not in PEM"),
        # It is another certificate in each process, so it can't tell the case.
        pytest.param(
            {"ssl-cert-bytes": CLIENT.certificate}, "belong together", id="certificate without key"
        ),
        ({"cert-allowed-cn": ["db"]}, "give `ssl-ca`, too"),
    ],
)
def test_what_is_no_certificate_or_key_is_refused_with_its_key(
    tmp_path: Path, given: object, says: str
) -> None:
    with pytest.raises(TaskFileError) as caught:
        tls_of(tmp_path, given)
    problems = [str(problem) for problem in caught.value.problems]
    assert any("target-database.security" in said and says in said for said in problems)
    assert any("sources[0].from.security" in said and says in said for said in problems)
    assert "hidden-word" not in str(caught.value)
