"""Performance targets on two shared cores, and whether a run meets them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["TARGETS", "Target", "judged"]


@dataclass(frozen=True, slots=True)
class Target:
    """``bound`` is the smallest accepted value of ``key``, or the largest if ``most`` is set."""

    what: str
    key: str
    bound: float
    most: bool = False

    def met(self, value: float) -> bool:
        return value <= self.bound if self.most else value >= self.bound


TARGETS = (
    Target("read through Spark, of the raw drain", "read.ratio_to_raw", 0.8),
    Target("read through Spark, of the naive source", "read.ratio_to_stomp_py", 3),
    Target("read: CPU of all of Spark's processes, us a message", "read.cpu_us_per_message", 20, most=True),
    Target("read with a journal, of read without", "journal.ratio", 0.85),
    Target("write through Spark, of the raw transactions", "write.ratio_to_raw", 0.85),
    Target("AMQP read through Spark, of the STOMP read", "read.amqp.ratio_to_stomp", 1.8),
    Target("AMQP read of STOMP's messages, of the STOMP read", "read.amqp.core.ratio_to_stomp", 1),
    Target("AMQP read: CPU of the runner, us a message", "read.amqp.runner_us_per_message", 4, most=True),
    Target("AMQP read: CPU of all of Spark's processes", "read.amqp.cpu_us_per_message", 18, most=True),
    Target("AMQP write through Spark, of the STOMP write", "write.amqp.ratio_to_stomp", 1.5),
    Target("AMQP decode of 1 KB, of the STOMP decoder", "decode.amqp.1_kb_ratio", 1.3),
    Target("AMQP decode of 100 B, of the STOMP decoder", "decode.amqp.100_b_ratio", 1.8),
    Target("AMQP decode of 10 KB, of the STOMP decoder", "decode.amqp.10_kb_ratio", 1),
    Target("AMQP decode of mixed layouts, of the STOMP decoder", "decode.amqp.mixed_ratio", 1.4),
    Target("AMQP decode of typed properties, of the STOMP decoder", "decode.amqp.typed_ratio", 1.5),
    Target("AMQP decode, 1 % broken rows, of none", "decode.amqp.slow_rows_ratio", 0.5),
    Target("AMQP encode of strings, of the STOMP encoder", "encode.amqp.plain_ratio", 0.8),
    Target("AMQP encode of typed properties, of STOMP's strings", "encode.amqp.typed_ratio", 1.3),
    Target("decode, one header layout, rows/s on a core", "decode.rows_per_s", 700_000),
    Target("decode, mixed layouts, rows/s on a core", "decode.mixed_rows_per_s", 350_000),
    Target("encode with nulls and escapes, frames/s on a core", "encode.rows_per_s", 1_500_000),
    Target("one more read task, ms of CPU of its Python worker", "task.workers_ms", 15, most=True),
    Target("latency at 100 messages/s, median, ms", "latency.p50_ms", 200, most=True),
    Target("idle query, broker and Spark, percent of a core", "idle.percent", 2, most=True),
    Target("load() to the first row, warm JVM, s", "start.seconds", 5, most=True),
    Target("import pyspark_jms, ms", "import.ms", 10, most=True),
)


def judged(document: Mapping[str, Any]) -> list[tuple[Target, float, bool]]:
    """The targets whose value is in the document, with the value and whether it meets the target."""
    return [(one, document[one.key], one.met(document[one.key])) for one in TARGETS if one.key in document]
