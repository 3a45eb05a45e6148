"""How many messages the re-evaluation of the selector dropped: counted in the tasks, reported to the runner."""

import logging
import struct

from pyspark_jms.source.mailbox import MailAddress, Mailbox, post

__all__ = ["DropReports", "report_dropped"]

_log = logging.getLogger("pyspark_jms.source")

_RECORD = struct.Struct("<qq")
"""What identifies the messages that a task decoded together (their first sequence), and how many it dropped."""


class DropReports:
    """In the runner. A task may run twice and report twice, so reports are kept until their batch is done."""

    def __init__(self) -> None:
        self._mailbox = Mailbox()
        self._open: dict[int, int] = {}
        self._done_through = 0
        self._total = 0

    def address(self) -> MailAddress | None:
        """For the tasks of a batch."""
        return self._mailbox.address()

    def total(self) -> int:
        """As reported so far: a task on another machine reports only to its own log."""
        for sequence, dropped in _RECORD.iter_unpack(self._mailbox.take()):
            if sequence >= self._done_through and sequence not in self._open:
                if not self._total:
                    _log.warning(
                        "! messages that do not match the selector are dropped: this broker does not hold them back"
                        " (progress counts them as selectorDropped)"
                    )
                self._open[sequence] = dropped
                self._total += dropped
        return self._total

    def release(self, sequence: int) -> None:
        """Every batch below ``sequence`` is done."""
        self.total()
        self._done_through = max(self._done_through, sequence)
        self._open = {first: dropped for first, dropped in self._open.items() if first >= sequence}

    def close(self) -> None:
        self._mailbox.close()


def report_dropped(address: MailAddress | None, first_sequence: int, dropped: int, key: int | None = None) -> None:
    """In a task, after it has dropped messages. ``key``: if several tasks count from the same sequence."""
    if address is None or not post(address, _RECORD.pack(first_sequence if key is None else key, dropped)):
        _log.warning(
            "! %d messages that do not match the selector are dropped (from sequence %d)", dropped, first_sequence
        )
