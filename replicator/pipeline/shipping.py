"""Our package as an archive, for executors that share no files with the driver.

Executors unpack it into the folder that they work in (`SparkContext.addArchive`), before the first
task and so before their first Python process; a relative ``PYTHONPATH`` leads there. Unlike a
package that stays in its zip, this lets Python keep its byte code.
"""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path


def pack(folder: Path) -> Path:
    """Write the archive into a folder; its path.

    The name tells the content: nothing that an executor may have kept is taken for it.
    """
    package = Path(__file__).parents[1]
    files = {
        str(path.relative_to(package.parent)): path.read_bytes()
        for path in sorted(package.rglob("*.py"))
    }
    digest = hashlib.sha256()
    for name, content in files.items():
        digest.update(f"{name} {len(content)} ".encode())
        digest.update(content)
    archive = folder / f"replicator-{digest.hexdigest()[:16]}.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in files.items():
            target.writestr(name, content)
    return archive
