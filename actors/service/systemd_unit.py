"""The systemd unit of a task.

Format: systemd.service(5), systemd.exec(5); quoting and escapes: systemd.syntax(7),
systemd.unit(5) for ``%`` and systemd.service(5) for ``$``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from replicator.printable_text import shown_line

_UNIT = """\
# {file}: `replicator service` made it. Put it into /etc/systemd/system/, then
#   systemctl daemon-reload && systemctl enable --now {shell_file}

[Unit]
Description={description}
Documentation=man:systemd.service(5)
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=1h
StartLimitBurst=20

[Service]
# Ready when the task copies, follows its sources or waits for its operator. While it starts or
# stops, it asks for more time itself, for as long as it lives.
Type=notify
NotifyAccess=main
TimeoutStartSec=5min
# A batch that is under way may take two minutes.
TimeoutStopSec=3min
WatchdogSec=2min
ExecStart={command}
WorkingDirectory={folder}
User={user}
{environment}# The folder of the control sockets, which all tasks share: as this user,
# XDG_RUNTIME_DIR=/run replicator status
Environment=XDG_RUNTIME_DIR=/run
RuntimeDirectory=replicator
RuntimeDirectoryMode=0700
RuntimeDirectoryPreserve=yes
# What a host makes once: compiled loops, an archive of Spark's classes.
Environment=XDG_CACHE_HOME=/var/cache
CacheDirectory=replicator
CacheDirectoryMode=0700
StateDirectory=replicator
StateDirectoryMode=0700
Environment=HOME=/var/lib/replicator
# Exit code 1: a check failed, or a server refused; a later start may do. 2: the task file or the
# command line is wrong, or `replicator switch` has finished the task, so that no start can do.
Restart=on-failure
RestartSec=30
RestartPreventExitStatus=2
# The task ends Java and its workers itself.
KillMode=mixed
KillSignal=SIGTERM
# The task takes its sizes from this limit; without it, from the memory of the machine.
#MemoryMax=4G

NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectHome=read-only
# Spark keeps its session folder there.
PrivateTmp=yes
PrivateDevices=yes
ProtectProc=invisible
ProtectClock=yes
ProtectHostname=yes
ProtectControlGroups=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RemoveIPC=yes
LockPersonality=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM
UMask=0077
# Not MemoryDenyWriteExecute: Java and the compiled loops write code.

[Install]
WantedBy=multi-user.target
"""


def unit_file_name(task: str) -> str:
    """Return the name of the unit's file, with the escapes of systemd-escape(1)."""
    parts = [
        chr(byte) if re.fullmatch(r"[A-Za-z0-9:_.-]", chr(byte)) else f"\\x{byte:02x}"
        for byte in task.encode()
    ]
    return f"replicator-{''.join(parts)}.service"


def systemd_unit(
    task: str,
    command: Sequence[str],
    folder: str,
    user: str,
    environment: Mapping[str, str],
    secrets: Sequence[str],
) -> str:
    """Return the text of the unit.

    ``command`` and ``folder`` have absolute paths. ``environment`` has variables besides those that
    every task gets. ``secrets`` are the names of variables with passwords, which must not be in a
    unit, because everybody can read it. Raises ValueError for a word with a control character.
    """
    for text in (*command, folder, *environment.values()):
        if shown_line(text) != text:
            raise ValueError(f"{shown_line(text)} has a control character: no unit can hold it")
    file = unit_file_name(task)
    given = "".join(f"Environment={_word(f'{k}={v}')}\n" for k, v in environment.items())
    if secrets:
        held = f"# NAME=VALUE, a line each, readable by root alone: {', '.join(secrets)}\n"
        path = f"/etc/replicator/{file.removesuffix('.service')}.env"
        given += f"{held}EnvironmentFile={path}\n"
    return _UNIT.format(
        file=file,
        shell_file=f"'{file}'" if "\\" in file else file,
        description=f"replicator task {shown_line(task).replace('%', '%%')}",
        # A dollar sign has a special meaning only in a command line.
        command=" ".join(_word(word).replace("$", "$$") for word in command),
        # The path extends to the end of the line and has no quotes.
        folder=folder.replace("%", "%%"),
        user=user,
        environment=given,
    )


def _word(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    plain = re.fullmatch(r"[A-Za-z0-9_./:=@+,-]+", escaped)
    return escaped if plain else f'"{escaped}"'
