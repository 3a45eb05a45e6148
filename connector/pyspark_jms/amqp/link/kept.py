"""Connections that a worker keeps between its tasks: nothing is locked, received or in a transaction on them.

To connect costs a broker half of what a task without messages costs it. Spark uses a Python worker for many tasks, and
ends it when it has been idle for a minute: its connections end with it.
"""

from collections import OrderedDict

from pyspark_jms.amqp.link.connection import Connection, connect
from pyspark_jms.amqp.link.transactions import Transactions
from pyspark_jms.errors import JMSError
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.network.state_condition import StateCondition

__all__ = ["connected", "keep"]

_MOST = 4
"""Of a process. The one that was used longest ago is closed."""

_kept: OrderedDict[ConnectionSettings, tuple[Connection, Transactions]] = OrderedDict()


def connected(settings: ConnectionSettings, condition: StateCondition | None = None) -> tuple[Connection, Transactions]:
    """A connection that was kept, if it has not ended, or a new one. It belongs to the caller until ``keep``."""
    kept = _kept.pop(settings, None)
    if kept is not None:
        try:
            kept[0].check()
        except JMSError:
            kept[0].drop()
        else:
            return kept
    connection = connect(settings, condition)
    return connection, Transactions(connection)


def keep(settings: ConnectionSettings, connection: Connection, transactions: Transactions) -> None:
    """Without a link that receives, and without an open transaction."""
    other = _kept.pop(settings, None)
    _kept[settings] = connection, transactions
    if other is not None:
        other[0].close()
    while len(_kept) > _MOST:
        _, (oldest, _) = _kept.popitem(last=False)
        oldest.close()
