"""The engine of reading without Spark: what the streaming runner would hold."""

from pyspark_jms.source.receiver import BatchReceiver
from pyspark_jms.source.stopping import StopRequest
from pyspark_jms.source.stream import QueryJournal
from pyspark_jms.spark.protocols import reading_of


class OpenReceiver(BatchReceiver):
    """With the journal that belongs to it, and that is closed with it."""

    def __init__(self, options, start=0, stop=None, **how):
        stop = stop or StopRequest()
        reading = reading_of(options)
        self._journal = QueryJournal(reading, stop)
        try:
            super().__init__(reading, stop, store=self._journal.store(), sequence=start, **how)
        except BaseException:
            self._journal.close()
            raise

    def journal(self):
        return self._journal.store()

    def close(self):
        super().close()
        self._journal.close()

    def crash(self):
        """As the process would die: nothing is given back, and the journal's lock is free."""
        for link in self.links:
            link.drop()
        self._journal.close()
