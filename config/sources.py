"""Sources: the servers that are replicated from, in the form of DM's source files."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from config.base import Section
from config.endpoints import Endpoint
from config.rules import EventFilterRules
from config.values import Flag, Whole


class Source(Section):
    """One upstream server."""

    source_id: Annotated[str, Field(min_length=1, max_length=32)]
    """Name of the source, at most 32 characters; instances refer to it."""
    connection: Annotated[Endpoint, Field(alias="from")]
    """The server and the account used there."""
    enable_gtid: Flag = False
    """Follow the source by GTID instead of file and position."""
    server_id: Annotated[Whole, Field(ge=0, le=2**32 - 1)] = 0
    """Server id used as a replica of the source; 0: one is chosen."""
    flavor: Literal["", "mysql", "mariadb"] = ""
    """Kind of server; empty: it is found out."""
    case_sensitive: Flag = False
    """Names in the rules for this source are matched by case."""
    filters: tuple[EventFilterRules, ...] = ()
    """Event filters of the source."""
    enable: Flag = True
    """Whether DM's tasks may use the source."""
    charset: str = ""
    """Charset of DM's connections to the source."""
    auto_fix_gtid: Flag = False
    """Repair of GTID sets, in old versions."""
    meta_dir: str = ""
    """Folder of the relay log's position, in old versions."""
    tracer: dict[str, Any] = Field(default_factory=dict)
    """Tracing, in old versions."""
    enable_relay: Flag = False
    """Keep a local copy of the binlog (relay log)."""
    relay_dir: str = ""
    """Folder of the relay log."""
    relay_binlog_name: str = ""
    """Binlog file that the relay log starts at."""
    relay_binlog_gtid: str = ""
    """GTID set that the relay log starts at."""
    purge: dict[str, Any] = Field(default_factory=dict)
    """Cleaning up of the relay log."""
    checker: dict[str, Any] = Field(default_factory=dict)
    """Automatic resuming of a paused task."""
