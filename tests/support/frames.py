"""The frames that faults are timed by: which bytes begin them, and in whose direction they go."""

from dataclasses import dataclass

_HEAD = b"\x02\0\0\0\0\x53"
"""AMQP 1.0 §2.3: what follows a frame's size on channel 0, up to the code of the performative."""
_TO_SIZE = 4
_COORDINATOR_BYTES = 41
"""Of a transfer to the coordinator, before the message in it."""


@dataclass(frozen=True)
class Frame:
    name: str
    pattern: bytes
    from_broker: bool = False
    back: int = 0
    """Bytes of the frame before the pattern."""

    def hold(self, proxy, **options):
        """Hold the next of these in the proxy. Returns the direction."""
        way = proxy.to_client if self.from_broker else proxy.to_broker
        way.hold_at(self.pattern, back=self.back, **options)
        return way


def _stomp(command, *, from_broker=False):
    return Frame(command, f"{command}\n".encode(), from_broker)


def _amqp(name, code, *, from_broker=False):
    return Frame(name, _HEAD + bytes([code]), from_broker, back=_TO_SIZE)


def _request(name, code):
    """A message to the coordinator of transactions (§4.2, §4.3)."""
    return Frame(name, b"\0\x53\x77\0\x53" + bytes([code]), back=_COORDINATOR_BYTES)


ACK = _stomp("ACK")
RECEIPT = _stomp("RECEIPT", from_broker=True)
STOMP_SOURCE = (_stomp("SUBSCRIBE"), ACK, _stomp("MESSAGE", from_broker=True), RECEIPT)

LOGIN = Frame("protocol header", b"AMQP\3\1\0\0")
DISPOSITION = _amqp("disposition", 0x15)
DECLARE, DISCHARGE = _request("declare", 0x31), _request("discharge", 0x32)
CLOSE = _amqp("close", 0x18)
LOCK = Frame("attach to the token", b"\xa1\5token", back=14)
"""Names the link of the register's consumer."""
OUTCOME = _amqp("outcome", 0x15, from_broker=True)
"""The broker's answer to a declare, a discharge or an unsettled message."""
READER_LOCK = Frame("attach to the register of reader 0", b"\xa1\x010")
"""Names the link that is the lock."""
ATTACH, _FLOW, _TRANSFER, _DETACH = (
    _amqp(name, code) for name, code in (("attach", 0x12), ("flow", 0x13), ("transfer", 0x14), ("detach", 0x16))
)
_MESSAGE = _amqp("message", 0x14, from_broker=True)
AMQP_SOURCE = (LOGIN, ATTACH, _FLOW, _MESSAGE, DISPOSITION, DISCHARGE, DECLARE, OUTCOME, _DETACH)
AMQP_SINK = (LOGIN, ATTACH, DECLARE, _TRANSFER, DISCHARGE, OUTCOME, CLOSE)
AMQP_READERS = (*AMQP_SOURCE, READER_LOCK, _TRANSFER)
AMQP_SINK_ONCE = (*AMQP_SINK, LOCK, _FLOW, _MESSAGE, DISPOSITION, _DETACH)
