import pytest
from state_diagrams import arrows

from pyspark_jms.amqp.wire.states import (
    CONNECTION,
    LINK,
    ConnectionEvent,
    ConnectionState,
    EndpointEvent,
    EndpointMachine,
    EndpointState,
)
from pyspark_jms.errors import IllegalStateError, MalformedFrameError


@pytest.mark.parametrize(
    ("table", "states", "events"),
    [(CONNECTION, ConnectionState, ConnectionEvent), (LINK, EndpointState, EndpointEvent)],
)
def test_every_state_is_reached_and_every_event_is_used(table, states, events):
    first = next(iter(states))
    assert {first.value} | {after for _, _, after in arrows(table)} == set(states) == set(table.moves)
    assert {event for _, event, _ in arrows(table)} == set(events)


def test_a_life():
    machine = EndpointMachine(CONNECTION, ConnectionState.START, "connection")
    for event in ("connect", "logged in", "peer's open", "close", "peer's close"):
        machine.move(ConnectionEvent(event))
    assert machine.state is ConnectionState.CLOSED


def test_an_event_that_a_state_does_not_have():
    machine = EndpointMachine(LINK, EndpointState.ENDED, "link x")
    with pytest.raises(MalformedFrameError, match=r"start.* link x .*ended"):
        machine.move(EndpointEvent.PEER_START)
    with pytest.raises(IllegalStateError, match=r"'end' .*'ended' \(link x\)"):
        machine.move(EndpointEvent.END)
