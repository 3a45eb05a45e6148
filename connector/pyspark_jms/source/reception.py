"""Links → the ledger of a read on the driver: which are read, what waits in them, and when nothing more is to come.

The one thread that Spark's calls come on is here; the threads of the links only fill buffers.
"""

import time
from collections.abc import Iterable

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.errors import JMSError
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.ack_loop import AckLoop
from pyspark_jms.source.admission import Waiting
from pyspark_jms.source.diverting import Diverter
from pyspark_jms.source.draining import Drain
from pyspark_jms.source.end_of_queue import EndOfQueue, end_of_reading
from pyspark_jms.source.links import SourceLink
from pyspark_jms.source.subscriptions import MAX_SHORT_SESSIONS

__all__ = ["Reception"]


class Reception:
    """Which subscriptions are read, what waits, and when nothing more is to come.

    If ``drain`` is None, the query goes on until it is stopped.
    """

    def __init__(self, options: SourceOptions, ack_loop: AckLoop, diverter: Diverter, drain: Drain | None) -> None:
        self._options = options
        self._ack_loop = ack_loop
        self._subscriptions, self._ledger, self._counts = ack_loop.subscriptions, ack_loop.ledger, ack_loop.counts
        self._diverter = diverter
        self._drain = drain
        self._for_now = EndOfQueue[SourceLink](lambda link: link.ping())
        self._end = end_of_reading(options.idle_timeout, lost=self._replace)
        self._ends_in_a_row, self._received_at_end = 0, 0
        self._known_links = list(self._subscriptions.links)
        """The links that the drain knows. A connection that was replaced is another link."""

    # --- what waits ----------------------------------------------------------------------------

    def waiting(self) -> Waiting:
        received = {subscription: link.waiting() for subscription, link in enumerate(self._subscriptions.links)}
        messages, size = self._ledger.waiting_messages, self._ledger.waiting_bytes
        for subscription in self._open_subscriptions():
            messages, size = messages + received[subscription][0], size + received[subscription][1]
        return Waiting(messages, size, no_room=self.journal_is_full)

    def activity(self) -> tuple[int, int]:
        """Changes while messages arrive on the subscriptions that are read, also during a large message."""
        links = self._subscriptions.links
        return self._ledger.recognised, sum(
            links[subscription].received_bytes for subscription in self._open_subscriptions()
        )

    def has_all(self, waiting: Waiting) -> bool:
        """Return True if every broker has answered a question sent after ``waiting``: it has no more for now."""
        come = self._ledger.offered, self._ledger.recognised, waiting.messages, waiting.size
        open_ = [self._subscriptions.links[subscription] for subscription in self._open_subscriptions()]
        asked: list[SourceLink] = []  # one link of each connection: its answer follows what the others were sent
        for link in open_:
            if not any(link.shares(each) for each in asked):
                asked.append(link)
        return self._for_now.is_reached(asked, come)

    @property
    def journal_is_full(self) -> bool:
        """No more messages are received until finished ones are deleted."""
        journal, store = self._options.journal, self._ack_loop.store
        return journal is not None and store is not None and store.segment_bytes >= journal.max_bytes

    def _open_subscriptions(self) -> list[int]:
        """Return the subscriptions to take from: none while the journal is full, and in a drain those not yet ended."""
        if self.journal_is_full:
            return []
        left_out = {*self._subscriptions.absent, *(self._drain.ended if self._drain else ())}
        return [each for each in range(len(self._subscriptions.links)) if each not in left_out]

    # --- taking it -----------------------------------------------------------------------------

    def check(self) -> None:
        """Raise what stops the query; send away what is too large; acknowledge what was redelivered."""
        self._reopen()
        for link in self._subscriptions.links:
            try:
                link.check()
            except JMSError as error:
                if not (link.is_down and error.transient):
                    raise  # a connection that was lost this moment is replaced before the next poll
        for subscription in self._open_subscriptions():
            self._diverter.divert_oversized(self._subscriptions.links[subscription])
        self._take_redelivered()

    def take_all(self) -> None:
        """Everything that may be taken; with a journal it is durable then, and acknowledged."""
        self._take(self._open_subscriptions())
        self._ledger.store_received()
        self._ack_loop.acknowledge_all()

    def _take(self, subscriptions: Iterable[int]) -> None:
        links, taken = self._subscriptions.links, self._ack_loop.taken
        subscriptions = list(subscriptions)
        for subscription in subscriptions:
            taken.setdefault(subscription, []).extend(links[subscription].take())
        self._ack_loop.replace_dead(subscription for subscription in subscriptions if taken[subscription])
        for subscription in subscriptions:
            blocks = taken.get(subscription, [])  # of a lost connection none: the broker redelivers them
            while blocks and self._into_ledger(subscription, links[subscription], blocks[0]):
                del blocks[0]

    def _into_ledger(self, subscription: int, link: SourceLink, block: MessageBlock) -> bool:
        """Return False if the connection is gone, and the ledger has not got the block."""
        drain = self._drain
        upto = drain.sent_before_start(subscription, link, block, now_ms=time.time() * 1000) if drain else len(block)
        unmappable = self._diverter.unmappable(link.dialect, link.subscription.destination, block, upto)
        known = self._ledger.redelivered(subscription, block) if unmappable else ()
        bad = {index: why for index, why in unmappable.items() if index not in known}
        if bad and not self._diverter.divert(link, block, bad):
            return False
        self._counts.redelivered += link.redelivered(block)
        self._counts.received += upto
        self._ledger.receive(subscription, block, upto, without=bad)
        return True

    def _take_redelivered(self) -> None:
        """On subscriptions that are not read any more, but may redeliver what is to be acknowledged."""
        for subscription in self._drain.ended if self._drain else ():
            if self._ledger.expects(subscription):
                self._take([subscription])
                self._ack_loop.acknowledge(subscription)

    # --- AvailableNow --------------------------------------------------------------------------

    def _reopen(self) -> bool:
        """After a lost connection, read its subscription and those beside it from the head of the queue again.

        The broker gives the messages to a connection beside the lost one behind later messages, and the first later
        message ends the reading of a subscription.
        """
        links, known = self._subscriptions.links, self._known_links
        if self._drain is None:
            return False
        lost = {subscription for subscription in range(len(links)) if links[subscription] is not known[subscription]}
        beside = {each for subscription in lost for each in self._subscriptions.beside(subscription)}
        self._ack_loop.begin_again(sorted(beside))
        self._drain.ended -= lost | beside
        self._known_links = list(links)
        return bool(lost)

    def is_drained(self, quiet: float) -> bool:
        """Return whether everything was taken that was sent before the start. ``quiet`` is the number of seconds since
        something arrived.
        """
        drain, links = self._drain, self._subscriptions.links
        if drain is None:
            return False
        watched = [
            subscription
            for subscription in range(len(links))
            if subscription not in self._subscriptions.absent
            and (subscription not in drain.ended or self._ledger.expects(subscription))
        ]
        come = self._ledger.offered, self._ledger.recognised, self.waiting()
        if watched and not self._end.is_reached([links[each] for each in watched], come, quiet=quiet, wait=True):
            return False
        drain.ended.update(watched)
        return True

    def _replace(self, link: SourceLink, end: JMSError) -> None:
        """Replace a connection that was lost while it was asked whether there is more.

        Raise ``end`` when so many in a row have ended there, and nothing was received: Classic does not answer while it
        waits for more consumers.
        """
        received = self._counts.received + self._ledger.recognised
        again = self._ends_in_a_row if received == self._received_at_end else 0
        self._ends_in_a_row, self._received_at_end = again + 1, received
        if self._ends_in_a_row >= MAX_SHORT_SESSIONS:
            raise end
        self._ack_loop.reconnect(self._subscriptions.links.index(link))
