"""Facts ↔ sealed lines: the format of all files of the journal except segments. Pure.

A line is a digest, a blank and a JSON object. The digest covers the line before, so an altered, removed or moved line
is detected. A crash can leave the last line half written, which ``read_log`` detects and leaves out.
"""

import json
from hashlib import blake2b
from typing import Any, TypeAlias

from pyspark_jms.errors import CorruptJournalError

__all__ = ["Facts", "read_line", "read_log", "write_line"]

Facts: TypeAlias = dict[str, Any]

_DIGEST_BYTES = 16
_DIGEST_LETTERS = 2 * _DIGEST_BYTES
_LF = b"\n"


def write_line(facts: Facts, before: bytes = b"") -> bytes:
    """The line that follows the line ``before``."""
    text = json.dumps(facts, separators=(",", ":")).encode()
    return _seal(text, before) + b" " + text + _LF


def _seal(text: bytes, before: bytes) -> bytes:
    return blake2b(before[:_DIGEST_LETTERS] + text, digest_size=_DIGEST_BYTES).hexdigest().encode()


def read_line(data: bytes, name: str) -> Facts:
    """A file that is one line; ``name`` is for errors."""
    facts = _read(data.removesuffix(_LF), b"")
    if facts is None or not data.endswith(_LF):
        raise CorruptJournalError(f"File {name} of the journal is not what was written.")
    return facts


class Log:
    """The content of a file of lines. ``length``: bytes of its whole lines; ``last``: the last of them."""

    def __init__(self) -> None:
        self.entries: list[Facts] = []
        self.last = b""
        self.length = 0


def read_log(data: bytes, name: str) -> Log:
    """Every whole line. A last line without its end was never confirmed to a caller: a crash interrupted the write."""
    log = Log()
    *lines, rest = data.split(_LF)
    for number, line in enumerate(lines, 1):
        facts = _read(line, log.last)
        if facts is None:
            raise CorruptJournalError(f"Line {number} of the journal's file {name} is not what was written.")
        log.entries.append(facts)
        log.last = line
        log.length += len(line) + 1
    if rest and _read(rest[:-1], log.last) is not None:
        raise CorruptJournalError(f"The last line of the journal's file {name} does not end as it was written.")
    return log


def _read(line: bytes, before: bytes) -> Facts | None:
    digest, text = line[:_DIGEST_LETTERS], line[_DIGEST_LETTERS + 1 :]
    if digest != _seal(text, before) or line[_DIGEST_LETTERS : _DIGEST_LETTERS + 1] != b" ":
        return None
    facts: Facts = json.loads(text)
    return facts
