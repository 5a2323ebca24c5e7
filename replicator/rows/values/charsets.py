"""The servers' character sets: Python codecs, and the character sets of collation numbers.

If a server's table differs from Python's codec of the same name, or Python has no codec that maps
every byte as the server does, a codec ``mysql_…`` is registered when this module is imported. The
codecs were compared with a real server, byte by byte.

Source of the collations: ID and CHARACTER_SET_NAME in information_schema.COLLATIONS of MySQL 9.7,
and COLLATION_CHARACTER_SET_APPLICABILITY of MariaDB 10.11, which agree if both have a number.
Character sets that are no longer used are left out.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable

from replicator.binlog.errors import BinlogError

_CODECS = {
    "ascii": "ascii",
    "big5": "big5",
    "cp1250": "cp1250",
    "cp1251": "cp1251",
    "cp1256": "cp1256",
    "cp1257": "cp1257",
    "cp850": "cp850",
    "cp852": "cp852",
    "cp866": "mysql_cp866",
    "cp932": "cp932",
    "euckr": "cp949",
    "gb18030": "gb18030",
    "gb2312": "gb2312",
    "gbk": "gbk",
    "greek": "mysql_greek",
    "hebrew": "mysql_hebrew",
    "hp8": "hp_roman8",
    "koi8r": "koi8_r",
    "koi8u": "mysql_koi8u",
    "latin1": "mysql_latin1",
    "latin2": "iso8859_2",
    "latin5": "iso8859_9",
    "latin7": "iso8859_13",
    "macce": "mac_latin2",
    "macroman": "mac_roman",
    "sjis": "shift_jis",
    "tis620": "tis_620",
    "ucs2": "utf_16_be",
    "ujis": "euc_jp",
    "utf16": "utf_16_be",
    "utf16le": "utf_16_le",
    "utf32": "utf_32_be",
    "utf8": "utf_8",
    "utf8mb3": "utf_8",
    "utf8mb4": "utf_8",
}

# The base codec, and the bytes that only the servers map, or map differently.
_PATCHES = {
    "mysql_latin1": ("cp1252", {b: chr(b) for b in (0x81, 0x8D, 0x8F, 0x90, 0x9D)}),
    "mysql_cp866": ("cp866", {0xFC: "\u207f", 0xFD: "\xb2"}),
    "mysql_greek": ("iso8859_7", {0xA1: "\u02bd", 0xA2: "\u02bc"}),
    "mysql_hebrew": ("iso8859_8", {0xAF: "\u203e"}),
    "mysql_koi8u": ("koi8_u", {0x95: "\u2022"}),
}
_UNDEFINED = "\ufffe"  # marks a byte without a character in Python's character maps


def codec(charset: str) -> str:
    """Return the name of the Python codec for a server's character set.

    Raises BinlogError if there is none: columns with this character set can be copied unchanged,
    but not converted.
    """
    try:
        return _CODECS[charset.lower()]
    except KeyError:
        raise BinlogError(
            f"text in character set {charset!r} cannot be converted to another one: give the "
            "target's column the same character set as the shards'"
        ) from None


def encode_label(label: str, charset: str) -> bytes:
    """Return an ENUM or SET label (or SET's comma) as the server stores it in ``charset``.

    ``binary`` and the empty name mean UTF-8. Raises BinlogError if the character set is not known
    or lacks a character of the label.
    """
    name = codec(charset) if charset not in ("", "binary") else "utf_8"
    try:
        return label.encode(name)
    except UnicodeEncodeError as error:
        raise BinlogError(f"the label {label!r} does not exist in {charset}: {error}") from error


def transcoder(source: str, target: str) -> Callable[[bytes], bytes]:
    """Return a conversion between two codecs, both named by `codec`.

    It raises BinlogError for bytes that are not text in ``source`` or have no counterpart.
    """

    def convert(value: bytes) -> bytes:
        try:
            return value.decode(source).encode(target)
        except UnicodeError as error:
            raise BinlogError(
                f"a text cannot be converted from {source} to {target}: {_reason(error)}; give the "
                "target's column the same character set as the shards'"
            ) from error

    return convert


def _reason(error: UnicodeError) -> str:
    """Return the reason of an error, without the text in which it occurred."""
    if isinstance(error, UnicodeDecodeError | UnicodeEncodeError):
        return f"{error.reason} at place {error.start}"
    return "it is not possible"


def _patched(name: str) -> codecs.CodecInfo | None:
    if name not in _PATCHES:
        return None
    base, patches = _PATCHES[name]
    characters = [bytes([b]).decode(base, "replace") for b in range(256)]
    for byte, character in patches.items():
        characters[byte] = character
    table = "".join(characters).replace("\ufffd", _UNDEFINED)
    reverse = codecs.charmap_build(table)
    return codecs.CodecInfo(
        lambda text, errors="strict": codecs.charmap_encode(text, errors, reverse),
        lambda data, errors="strict": codecs.charmap_decode(bytes(data), errors, table),
        name=name,
    )


codecs.register(_patched)


_IDS: dict[str, tuple[range, ...]] = {
    "": (range(63, 64),),
    "ascii": (range(11, 12), range(65, 66)),
    "big5": (range(1, 2), range(84, 85)),
    "cp1250": (range(26, 27), range(34, 35), range(44, 45), range(66, 67), range(99, 100)),
    "cp1251": (range(14, 15), range(23, 24), range(50, 53)),
    "gb18030": (range(248, 251),),
    "gbk": (range(28, 29), range(87, 88)),
    "latin1": (
        range(5, 6),
        range(8, 9),
        range(15, 16),
        range(31, 32),
        range(47, 50),
        range(94, 95),
    ),
    "latin2": (range(2, 3), range(9, 10), range(21, 22), range(27, 28), range(77, 78)),
    "utf8mb3": (
        *(range(33, 34), range(76, 77), range(83, 84), range(192, 216), range(223, 224)),
        *(range(576, 579), range(2048, 2248)),
    ),
    "utf8mb4": (
        *(range(45, 47), range(224, 248), range(255, 324), range(608, 611)),
        range(2304, 2504),
    ),
}

_CHARSETS = {number: name for name, ranges in _IDS.items() for ids in ranges for number in ids}


def charset_of(collation: int) -> str | None:
    """Return the character set of a collation's number, "" for binary; None if it is unknown."""
    return _CHARSETS.get(collation)
