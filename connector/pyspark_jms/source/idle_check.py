"""Whether a silence is the end of what the brokers can send now: they answer, and nothing has come meanwhile.

A broker that collects its garbage is silent too, and sends more afterwards.
"""

from collections.abc import Hashable, Sequence
from weakref import WeakKeyDictionary

from pyspark_jms.errors import JMSError
from pyspark_jms.source.links import SourceLink

__all__ = ["IdleCheck"]


class IdleCheck:
    """A link has at most one question without an answer, and forgets it with its connection."""

    def __init__(self) -> None:
        self._asked: WeakKeyDictionary[SourceLink, tuple[str, Hashable]] = WeakKeyDictionary()
        """The receipt, and what had come when it was requested."""
        self._answered: WeakKeyDictionary[SourceLink, Hashable] = WeakKeyDictionary()

    def is_end(self, links: Sequence[SourceLink], come: Hashable) -> bool:
        """Call it again and again while nothing arrives. ``come`` changes whenever a message arrives.

        A broker that gives no sign of life never proves an end.
        """
        try:
            for link in links:
                self._look(link, come)
        except JMSError as error:
            if not error.transient:
                raise
            return False  # a connection that was lost this moment is replaced before the next poll
        return all(self._answered.get(link) == come for link in links)

    def _look(self, link: SourceLink, come: Hashable) -> None:
        if link in self._asked:
            asked, had_come = self._asked[link]
            if not link.has_receipt(asked):
                link.check()  # a connection that has ended never answers
                return
            link.await_receipt(asked)
            del self._asked[link]
            self._answered[link] = had_come
        if self._answered.get(link) != come and (receipt := link.ping()) is not None:
            self._asked[link] = receipt, come
