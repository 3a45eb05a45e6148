"""The engine of reading without Spark: what the streaming runner would hold."""

import contextlib
import time

from waiting import await_count, wait_until

from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.query import open_watch
from pyspark_jms.source.receiver import BatchReceiver
from pyspark_jms.source.stopping import StopRequest
from pyspark_jms.source.stores.received import QueryJournal
from pyspark_jms.spark.protocols import reading_of


class OpenReceiver(BatchReceiver):
    """With the journal and the watch that belong to it, and that are closed with it."""

    def __init__(self, options, start=0, stop=None, *, drain=False, **how):
        stop, self._watch = stop or StopRequest(), None
        how |= {"drain_since_ms": time.time() * 1000} if drain else {}
        reading = reading_of(options)
        self._journal = QueryJournal(reading, stop)
        try:
            super().__init__(reading, stop, store=self._journal.store(), sequence=start, **how)
        except BaseException:
            self._journal.close()
            raise
        if self._journal.store() or not drain:
            self._watch = open_watch(reading, self)

    def journal(self):
        return self._journal.store()

    def progress(self):
        watched = self._watch.metrics() if self._watch else {}
        return {**super().progress(watched), **watched}

    def close(self):
        if self._watch:
            self._watch.close()
        super().close()
        self._journal.close()

    def crash(self):
        """As the process would die: nothing is given back, and the journal's lock is free."""
        if self._watch:
            self._watch.close()
        for link in self.links:
            link.drop()
        self._journal.close()


def read_through_a_kill(broker, access, queue, count):
    """Read all messages of the queue, kill the broker, and acknowledge the messages when they have come again."""
    with contextlib.closing(OpenReceiver(SourceOptions.parse(access | {"queue": queue}))) as receiver:
        wait_until(lambda: receiver.next_batch_end() == count)
        broker.kill()
        broker.start()
        wait_until(lambda: receiver.next_batch_end() == count and receiver.progress()["recognised"] == count)
        receiver.acknowledge_through(count)
        wait_until(lambda: receiver.next_batch_end() == count and receiver.progress()["acknowledged"] == count)
    await_count(broker, queue, 0)
