"""Counts the connections of a broker by its notifications, so that short connections are counted, too."""

import itertools

from waiting import wait_until

_CREATED, _DESTROYED = "CONNECTION_CREATED", "CONNECTION_DESTROYED"


class Connections:
    """``with Connections(broker) as seen``: afterwards ``made``, and ``most`` at a time. They must end before."""

    def __init__(self, broker):
        self._broker = broker
        self._queue = "connections.seen"
        self._before = broker.server.getConnectionCount()

    def __enter__(self):
        artemis = self._broker.jvm.org.apache.activemq.artemis
        core = artemis.api.core
        queue = core.QueueConfiguration.of(self._queue).setAddress("activemq.notifications").setDurable(False)
        queue.setRoutingType(core.RoutingType.MULTICAST)
        kinds = f"_AMQ_NotifType = '{_CREATED}' OR _AMQ_NotifType = '{_DESTROYED}'"
        self._broker.server.createQueue(queue.setFilterString(kinds))
        self._plugin = artemis.core.server.plugin.impl.NotificationActiveMQServerPlugin()
        self._plugin.setSendConnectionNotifications(True)
        self._broker.server.registerBrokerPlugin(self._plugin)
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            now = self._broker.server.getConnectionCount
            # A connection of an earlier test may end late, and was counted before.
            wait_until(lambda: now() <= self._before, what="the end of every connection")
        self._broker.server.unRegisterBrokerPlugin(self._plugin)
        events = [self._kind(reference) for reference in self._broker._waiting(self._queue)]
        self._broker.server.destroyQueue(
            self._broker.jvm.org.apache.activemq.artemis.api.core.SimpleString(self._queue)
        )
        self.made = events.count(_CREATED)
        self.most = max(itertools.accumulate((1 if event == _CREATED else -1 for event in events), initial=0))

    def _kind(self, reference):
        with self._broker._releasing(reference.getMessage()) as message:
            return str(message.getObjectProperty("_AMQ_NotifType"))
