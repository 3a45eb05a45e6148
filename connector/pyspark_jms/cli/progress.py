"""A line on a terminal that shows how far a long command is. Elsewhere it shows nothing."""

import sys
import time
from types import TracebackType
from typing import Self, TextIO

__all__ = ["ProgressLine", "counted"]

_SECONDS_BETWEEN = 0.2


def counted(messages: int) -> str:
    return f"{messages:,} message{'' if messages == 1 else 's'}"


class ProgressLine:
    """``with ProgressLine("sent") as progress: progress.show(messages)``. The line is removed at the end."""

    def __init__(self, done: str, stream: TextIO | None = None) -> None:
        """``done``: the participle after the number of messages."""
        self._done = done
        self._stream = sys.stderr if stream is None else stream
        self._is_terminal = self._stream.isatty()
        self._began = time.monotonic()
        self._shown_at = self._began
        self._width = 0

    def show(self, messages: int) -> None:
        now = time.monotonic()
        if not self._is_terminal or now - self._shown_at < _SECONDS_BETWEEN:
            return
        self._shown_at = now
        self._write(f"{counted(messages)} {self._done}, {messages / (now - self._began):,.0f}/s")

    def _write(self, line: str) -> None:
        self._stream.write("\r" + line.ljust(self._width) + ("" if line else "\r"))
        self._stream.flush()
        self._width = len(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._width:
            self._write("")
