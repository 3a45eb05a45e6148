"""The states of a message, in tables: state and event → state. A move that no table has is an internal error. Pure.

    received           in memory, no sequence yet
    durable            in a segment of the journal, with a sequence
    offered            below an offset that Spark was given: it may be in the offset log, its rows may be read
    done               Spark's commit log holds its batch
    acknowledging      its ack was sent, the receipt has not come
    acknowledged       the broker's receipt has come (with a journal: and is recorded)
    lost               its connection is gone, so no ack can name it: the broker may redeliver it
    ack on redelivery  the same, and its batch is done: it is acknowledged when it is redelivered
    forgotten          not known any more: if it is redelivered, it is a new message

Without a journal one thing follows from the other, so there is one table. With a journal a message leads two
lives from ``durable`` on, and neither waits for the other: ``WITH_JOURNAL`` is the broker's side of it,
``IN_JOURNAL`` Spark's. *Planned* is not a state: nothing depends on it, and a batch whose rows Spark's
optimizer found useless is done without it.

``Ledger`` and ``JournaledLedger`` look every move up in these tables, for a range of messages at a time.
"""

from enum import Enum

from pyspark_jms.delivery.state_table import StateTable

__all__ = ["IN_JOURNAL", "WITHOUT_JOURNAL", "WITH_JOURNAL", "Event", "MessageState"]


class MessageState(Enum):
    RECEIVED = "received"
    DURABLE = "durable"
    OFFERED = "offered"
    DONE = "done"
    ACKNOWLEDGING = "acknowledging"
    ACKNOWLEDGED = "acknowledged"
    LOST = "lost"
    ACK_ON_REDELIVERY = "ack on redelivery"
    FORGOTTEN = "forgotten"


class Event(Enum):
    STORE = "store"
    """Written to the journal and synced."""
    OFFER = "offer"
    """An offset beyond it is given to Spark."""
    FINISH = "finish"
    """Spark requests the batch after it, or commits it."""
    ACK = "ack"
    """Its ack is written."""
    RECEIPT = "receipt"
    """The broker confirms the ack."""
    LOSE = "lose"
    """The connection is gone, or the process that had it."""
    RECOGNISE = "recognise"
    """The broker redelivers it: it has an id again that an ack can name."""
    GIVE_UP = "give up"
    """Too many or too old to be remembered."""


WITHOUT_JOURNAL = StateTable.of_one(
    "a message without a journal",
    {
        MessageState.RECEIVED: {Event.OFFER: MessageState.OFFERED, Event.LOSE: MessageState.FORGOTTEN},
        MessageState.OFFERED: {Event.FINISH: MessageState.DONE, Event.LOSE: MessageState.LOST},
        MessageState.DONE: {Event.ACK: MessageState.ACKNOWLEDGING, Event.LOSE: MessageState.ACK_ON_REDELIVERY},
        MessageState.ACKNOWLEDGING: {
            Event.RECEIPT: MessageState.ACKNOWLEDGED,
            Event.LOSE: MessageState.ACK_ON_REDELIVERY,
        },
        MessageState.LOST: {
            Event.RECOGNISE: MessageState.OFFERED,
            Event.FINISH: MessageState.ACK_ON_REDELIVERY,
            Event.LOSE: MessageState.LOST,
        },
        MessageState.ACK_ON_REDELIVERY: {
            Event.RECOGNISE: MessageState.DONE,
            Event.LOSE: MessageState.ACK_ON_REDELIVERY,
            Event.GIVE_UP: MessageState.FORGOTTEN,
        },
        MessageState.ACKNOWLEDGED: {},
        MessageState.FORGOTTEN: {},
    },
)

WITH_JOURNAL = StateTable.of_one(
    "a message with a journal",
    {
        MessageState.RECEIVED: {Event.STORE: MessageState.DURABLE, Event.LOSE: MessageState.FORGOTTEN},
        MessageState.DURABLE: {Event.ACK: MessageState.ACKNOWLEDGING, Event.LOSE: MessageState.LOST},
        MessageState.ACKNOWLEDGING: {Event.RECEIPT: MessageState.ACKNOWLEDGED, Event.LOSE: MessageState.LOST},
        MessageState.LOST: {
            Event.RECOGNISE: MessageState.DURABLE,
            Event.LOSE: MessageState.LOST,
            Event.GIVE_UP: MessageState.FORGOTTEN,
        },
        MessageState.ACKNOWLEDGED: {},
        MessageState.FORGOTTEN: {},
    },
)

IN_JOURNAL = StateTable.of_one(
    "a message in a journal",
    {
        MessageState.DURABLE: {Event.OFFER: MessageState.OFFERED},
        MessageState.OFFERED: {Event.FINISH: MessageState.DONE},
        MessageState.DONE: {},
    },
)
