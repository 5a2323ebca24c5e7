from __future__ import annotations

from pathlib import Path

import pytest

from replicator.sandbox.keeper import ServerUnavailableError
from tests.support.servers.apt_sources import Mirror, find_mirror

OTHER_MAKER = """\
Types: deb
URIs: https://packages.example.com/tool
Suites: nodistro
Components: main
"""

DEBIAN = """\
# Written by the installer
Types: deb deb-src
# http://old.example.com/debian
URIs: http://mirror.example.com/debian http://second.example.com/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian.gpg

Types: deb
URIs: http://security.example.com/debian-security
Suites: bookworm-security
Components: main
"""

INLINE_KEY = """\
types: deb
uris: http://mirror.example.com/debian
suites: stable
components: main
signed-by:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
# not a part of the key
 .
 mQINBF
 -----END PGP PUBLIC KEY BLOCK-----
"""


def folder_of(place: Path, **files: str) -> Path:
    """A folder as apt's, with files of its folder of parts: ``debian_sources="…"``."""
    parts = place / "sources.list.d"
    parts.mkdir(exist_ok=True)
    for name, text in files.items():
        (parts / name.replace("_", ".")).write_text(text)
    return place


def test_the_mirror_of_the_release_is_found_among_others(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, a_sources=OTHER_MAKER, debian_sources=DEBIAN)
    mirror = find_mirror(folder, "bookworm")
    assert mirror == Mirror("http://mirror.example.com/debian", " /usr/share/keyrings/debian.gpg")
    assert mirror.source("sid") == (
        "Types: deb\n"
        "URIs: http://mirror.example.com/debian\n"
        "Suites: sid\n"
        "Components: main\n"
        "Signed-By: /usr/share/keyrings/debian.gpg\n"
    )


def test_a_key_in_the_list_itself_is_kept(tmp_path: Path) -> None:
    # A machine that follows a suite names that, and not the release that the suite is now.
    mirror = find_mirror(folder_of(tmp_path, x_sources=INLINE_KEY), "bookworm")
    assert mirror.source("sid").endswith(
        "Signed-By:\n"
        " -----BEGIN PGP PUBLIC KEY BLOCK-----\n"
        " .\n"
        " mQINBF\n"
        " -----END PGP PUBLIC KEY BLOCK-----\n"
    )


@pytest.mark.parametrize(
    ("line", "signed_by"),
    [
        ("deb http://mirror.example.com/debian bookworm main # ours", ""),
        ("deb  [arch=amd64]  http://mirror.example.com/debian  bookworm  contrib main", ""),
        (
            "deb [ signed-by=/a.gpg,/b.gpg arch=amd64 ]"
            " http://mirror.example.com/debian bookworm main",
            " /a.gpg /b.gpg",
        ),
    ],
)
def test_lines_of_the_old_kind_are_read(tmp_path: Path, line: str, signed_by: str) -> None:
    (tmp_path / "sources.list").write_text(
        "# deb http://commented.example.com/debian bookworm main\n"
        "deb cdrom:[Debian]/ bookworm main\n"
        "deb-src http://source.example.com/debian bookworm main\n"
        f"{line}\n"
    )
    mirror = find_mirror(tmp_path, "bookworm")
    assert mirror == Mirror("http://mirror.example.com/debian", signed_by)
    assert ("Signed-By" in mirror.source("sid")) == bool(signed_by)


@pytest.mark.parametrize(
    "text",
    [
        "",
        OTHER_MAKER,
        DEBIAN.replace("Types: deb deb-src", "Types: deb-src"),
        DEBIAN.replace("Components: main contrib", "Components: contrib"),
        DEBIAN.replace("# Written by the installer", "Enabled: no"),
    ],
)
def test_what_is_no_mirror_is_said(tmp_path: Path, text: str) -> None:
    folder = folder_of(tmp_path, debian_sources=text)
    with pytest.raises(ServerUnavailableError, match=r"no mirror of Debian .* suite bookworm"):
        find_mirror(folder, "bookworm")
