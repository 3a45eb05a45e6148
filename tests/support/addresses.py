"""Queues of an embedded Artemis whose address has another name, and what an address is."""


def create_in(broker, address, queue, kind="ANYCAST"):
    api = broker.jvm.org.apache.activemq.artemis.api.core
    made = api.QueueConfiguration.of(queue).setAddress(address).setRoutingType(getattr(api.RoutingType, kind))
    broker.server.createQueue(made)


def types_of(broker, address):
    """Its routing types, or None."""
    found = broker.server.getAddressInfo(broker.jvm.org.apache.activemq.artemis.api.core.SimpleString.of(address))
    return None if found is None else found.getRoutingTypes().toString()
