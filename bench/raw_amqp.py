"""The upper limits over AMQP 1.0: one connection that drains a queue, and two that fill one, without Spark.

Nothing of a received message is parsed. ``send`` creates the transfers before the clock starts, ``fill`` while sending.
"""

import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import TypeAlias

from bench.amqp_connection import AmqpConnection
from bench.job import Job, Measured
from bench.raw import meter
from pyspark_jms.amqp.wire.types import Accepted, Disposition, TransactionalState, encode_performative, frame
from pyspark_jms.amqp.wire.values import Symbol, TypedValue, encode

__all__ = ["drain", "fill", "message", "section", "send", "wide"]

_CREDIT = 20_000
_ACK_EVERY = 2_000
_CONNECTIONS = 2
_CREATED_MS = 1_760_000_000_000
_WORD = struct.Struct(">I").pack
_LIST, _MAP = 0xD0, 0xD1

Prepared: TypeAlias = tuple[bytes, Sequence[bytes]]
"""A transaction's id and its transfer frames."""


def drain(job: Job) -> Measured:
    """Measures from the first credit to the confirmation of the last acknowledgements: one transaction for each 2,000
    messages, as settled acceptances of a range.
    """
    with AmqpConnection(job) as connection:
        link = connection.attach_receiver(job.queue)
        connection.attach_coordinator()
        transaction = connection.new_transaction()
        with meter(job) as measuring:
            connection.socket.sendall(connection.declare() + connection.grant(link, 0, _CREDIT))
            received = acknowledged = rounds = 0
            while acknowledged < job.messages:
                received += connection.read()
                if received - acknowledged >= _ACK_EVERY or received >= job.messages:
                    received += connection.read_until(lambda: connection.transactions)
                    accepting = _accepting(acknowledged, received - 1, transaction) + connection.discharge(transaction)
                    connection.socket.sendall(
                        accepting + connection.declare() + connection.grant(link, received, _CREDIT)
                    )
                    transaction, acknowledged, rounds = connection.transactions.popleft(), received, rounds + 1
            connection.read_until(lambda: connection.confirmed >= rounds)
    return measuring.measured(received)


def _accepting(first: int, last: int, transaction: bytes) -> bytes:
    state = TransactionalState(txn_id=transaction, outcome=Accepted())
    return frame(0, Disposition(role=True, first=first, last=last, settled=True, state=state))


def send(job: Job) -> Measured:
    """Sends presettled transfers in transactions on two connections. Each waits for the confirmation of its discharge
    before the next begins. The transactions are declared before the clock starts.
    """
    return _send(job, _prepared)


def fill(job: Job) -> Measured:
    """Fills a queue, not to be measured. Transfers are created while sending, so memory does not limit their number."""
    return _send(job, _created)


def _send(job: Job, transactions: Callable[[AmqpConnection, int, Job, list[range]], Iterator[Prepared]]) -> Measured:
    failures: list[Exception] = []
    with ExitStack() as stack:
        threads = []
        for number in range(_CONNECTIONS):
            connection = stack.enter_context(AmqpConnection(job))
            link = connection.attach_sender(job.queue)
            connection.attach_coordinator()
            share = transactions(connection, link, job, list(job.transactions())[number::_CONNECTIONS])
            threads.append(threading.Thread(target=_send_all, args=(connection, link, share, failures), daemon=True))
        with meter(job) as measuring:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(job.time_limit)
    if failures or any(thread.is_alive() for thread in threads):
        raise failures[0] if failures else TimeoutError(f"not sent within {job.time_limit:g} s")
    return measuring.measured(job.messages)


def _prepared(connection: AmqpConnection, link: int, job: Job, shares: list[range]) -> Iterator[Prepared]:
    ids = [connection.new_transaction() for _ in shares]
    first, prepared = connection.delivery_id, []
    for transaction, rows in zip(ids, shares, strict=True):
        prepared.append((transaction, _transfers(job, rows, link, first, transaction)))
        first += len(rows) + 1  # a discharge follows
    return iter(prepared)


def _created(connection: AmqpConnection, link: int, job: Job, shares: list[range]) -> Iterator[Prepared]:
    for rows in shares:
        transaction = connection.new_transaction()
        yield transaction, _transfers(job, rows, link, connection.delivery_id, transaction)


def _send_all(
    connection: AmqpConnection, link: int, transactions: Iterator[Prepared], failures: list[Exception]
) -> None:
    try:
        for number, (transaction, frames) in enumerate(transactions, 1):
            begin = 0
            while begin < len(frames):
                connection.read_until(lambda: connection.credit(link) > 0)
                end = min(len(frames), begin + connection.credit(link))
                connection.socket.sendall(b"".join(frames[begin:end]))
                connection.sent(link, end - begin)
                begin = end
            connection.socket.sendall(connection.discharge(transaction))
            connection.read_until(lambda number=number: connection.confirmed >= number)  # type: ignore[misc]
    except Exception as error:  # noqa: BLE001 - the waiting thread raises it
        failures.append(error)


# --- messages ------------------------------------------------------------------------------------


def message(job: Job, i: int) -> bytes:
    """A bare message as a Java client sends a TextMessage (AMQP-JMS binding §3)."""
    own = [encode(part) for pair in job.properties_of(i).items() for part in pair]
    kind = encode(Symbol("x-opt-jms-msg-type")), b"\x51\x05", encode(Symbol("x-opt-jms-dest")), b"\x51\0"
    fields = [f"ID:bench:{i}", None, job.queue, *[None] * 6, TypedValue("timestamp", _CREATED_MS + i)]
    return b"".join(
        [
            section(0x70, wide(_LIST, encode(job.persistent))),
            section(0x72, wide(_MAP, *kind)),
            section(0x73, wide(_LIST, *map(encode, fields))),
            section(0x74, wide(_MAP, *own)) if own else b"",
            section(0x77, encode(job.text_of(i))),
        ]
    )


def wide(constructor: int, *values: bytes) -> bytes:
    """A list or a map with a size of four bytes, as brokers send it (AMQP 1.0 §1.2.3)."""
    data = b"".join(values)
    return bytes((constructor,)) + struct.pack(">II", len(data) + 4, len(values)) + data


def section(code: int, value: bytes) -> bytes:
    """A section of a message (AMQP 1.0 §3.2)."""
    return b"\x00\x53" + bytes((code,)) + value


_MAX_PAYLOAD = (1 << 17) - 512


def _transfers(job: Job, rows: range, link: int, first_id: int, transaction: bytes) -> list[bytes]:
    """Presettled transfers; a message that is larger than a frame has several, in one entry."""
    state = encode_performative(TransactionalState(txn_id=transaction))
    return [_transfer(message(job, i), link, first_id + n, state) for n, i in enumerate(rows)]


def _transfer(data: bytes, link: int, identifier: int, state: bytes) -> bytes:
    number = _WORD(identifier)
    frames = []
    for begin in range(0, len(data), _MAX_PAYLOAD):
        more = encode(begin + _MAX_PAYLOAD < len(data))
        fields = [bytes((0x52, link)), b"\x70" + number, b"\xa0\x04" + number, b"\x43", b"\x41", more, b"\x40", state]
        body = section(0x14, wide(_LIST, *fields)) + data[begin : begin + _MAX_PAYLOAD]
        frames.append(_WORD(len(body) + 8) + b"\x02\0\0\0" + body)
    return b"".join(frames)
