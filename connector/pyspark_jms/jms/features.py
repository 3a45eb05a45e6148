"""``Feature``: the ways of reading and writing, by which tables of brokers and queues decide; ``Refusal``: why not."""

from dataclasses import dataclass
from enum import Enum

from pyspark_jms.errors import UnsupportedError

__all__ = ["Feature", "Refusal"]


class Feature(Enum):
    """The value is how a page names it."""

    AT_LEAST_ONCE_READ = "at-least-once read"
    CONNECTIONS = "`connections` above 1"
    JOURNAL = "read with a journal"
    REGISTER = "exactly-once read without a journal"
    BATCH_READ = "batch read, `peek`"
    WRITE = "write"
    EXACTLY_ONCE_WRITE = "exactly-once write"
    DEAD_LETTERS = "the query's dead letters"
    STAGING_QUEUE = "staging queue"
    COMMIT_LEDGER = "commit ledger"
    TOPICS = "read of a topic, durable subscription"
    SHARED = "`sharedSubscription`"
    SELECTOR_WITHOUT_CLIENT_ID = "`selector` of a shared subscription without `clientId`"
    STREAMS = "`streamOffset`"
    TRANSACTIONS = "`transaction=task`"
    RELAY = "column `destination` in a transaction, `move`"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a broker, or every broker over a protocol, cannot do something, and what to do instead."""

    fact: str
    """A sentence. ``{broker}`` stands for the broker's name."""

    remedy: str

    def error(self, broker: object, reason: str = "") -> UnsupportedError:
        """``reason``: a sentence of the broker's, that ends the fact."""
        fact = self.fact.replace("{broker}", str(broker))
        return UnsupportedError(f"{fact.removesuffix('.')}: {reason}" if reason else fact, self.remedy)
