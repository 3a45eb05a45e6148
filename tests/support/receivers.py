"""The engine of reading without Spark: what the streaming runner would hold."""

import time

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
