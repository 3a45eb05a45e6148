"""An offset in Spark's commit log and the tokens of its readers → the next offset, and what its tasks get. Pure."""

from collections.abc import Mapping

from pyspark_jms.delivery.register.outcomes import Keep, OtherPlace, Read, Stop
from pyspark_jms.delivery.register.token import Offset, Token

__all__ = ["keeps", "planned", "reads", "require_place"]


def keeps(start: Offset, stream: str, readers: int) -> tuple[Keep, ...]:
    """Return what the planner asks of the registers: of those that the next batch uses, and of those that the last one
    did.
    """
    asked = sorted({*range(readers), *start.readers})
    return tuple(_keep(start, stream, reader) for reader in asked)


def _keep(start: Offset, stream: str, reader: int) -> Keep:
    is_known = reader < len(start.names)
    return Keep(
        stream=stream,
        name=start.names[reader] if is_known else None,
        reader=reader,
        batch=start.batch,
        used=start.used[reader] if is_known else start.batch,
        next=start.next_of(reader),
    )


def planned(start: Offset, kept: Mapping[int, Token], readers: int, *, stream: str) -> Offset:
    """The offset of the next batch, with ``readers`` readers. ``kept``: the tokens."""
    count = max(readers, len(start.names))
    names = [kept[reader].name if reader in kept else start.names[reader] for reader in range(count)]
    numbers = [kept[reader].next if reader in kept else start.next_of(reader) for reader in range(count)]
    used = [start.batch + 1 if reader < readers else start.used[reader] for reader in range(count)]
    return Offset(
        stream=stream,
        address=start.address,
        broker=start.broker,
        batch=start.batch + 1,
        names=tuple(names),
        used=tuple(used),
        next=tuple(numbers),
    )


def reads(start: Offset, end: Offset) -> tuple[Read, ...]:
    """Return what each task of the batch asks."""
    if end.stream is None:
        return ()
    known = dict(enumerate(start.used))
    return tuple(
        Read(
            stream=end.stream,
            name=end.names[reader],
            reader=reader,
            batch=end.batch,
            since=known.get(reader, start.batch),
            next=end.next_of(reader),
        )
        for reader in end.readers
    )


def require_place(offset: Offset, address: str, broker: str | None) -> Stop | None:
    """L16: registers that the log names are at one address of one broker; elsewhere nothing begins anew."""
    if offset.address not in {None, address}:
        return Stop(OtherPlace("address", str(offset.address), address))
    if broker is not None and offset.broker not in {None, broker}:
        return Stop(OtherPlace("broker", str(offset.broker), broker))
    return None
