"""Make text from servers and files safe for a terminal or a log.

Names and values can contain characters that control a terminal (ECMA-48, "Control Functions": C0,
DEL, C1) or change the order in which a line is read (Unicode Standard Annex #9: bidirectional
formatting).
"""

from __future__ import annotations

import json
import re

_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_IN_TEXT = re.compile(f"[{_CONTROLS}]")
_IN_LINE = re.compile(f"[\t\n{_CONTROLS}]")
_NAMED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def printable_text(text: str) -> str:
    """Return a text with control characters as escapes (``\\x1b``); line ends are kept."""
    return _IN_TEXT.sub(_escape, text)


def shown_line(text: str) -> str:
    """Return a name or value in one line, with control characters as escapes."""
    return _IN_LINE.sub(_escape, text)


def shown_json(value: object, *, indent: int | None = None) -> str:
    """Return a value as JSON, without characters that control a terminal."""
    return safe_json(json.dumps(value, indent=indent, ensure_ascii=False))


def safe_json(text: str) -> str:
    """Return a JSON text with escapes for the control characters that JSON allows."""
    # Outside strings, JSON has no control characters except line ends.
    return _IN_TEXT.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return _NAMED.get(match[0]) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
