"""Whether this process is still the only writer of the journal that it opened."""

from pyspark_jms.delivery.journal.contents import META_NAME
from pyspark_jms.delivery.journal.folder import Folder
from pyspark_jms.delivery.journal.lock import WriterLock
from pyspark_jms.errors import IllegalStateError, JournalLockedError

__all__ = ["WriterGuard"]


class WriterGuard:
    """Create it when the journal has been opened: it remembers which file ``journal`` that was."""

    def __init__(self, folder: Folder, lock: WriterLock) -> None:
        self._folder = folder
        self._lock = lock
        self._identity = folder.identity(META_NAME)

    def meta_replaced(self) -> None:
        """Accept the new file ``journal`` that this process itself wrote."""
        self._identity = self._folder.identity(META_NAME)

    def require(self) -> None:
        """``JournalLockedError`` unless this journal and its lock are the files that were opened.

        Call it before each write and each acknowledgement: a clean-up job, or a file system that lost the lock, can
        give the folder to a second writer.
        """
        self._lock.require()
        if self._folder.identity(META_NAME) != self._identity:
            raise JournalLockedError(
                f"The file {META_NAME} of journal {self._folder.path} was removed or replaced: this is another journal"
                " now.",
                "Start the query again with the journalLocation of its checkpoint.",
            )

    def require_open(self, event: str) -> None:
        """As ``require``; ``IllegalStateError`` when the journal has been closed."""
        if not self._lock.held:
            raise IllegalStateError(f"Event {event} in a journal that is closed.")
        self.require()
