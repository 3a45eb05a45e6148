"""``Feature``: the ways of reading and writing, by which tables of brokers and queues decide."""

from enum import Enum

__all__ = ["Feature"]


class Feature(Enum):
    """The value is how a page names it."""

    AT_LEAST_ONCE_READ = "at-least-once read"
    CONNECTIONS = "`connections` above 1"
    JOURNAL = "read with a journal"
    REGISTER = "exactly-once read over AMQP"
    BATCH_READ = "batch read, `peek`"
    WRITE = "write"
    EXACTLY_ONCE_WRITE = "exactly-once write"
    DEAD_LETTERS = "the query's dead letters"
    STAGING_QUEUE = "staging queue"
    COMMIT_LEDGER = "commit ledger"
