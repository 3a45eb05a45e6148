"""Which journal a checkpoint belongs to, and its position at that time: the mark that every offset carries. Pure.

Between its acknowledgement and the end of its batch a message is in the journal only. So a checkpoint with another
journal, or with an older copy of its own, is refused before the journal changes.
"""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark_jms.delivery.journal.store import JournalStore
from pyspark_jms.errors import DataLossError

__all__ = ["JournalMark", "require_own_messages", "require_same_journal"]


@dataclass(frozen=True, slots=True)
class JournalMark:
    """A journal as it was when an offset was given to Spark."""

    id: str
    next: int
    """The sequence of the first message that the journal did not hold yet."""


def require_same_journal(journal: JournalStore, mark: JournalMark | None, *, fail_on_data_loss: bool) -> None:
    """Raise ``DataLossError`` unless ``journal`` is the one of ``mark``, at least as far as it was then.

    Without ``fail_on_data_loss`` a journal that holds nothing yet takes the place of one that is lost, and an older
    copy is accepted. The journal of another checkpoint never is. ``mark`` is None in the offsets of a new checkpoint
    and of a query without a journal: see ``require_own_messages``.
    """
    if mark is None:
        return
    own, *replaced = journal.ids
    if mark.id != own and mark.id not in replaced:
        _require_new(journal, mark, fail_on_data_loss=fail_on_data_loss)
    elif mark.id == own and mark.next > journal.position.next and fail_on_data_loss:
        raise DataLossError(
            f"The journal {journal.path} ends before sequence {journal.position.next}, and had reached {mark.next} when"
            " the checkpoint was written: it is an older copy. The messages in between were acknowledged.",
            "Restore the newest copy. With failOnDataLoss=false the query continues without these messages.",
        )


def _require_new(journal: JournalStore, mark: JournalMark, *, fail_on_data_loss: bool) -> None:
    if not journal.is_new:
        raise DataLossError(
            f"The journal {journal.path} (id {journal.ids[0]}) does not belong to this checkpoint, which was written"
            f" with journal {mark.id}. Nothing was changed.",
            "Give the journalLocation that belongs to the checkpoint. If that journal is lost, name an empty folder and"
            " set failOnDataLoss=false: messages that only the lost journal held are then lost.",
        )
    if fail_on_data_loss:
        raise DataLossError(
            f"The journal {journal.path} is empty, and the checkpoint was written with journal {mark.id}.",
            "Give the journalLocation that belongs to the checkpoint. If that journal is lost, set"
            " failOnDataLoss=false: messages that only the lost journal held are then lost.",
        )
    journal.replace(mark.id)


def require_own_messages(journal: JournalStore, reads: Callable[[str, str], bool]) -> None:
    """Raise ``DataLossError`` if the journal holds messages of another query. For a checkpoint that names no journal.

    ``reads(source, dialect)``: whether the query reads this source.
    """
    for segment in journal.segments():
        if not reads(segment.source, segment.dialect):
            raise DataLossError(
                f"The journal {journal.path} (id {journal.ids[0]}) holds messages of {segment.source}, which this query"
                " does not read, and its checkpoint names no journal. Nothing was changed.",
                "Give this query a journalLocation of its own. If the journal is its own, and the query reads another"
                " queue now, start it with its old queue first, until the journal is empty.",
            )
