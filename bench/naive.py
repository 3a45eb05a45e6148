"""A minimal source for comparison: stomp.py, a listener, tuples, ``SimpleDataSourceStreamReader``.

The source acknowledges a message when Spark has committed its batch, so no message is lost. It has three problems that
this comparison does not show: it acknowledges the last batch only when another batch follows, nothing limits the size
of a batch or the messages in memory, and stopping a query costs every waiting message a delivery attempt.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import stomp
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.types import StructType

__all__ = ["NaiveSource"]

_PLUMBING = frozenset(
    {
        "ack", "content-length", "correlation-id", "destination", "destination-type", "expires", "message-id",
        "persistent", "priority", "redelivered", "reply-to", "subscription", "timestamp", "type",
    }
)  # fmt: skip


class _Listener(stomp.ConnectionListener):  # type: ignore[misc]  # stomp.py has no type information
    def __init__(self) -> None:
        self.frames: deque[Any] = deque()

    def on_message(self, frame: Any) -> None:
        self.frames.append(frame)


class _NaiveReader(SimpleDataSourceStreamReader):
    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = dict(options)
        self._connection: Any = None
        self._listener: Any = None
        self._unacknowledged: deque[tuple[int, str]] = deque()

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {"seq": 0}

    def read(self, start: dict[str, int]) -> tuple[Iterator[tuple[Any, ...]], dict[str, int]]:
        if self._connection is None:
            self._connect()
        rows, end = [], start["seq"]
        for _ in range(len(self._listener.frames)):
            frame = self._listener.frames.popleft()
            end += 1
            self._unacknowledged.append((end, frame.headers["ack"]))
            rows.append(_row(frame))
        return iter(rows), {"seq": end}

    def readBetweenOffsets(  # noqa: N802
        self,
        start: dict[str, int],  # noqa: ARG002
        end: dict[str, int],  # noqa: ARG002
    ) -> Iterator[tuple[Any, ...]]:
        return iter(())  # a queue cannot be read again

    def commit(self, end: dict[str, int]) -> None:
        while self._unacknowledged and self._unacknowledged[0][0] <= end["seq"]:
            self._connection.ack(self._unacknowledged.popleft()[1])

    def _connect(self) -> None:
        host, port = self._options["brokerurl"].removeprefix("stomp://").split(":")
        self._listener = _Listener()
        self._connection = stomp.Connection12([(host, int(port))])
        self._connection.set_listener("", self._listener)
        self._connection.connect(self._options["user"], self._options["password"], wait=True)
        headers = {"subscription-type": "ANYCAST", "consumer-window-size": "-1"}  # otherwise it stalls after 10 KB
        self._connection.subscribe(self._options["queue"], id="1", ack="client-individual", headers=headers)


def _row(frame: Any) -> tuple[Any, ...]:
    headers = frame.headers
    return (
        headers["message-id"],
        headers["destination"],
        datetime.fromtimestamp(int(headers["timestamp"]) / 1000, UTC),
        headers["redelivered"] == "true",
        int(headers["priority"]),
        headers.get("correlation-id"),
        headers.get("type"),
        {name: value for name, value in headers.items() if name not in _PLUMBING},
        frame.body,
    )


class NaiveSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "naive_stomp"

    def schema(self) -> str:
        return (
            "message_id string, destination string, sent timestamp, redelivered boolean, priority int,"
            " correlation_id string, type string, properties map<string,string>, text string"
        )

    def simpleStreamReader(self, schema: StructType) -> SimpleDataSourceStreamReader:  # noqa: ARG002, N802
        return _NaiveReader(self.options)
