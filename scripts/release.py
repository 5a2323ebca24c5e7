"""What a release consists of: the wheel, the site, and the section of the changelog.

``make release`` runs it. It ends with exit code 1 where the changelog has no section for the
version of pyproject.toml, or still says that it is not released, or where tests/releases/ lacks
the version.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def section_of(changelog: str, version: str) -> str:
    """The text below the heading of a version. Raises ValueError where it is not to be released."""
    found = re.search(
        rf"^## {re.escape(version)} \(([^)]+)\)\n(.*?)(?=^## |\Z)", changelog, re.M | re.S
    )
    if found is None:
        raise ValueError(f"CHANGELOG.md has no section `## {version} (date)`")
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", found[1]):
        raise ValueError(
            f"CHANGELOG.md says `{found[1]}` of {version}: write the date of the release"
        )
    return found[2].strip() + "\n"


def main() -> int:
    """Make everything below dist/. The exit code."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    version, dist = str(settings["project"]["version"]), ROOT / "dist"
    try:
        section = section_of((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if not (ROOT / "tests" / "releases" / version).is_dir():
        sys.stderr.write(f"save what {version} leaves behind: python -m tests.releases.save\n")
        return 1
    wheel = ["-m", "pip", "wheel", "-q", ".", "--no-deps", "--no-build-isolation", "-w", str(dist)]
    site = ["-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(dist / "site")]
    for command in (wheel, site):
        subprocess.run([sys.executable, *command], cwd=ROOT, check=True)
    (dist / f"changes-{version}.md").write_text(section, encoding="utf-8")
    sys.stdout.write(f"dist/ has the wheel, the site and the changes of {version}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
