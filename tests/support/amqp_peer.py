"""The other side of an AMQP connection, in the same process and without a socket: it answers our protocol core."""

from pyspark_jms.amqp.wire.connection import Connection
from pyspark_jms.amqp.wire.sasl import Login
from pyspark_jms.amqp.wire.types import (
    AMQP_HEADER,
    SASL_HEADER,
    Attach,
    Begin,
    Declared,
    Disposition,
    Flow,
    Limits,
    Open,
    SaslMechanisms,
    SaslOutcome,
    TransactionalState,
    Transfer,
    decode_performative,
    frame,
)
from pyspark_jms.jms.secret_text import SecretText

WINDOW = 1_000


def connection(**limits):
    login = Login(user="me", password=SecretText("secret"))
    return Connection(
        container_id="test", hostname="host", login=login, idle_seconds=10, incoming_window=64, limits=Limits(**limits)
    )


def split(data):
    """Frames without protocol headers: performative and payload, None for an empty frame."""
    frames, at = [], 0
    while at < len(data):
        if data.startswith(b"AMQP", at):
            at += 8
            continue
        size = int.from_bytes(data[at : at + 4], "big")
        if size == 8:
            frames.append((None, b""))
        else:
            performative, payload = decode_performative(data, at + 8, at + size)
            frames.append((performative, bytes(data[payload : at + size])))
        at += size
    return frames


class Peer:
    def __init__(self, core=None):
        self.core = core or connection()

    def sent(self):
        """What our core sent since the last call: performatives and payloads."""
        return split(b"".join(self.core.data_to_send()))

    def send(self, *performatives, payload=b"", sasl=False, before=b""):
        data = b"".join(frame(0, each, payload, sasl=sasl) for each in performatives)
        self.core.receive_data(before + data)

    def log_in(self, *mechanisms, code=0):
        self.core.start()
        self.send(SaslMechanisms(sasl_server_mechanisms=mechanisms or ("PLAIN",)), sasl=True, before=SASL_HEADER)
        self.send(SaslOutcome(code=code), sasl=True)

    def open(self, **fields):
        """Log in, open and begin. Returns our session."""
        self.log_in()
        self.core.receive_data(AMQP_HEADER)
        self.send(Open(container_id="peer", **fields))
        self.send(Begin(remote_channel=0, next_outgoing_id=1, incoming_window=WINDOW, outgoing_window=WINDOW))
        self.sent()
        return self.core.session

    def attach(self, link, *, handle=None, source="there", target="there", credit=None, initial_delivery_count=0):
        """Answer the attach of a link of ours; grant credit to a sender."""
        handle = link.handle if handle is None else handle
        [(attach, _)] = [each for each in self.sent() if isinstance(each[0], Attach)]
        self.send(
            Attach(
                name=attach.name,
                handle=handle,
                role=not attach.role,
                source=attach.source if source == "there" else source,
                target=attach.target if target == "there" else target,
                initial_delivery_count=initial_delivery_count if attach.role else None,
            )
        )
        if credit is not None:
            self.flow(handle=handle, delivery_count=0, link_credit=credit)

    def flow(self, **fields):
        windows = {"next_incoming_id": 0, "incoming_window": WINDOW, "next_outgoing_id": 1, "outgoing_window": WINDOW}
        self.send(Flow(**(windows | fields)))

    def transfer(self, number, payload, handle=0, **fields):
        tag = number.to_bytes(4, "big")
        self.send(
            Transfer(handle=handle, delivery_id=number, delivery_tag=tag, message_format=0, **fields), payload=payload
        )

    def outcome(self, number, state, last=None):
        self.send(Disposition(role=True, first=number, last=last, settled=True, state=state))

    def declared(self, number, txn_id=b"t1"):
        self.outcome(number, Declared(txn_id=txn_id))


def in_transaction(txn_id=b"t1", outcome=None):
    return TransactionalState(txn_id=txn_id, outcome=outcome)
