"""The life of a message, in tables: state and event → state. What a table does not have is a fault of ours. Pure.

    received        in memory, no sequence yet
    durable         in a segment of the journal, with a sequence
    offered         below an offset that Spark was given: it may be in Spark's log, its rows may be read
    done            Spark's log holds its batch
    acknowledging   its ACK was sent, the receipt is to come
    acknowledged    the broker's receipt is here (with a journal: and recorded)
    lost            its connection is gone, so no ACK can name it: the broker may send it again
    on sight        the same, and done: acknowledged as soon as it comes again; nobody waits for it
    forgotten       not known any more: should it come again, it is a new message

Without a journal one thing follows from the other, so there is one table. With a journal a message leads two
lives from ``durable`` on, and neither waits for the other: ``WITH_JOURNAL`` is the broker's side of it,
``IN_JOURNAL`` Spark's. *Planned* is no state: nothing depends on it, and a batch whose rows Spark's optimizer
found useless is done without it.

``Ledger`` and ``DurableLedger`` ask these tables for every move, for a range of messages at a time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from pyspark_jms.errors import IllegalStateError

__all__ = ["IN_JOURNAL", "WITHOUT_JOURNAL", "WITH_JOURNAL", "Event", "State", "Table"]


class State(Enum):
    RECEIVED = "received"
    DURABLE = "durable"
    OFFERED = "offered"
    DONE = "done"
    ACKNOWLEDGING = "acknowledging"
    ACKNOWLEDGED = "acknowledged"
    LOST = "lost"
    ON_SIGHT = "on sight"
    FORGOTTEN = "forgotten"


class Event(Enum):
    STORE = "store"
    """Written to the journal and synced."""
    OFFER = "offer"
    """An offset beyond it is given to Spark."""
    FINISH = "finish"
    """Spark asks for what follows its batch, or commits it."""
    ACK = "ack"
    """Its ACK is written."""
    RECEIPT = "receipt"
    """The broker confirms the ACK."""
    LOSE = "lose"
    """The connection is gone, or the process that had it."""
    RECOGNISE = "recognise"
    """The broker sends it again: there is an id again that an ACK can name."""
    GIVE_UP = "give up"
    """Nobody remembers that much for that long."""


@dataclass(frozen=True)
class Table:
    """``name`` completes "a message …"."""

    name: str
    moves: Mapping[State, Mapping[Event, State]]

    def after(self, state: State, event: Event, which: str = "") -> State:
        """Where the event leads; ``which`` messages it is about is said when it leads nowhere."""
        try:
            return self.moves[state][event]
        except KeyError:
            raise _illegal(f"{event.value!r} for a message {self.name} that is {state.value!r}", which) from None

    def nothing_for(self, event: Event, which: str = "") -> IllegalStateError:
        """The event came, and no message is in a state that knows it."""
        states = " or ".join(repr(state.value) for state, row in self.moves.items() if event in row)
        return _illegal(f"{event.value!r}, and no message {self.name} is {states}", which)


def _illegal(what: str, which: str) -> IllegalStateError:
    return IllegalStateError(
        f"Event {what}{which and f' ({which})'}.", "This is a fault of pyspark-jms: please report it with the log."
    )


def _table(name: str, moves: dict[State, dict[Event, State]]) -> Table:
    return Table(name, MappingProxyType({state: MappingProxyType(row) for state, row in moves.items()}))


WITHOUT_JOURNAL = _table(
    "without a journal",
    {
        State.RECEIVED: {Event.OFFER: State.OFFERED, Event.LOSE: State.FORGOTTEN},
        State.OFFERED: {Event.FINISH: State.DONE, Event.LOSE: State.LOST},
        State.DONE: {Event.ACK: State.ACKNOWLEDGING, Event.LOSE: State.ON_SIGHT},
        State.ACKNOWLEDGING: {Event.RECEIPT: State.ACKNOWLEDGED, Event.LOSE: State.ON_SIGHT},
        State.LOST: {Event.RECOGNISE: State.OFFERED, Event.FINISH: State.ON_SIGHT, Event.LOSE: State.LOST},
        State.ON_SIGHT: {Event.RECOGNISE: State.DONE, Event.LOSE: State.ON_SIGHT, Event.GIVE_UP: State.FORGOTTEN},
        State.ACKNOWLEDGED: {},
        State.FORGOTTEN: {},
    },
)

WITH_JOURNAL = _table(
    "with a journal",
    {
        State.RECEIVED: {Event.STORE: State.DURABLE, Event.LOSE: State.FORGOTTEN},
        State.DURABLE: {Event.ACK: State.ACKNOWLEDGING, Event.LOSE: State.LOST},
        State.ACKNOWLEDGING: {Event.RECEIPT: State.ACKNOWLEDGED, Event.LOSE: State.LOST},
        State.LOST: {Event.RECOGNISE: State.DURABLE, Event.LOSE: State.LOST, Event.GIVE_UP: State.FORGOTTEN},
        State.ACKNOWLEDGED: {},
        State.FORGOTTEN: {},
    },
)

IN_JOURNAL = _table(
    "in a journal",
    {
        State.DURABLE: {Event.OFFER: State.OFFERED},
        State.OFFERED: {Event.FINISH: State.DONE},
        State.DONE: {},
    },
)
