"""What Spark's adapter calls of a streaming read: the driver receives, or the tasks do (exactly once over AMQP)."""

from collections.abc import Sequence
from typing import Any, Protocol

from pyspark_jms.source.readers.task import ReaderInput
from pyspark_jms.source.task_inputs import TaskInput

__all__ = ["SourceEngine"]


class SourceEngine(Protocol):
    """In the streaming runner. Offsets are the dictionaries that Spark logs."""

    def initial_offset(self) -> dict[str, Any]: ...

    def drain(self) -> None:
        """Read only what was sent before the first ``latest_offset`` (Trigger.AvailableNow)."""

    def latest_offset(self, start: dict[str, Any]) -> dict[str, Any]: ...

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[TaskInput | ReaderInput]: ...

    def commit(self, end: dict[str, Any]) -> None: ...

    def progress(self) -> dict[str, object]:
        """The figures of ``progress.sources[].latestOffset``."""

    def stop(self) -> None: ...
