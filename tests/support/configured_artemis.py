"""An embedded Artemis with elements of broker.xml that ``EmbeddedArtemis`` has no parameter for."""

from pyspark_jms.testing import EmbeddedArtemis

CORE_NAMING = "<amqp-use-core-subscription-naming>true</amqp-use-core-subscription-naming>"
"""Artemis then escapes the dots in the names of the queues of AMQP subscriptions."""


class ConfiguredArtemis(EmbeddedArtemis):
    """``core`` stands before the acceptors; ``replaced`` are pairs of texts in the file."""

    def __init__(self, *, core="", replaced=(), **options):
        super().__init__(**options)
        self._core, self._replaced = core, replaced

    def _configure(self):
        super()._configure()
        file = self.directory / "broker.xml"
        text = file.read_text().replace("<acceptors>", f"{self._core}<acceptors>", 1)
        for before, after in self._replaced:
            assert before in text
            text = text.replace(before, after)
        file.write_text(text)

    def queue_names(self):
        """Without those that the broker has by itself."""
        return {str(each) for each in self.server.getActiveMQServerControl().getQueueNames()} - {"DLQ", "ExpiryQueue"}
