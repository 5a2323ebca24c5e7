"""Where this machine gets Debian's packages from: read from apt's own lists (``sources.list(5)``).

No file of the project names a mirror: what the machine uses is what it can reach and trusts.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from replicator.sandbox.keeper import ServerUnavailableError

APT_FOLDER = Path("/etc/apt")
SUITES_OF_ANY_RELEASE = frozenset({"oldstable", "stable", "testing", "unstable", "sid"})
COMPONENT = "main"

ONE_LINE = re.compile(
    r"deb\s+(?:\[(?P<options>[^]]*)]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)\s+(?P<rest>.+)"
)


@dataclass(frozen=True)
class Mirror:
    """A mirror of Debian, and the keys that its lists are signed with.

    `signed_by` is as in apt's lists: paths of keyrings or a key itself, with the spaces and line
    ends that it has there; empty for the keys that apt trusts everywhere.
    """

    uri: str
    signed_by: str

    def source(self, suite: str) -> str:
        """The text of a ``.sources`` file that has this suite of the mirror and nothing else."""
        lines = ["Types: deb", f"URIs: {self.uri}", f"Suites: {suite}", f"Components: {COMPONENT}"]
        if self.signed_by:
            lines.append(f"Signed-By:{self.signed_by}")
        return "\n".join(lines) + "\n"


def machine_mirror() -> Mirror:
    """The mirror that this machine's own release comes from. Raises ServerUnavailableError."""
    try:
        codename = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    except OSError:  # no such file: not a Linux that apt would be on
        codename = ""
    return find_mirror(APT_FOLDER, codename)


def find_mirror(folder: Path, codename: str) -> Mirror:
    """The first mirror in apt's folder which has a release of that name, or one of any name.

    Further sources of packages, of other makers, have suites with names of their own, or lack the
    component. Raises ServerUnavailableError where there is none.
    """
    wanted = SUITES_OF_ANY_RELEASE | {codename}
    for entry in _entries(folder):
        uris = [uri for uri in entry.get("uris", "").split() if not uri.startswith("cdrom:")]
        if (
            uris
            and "deb" in entry.get("types", "").split()
            and entry.get("enabled", "yes").strip().lower() != "no"
            and wanted.intersection(entry.get("suites", "").split())
            and COMPONENT in entry.get("components", "").split()
        ):
            return Mirror(uris[0], entry.get("signed-by", ""))
    raise ServerUnavailableError(
        f"apt's lists of sources in {folder} name no mirror of Debian (an entry with the suite"
        f" {codename or 'stable'} and the component {COMPONENT}), so there is nothing to fetch"
        " newer servers from."
    )


def _entries(folder: Path) -> Iterator[Mapping[str, str]]:
    """All sources, as the fields of a ``.sources`` file with their names in lower case."""
    parts = folder / "sources.list.d"
    for path in (folder / "sources.list", *sorted(parts.glob("*.list"))):
        if path.is_file():
            yield from _one_line_entries(path.read_text(encoding="utf-8"))
    for path in sorted(parts.glob("*.sources")):
        yield from _stanzas(path.read_text(encoding="utf-8"))


def _one_line_entries(text: str) -> Iterator[Mapping[str, str]]:
    for line in text.splitlines():
        found = ONE_LINE.fullmatch(line.partition("#")[0].strip())
        if found is None:
            continue
        options = dict(part.partition("=")[::2] for part in (found["options"] or "").split())
        keys = options.get("signed-by", "").replace(",", " ")
        yield {
            "types": "deb",
            "uris": found["uri"],
            "suites": found["suite"],
            "components": found["rest"],
            "signed-by": f" {keys}" if keys else "",
        }


def _stanzas(text: str) -> Iterator[Mapping[str, str]]:
    # A comment may stand anywhere, also between the lines of one field.
    lines = [line.rstrip() for line in text.splitlines() if not line.startswith("#")]
    for stanza in re.split(r"\n{2,}", "\n".join(lines).strip("\n")):
        fields: dict[str, str] = {}
        name = ""
        for line in stanza.splitlines():
            if line[:1].isspace():
                fields[name] = f"{fields.get(name, '')}\n{line}"
            else:
                name, _, value = line.partition(":")
                name = name.strip().lower()
                fields[name] = value
        yield fields
