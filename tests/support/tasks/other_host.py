"""The command line on a host with a name of its own; for root.

Linux, unshare(2), CLONE_NEWUTS: what names the host is this process's alone from then on.
"""

from __future__ import annotations

import ctypes
import os
import socket

import cli

_NEW_NAMES = 0x04000000


def main() -> None:
    """Run the command line on a host that is named as ``REPLICATOR_TEST_HOST`` says."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_NAMES) != 0:
        raise OSError(ctypes.get_errno(), "no other name of the host can be had")
    socket.sethostname(os.environ["REPLICATOR_TEST_HOST"])
    cli.main()


if __name__ == "__main__":
    main()
