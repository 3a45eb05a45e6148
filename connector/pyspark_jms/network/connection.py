"""What the connections of both protocols have in common, and the lock of their state. Knows no protocol."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Generic, Protocol, Self, TypeVar

from pyspark_jms.network.address import Address

__all__ = ["OnConnection", "OpenConnection", "ParallelCalls", "StateCondition", "closed_on"]

D_co = TypeVar("D_co", covariant=True)

_POLL_SECONDS = 0.05


@contextmanager
def closed_on(error: type[BaseException], close: Callable[[], object]) -> Iterator[None]:
    """Call ``close`` if the block raises such an error."""
    try:
        yield
    except error:
        close()
        raise


class ParallelCalls:
    """Calls that run at the same time, each on a thread of its own if there are several."""

    def __init__(self) -> None:
        self._errors: list[BaseException] = []

    def run(self, calls: Sequence[Callable[[], object]]) -> None:
        """Raise the first error, when the other calls have ended, too: ``check`` ends them."""
        if len(calls) == 1:
            self._run(calls[0])
        else:
            with ThreadPoolExecutor(len(calls)) as pool:
                list(pool.map(self._run, calls))
        if self._errors:
            raise self._errors[0]

    def _run(self, call: Callable[[], object]) -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001  # raised by run
            self._errors.append(error)

    def check(self) -> None:
        """Raise ``CancelledError`` if another call has failed."""
        if self._errors:
            raise CancelledError

    def pause(self, sleep: Callable[[float], None], seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.check()
            sleep(min(left, _POLL_SECONDS))


class StateCondition(threading.Condition):
    """Notified when messages, confirmations, an error or the end of a connection arrive. Connections may share one.

    It is the lock of a connection's state, and it wakes the thread that waits for a change of the state.
    """

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()
        """What the connections of one protocol count for the progress of a query, by the name of the metric."""
        self.changes = 0
        """How often it was notified: while this stays the same, nothing has arrived."""

    def notify_all(self) -> None:
        self.changes += 1
        super().notify_all()

    def await_(
        self, ready: Callable[[], object], check: Callable[[], object], seconds: float, late: Callable[[], Exception]
    ) -> None:
        """Wait until ``ready``. ``check`` raises what ended the connection; ``late`` is the error after ``seconds``."""
        deadline = time.monotonic() + seconds
        with self:
            while not ready():
                check()
                left = deadline - time.monotonic()
                if left <= 0:
                    raise late()
                self.wait(left)

    def poll(self, ready: Callable[[], object], seconds: float, check: Callable[[], object] = lambda: None) -> bool:
        """Return whether it is ``ready`` within ``seconds``. ``check`` may raise; both may send, the lock is free."""
        deadline = time.monotonic() + seconds
        while not (is_ready := bool(ready())) and (left := deadline - time.monotonic()) > 0:
            check()
            self.pause(min(left, _POLL_SECONDS))
        return is_ready

    def pause(self, seconds: float = _POLL_SECONDS) -> None:
        """Return when something arrives, or after ``seconds``."""
        with self:
            self.wait(seconds)


class OpenConnection(Protocol[D_co]):
    @property
    def dialect(self) -> D_co: ...

    @property
    def address(self) -> Address: ...

    @property
    def server(self) -> str | None:
        """The name and version that the broker gives itself."""

    @property
    def is_down(self) -> bool: ...

    @property
    def received_bytes(self) -> int:
        """All bytes of the connection: they grow while one large message arrives."""

    def close(self) -> None:
        """Give back what was not acknowledged. The last link of a connection disconnects."""

    def drop(self) -> None:
        """Leave a connection that is lost, without a word to the broker: it gives everything back."""


class UsedConnection(OpenConnection[D_co], Protocol):
    users: set[object]
    """The links that share the connection. The last one closes it."""


class OnConnection(Generic[D_co]):
    """A link, with the facts of its connection."""

    connection: UsedConnection[D_co]

    def shares(self, other: "OnConnection[Any]") -> bool:
        return self.connection is other.connection

    @property
    def dialect(self) -> D_co:
        return self.connection.dialect

    @property
    def address(self) -> Address:
        return self.connection.address

    @property
    def server(self) -> str | None:
        return self.connection.server

    @property
    def is_down(self) -> bool:
        return self.connection.is_down

    @property
    def received_bytes(self) -> int:
        return self.connection.received_bytes

    def close(self) -> None:
        """Close the connection, unless others use it."""
        self.connection.users.discard(self)
        if not self.connection.users:
            self.connection.close()

    def drop(self) -> None:
        self.connection.users.discard(self)
        self.connection.drop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
