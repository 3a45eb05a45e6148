"""``pyspark-jms demo``: orders from a Java application → a queue → Spark → queues → a Java application, over AMQP.

The demo starts a broker and a Spark, and compares the result with the expected one. It removes its files at the end.
"""

import contextlib
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark_jms.errors import IllegalStateError
from pyspark_jms.tools.testing.embedded import EmbeddedArtemis
from pyspark_jms.tools.testing.jars import ARTEMIS_VERSION
from pyspark_jms.tools.testing.jms_client import JmsClient, JmsMessage, Typed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

__all__ = ["ORDERS", "Order", "differences", "expected", "run"]

QUEUE = "orders"
EUROPE = ("AT", "DE", "ES", "FR", "IT", "NL", "PL")
REVIEW_FROM = Decimal(1000)
OUTPUTS = tuple(f"{QUEUE}.{name}" for name in ("europe", "world", "review", "invalid"))
_PROPERTIES = ("channel", "gift", "weight", "total")
_MAP = 2
"""The number of the order that is a MapMessage."""

_LOG_LINES = 25
_RUN_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Order:
    """An order of a customer. An order that is not ``valid`` has a text that is not JSON; one is a MapMessage."""

    number: int
    customer: str
    country: str
    quantity: int
    price: Decimal
    channel: str
    valid: bool = True
    is_map: bool = False

    @property
    def body(self) -> str | dict[str, Any]:
        """Return what the Java application sends: a JSON text, a map, or another text."""
        if not self.valid:
            return f"Dear shop, {self.quantity} of the usual please. {self.customer}"
        order = {"order": self.number, "customer": self.customer, "country": self.country}
        if self.is_map:
            typed = {"quantity": Typed("short", self.quantity), "price": Typed("double", float(self.price))}
            return {name: Typed.of(value) for name, value in order.items()} | typed
        return json.dumps(order | {"quantity": self.quantity, "price": float(self.price)}, ensure_ascii=False)

    @property
    def headers(self) -> dict[str, Any]:
        return {"type": "order", "priority": 9 if self.channel == "phone" else 4}

    @property
    def properties(self) -> dict[str, Any]:
        return {"channel": self.channel, "gift": self.number % 5 == 0, "weight": Typed("float", 1.5)}


def _orders() -> Iterator[Order]:
    customers = (("Ada", "DE"), ("Grace", "US"), ("José", "ES"), ("花子", "JP"), ("Łukasz", "PL"), ("Noor", "NL"))
    prices = ("4.50", "19.99", "0.85", "349.00")
    for number in range(20):
        customer, country = customers[number % len(customers)]
        price = Decimal(prices[number % len(prices)])
        channel = ("web", "shop", "phone")[number % 3]
        valid, is_map = number not in {6, 17}, number == _MAP
        yield Order(1001 + number, customer, country, 1 + number % 7, price, channel, valid=valid, is_map=is_map)


ORDERS: tuple[Order, ...] = tuple(_orders())


def run() -> int:
    """Run the demo and print its steps; 0 if the result is the expected one."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="pyspark-jms-demo-") as folder:
        log = Path(folder, "spark.log")
        with EmbeddedArtemis() as broker:
            _print_step(f"Broker    Artemis {ARTEMIS_VERSION} at {broker.amqp_url}", began)
            _send(broker)
            _print_step(f"Sent      {len(ORDERS)} orders to queue {QUEUE}, by a Java JMS client", began)
            if problem := _spark_job(broker, folder, log, began):
                return _fail(f"The Spark job failed.\n{problem}", log)
            received = list(_receive(broker))
            print(f"\n{_table(received)}\n\n{_describe_map(received)}")
            problems = differences(received) + _find_remaining_messages(broker)
            if problems:
                return _fail(str(IllegalStateError("\n".join(problems), "Please report a bug.")), log)
    print(f"\nEvery order was received once, from the expected queue. Queue {QUEUE}, its outputs and DLQ are empty.")
    _print_step("Done", began)
    return 0


def _print_step(what: str, began: float) -> None:
    print(f"{time.monotonic() - began:5.1f} s  {what}", flush=True)


def _fail(what: str, log: Path) -> int:
    lines = log.read_text(errors="replace").splitlines()[-_LOG_LINES:] if log.exists() else []
    print(what, *(f"  spark | {line}" for line in lines), sep="\n", file=sys.stderr)
    return 1


# --- the job -----------------------------------------------------------------------------------


def _spark_job(broker: EmbeddedArtemis, folder: str, log: Path, began: float) -> str | None:
    """Run the Spark job from the queue to the output queues; return the text of an error, or None."""
    from pyspark.errors import PySparkException

    access = {"brokerUrl": broker.amqp_url, "user": broker.user, "password": broker.password}
    try:
        with _spark(folder, log) as spark:
            _print_step(f"Spark     {spark.version}", began)
            writer = (
                routed(spark.readStream.format("jms").options(**access, queue=QUEUE).load())
                .writeStream.format("jms")
                .options(**access, checkpointLocation=f"{folder}/checkpoint")
            )
            query = _start(writer)
            if not query.awaitTermination(_RUN_SECONDS):
                return f"The job did not end within {_RUN_SECONDS} s."
            rows = sum(progress["numInputRows"] for progress in query.recentProgress)
            _print_step(f"Job       {rows} rows: read, enriched, routed by content, written", began)
    except PySparkException as error:
        return str(error)
    return None


def _start(writer: "DataStreamWriter") -> "StreamingQuery":
    """Start a query that reads what is available and ends."""
    from pyspark_jms.spark.releases import HAS_ADMISSION_CONTROL

    if HAS_ADMISSION_CONTROL:
        return writer.trigger(availableNow=True).start()
    query = writer.start()  # AvailableNow of earlier releases is one batch
    query.processAllAvailable()
    query.stop()
    return query


def routed(messages: "DataFrame") -> "DataFrame":
    """Add the total and the destination queue to each order. jobs/jms_to_jms.py is the same as a Spark job."""
    from pyspark.sql import functions as F

    fields = {"country": "string", "quantity": "int", "price": "decimal(10,2)"}
    from_text = F.from_json("text", ", ".join(f"{name} {kind}" for name, kind in fields.items()))
    from_map = F.struct(*(F.col("map")[name]["value"].cast(kind).alias(name) for name, kind in fields.items()))
    order = F.when(F.col("body_type") == "map", from_map).otherwise(from_text)
    total = F.col("order.quantity") * F.col("order.price")
    target = (
        F.when(F.col("total").isNull(), "invalid")
        .when(F.col("total") >= REVIEW_FROM, "review")
        .when(F.col("order.country").isin(*EUROPE), "europe")
        .otherwise("world")
    )
    with_total = F.map_concat("properties", F.create_map(F.lit("total"), F.col("total").cast("string")))
    return (
        messages.withColumn("order", order)
        .withColumn("total", total)
        .withColumn("destination", F.concat(F.lit(f"queue://{QUEUE}."), target))
        .withColumn("properties", F.when(F.col("total").isNull(), F.col("properties")).otherwise(with_total))
        .drop("order", "total")
    )


def _spark(folder: str, log: Path) -> "SparkSession":
    """Start a local Spark that logs to a file."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable  # without it, Spark uses the first python3 on the PATH
    os.environ.pop("SPARK_HOME", None)  # it may name another Spark of this machine
    with _output_to(log):
        return (
            SparkSession.builder.master("local[2]")
            .appName("pyspark-jms demo")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.sql.warehouse.dir", f"{folder}/warehouse")
            .getOrCreate()
        )


@contextlib.contextmanager
def _output_to(log: Path) -> Iterator[None]:
    """Redirect standard output and error of processes that are started inside to the file."""
    sys.stdout.flush()
    ours = [os.dup(descriptor) for descriptor in (1, 2)]
    try:
        with log.open("wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        yield
    finally:
        for descriptor, our in enumerate(ours, start=1):
            os.dup2(our, descriptor)
            os.close(our)


# --- the Java application ---------------------------------------------------------------


def _send(broker: EmbeddedArtemis) -> None:
    with JmsClient(broker) as java:
        for order in ORDERS:
            number = str(order.number)
            java.send(QUEUE, order.body, correlation_id=number, properties=order.properties, **order.headers)


def _receive(broker: EmbeddedArtemis) -> Iterator[tuple[str, JmsMessage]]:
    """Receive all output messages: (queue, message)."""
    with JmsClient(broker) as java:
        for queue in OUTPUTS:
            for _ in range(broker.message_count(queue)):
                message = java.receive(queue)
                assert message is not None
                yield queue, message


# --- the expected result ----------------------------------------------------------------------


def expected(order: Order) -> tuple[str, Decimal | None]:
    """Return the expected queue and total of an order, computed without Spark."""
    if not order.valid:
        return f"{QUEUE}.invalid", None
    total = order.quantity * order.price
    if total >= REVIEW_FROM:
        return f"{QUEUE}.review", total
    return f"{QUEUE}.{'europe' if order.country in EUROPE else 'world'}", total


def differences(received: Sequence[tuple[str, JmsMessage]]) -> list[str]:
    """Describe the messages that are missing, changed or duplicated."""
    wanted = {str(order.number): _wanted(order) for order in ORDERS}
    times = Counter(message.correlation_id for _, message in received)
    problems = [f"Order {number} was received {times[number]} times." for number in wanted if times[number] != 1]
    for queue, message in received:
        number, found = message.correlation_id, _facts(queue, message)
        if found != wanted.get(str(number)):
            problems.append(f"Order {number}: expected {wanted.get(str(number))}, found {found}.")
    return problems


def _wanted(order: Order) -> dict[str, Any]:
    queue, total = expected(order)
    properties = {name: Typed.of(value) for name, value in order.properties.items()}
    total_of = None if total is None else Typed("string", str(total))
    return {"queue": queue, "body": order.body, **order.headers, **properties, "total": total_of}


def _facts(queue: str, message: JmsMessage) -> dict[str, Any]:
    properties = {name: message.properties.get(name) for name in _PROPERTIES}
    return {"queue": queue, "body": message.body, "type": message.type, "priority": message.priority} | properties


def _find_remaining_messages(broker: EmbeddedArtemis) -> list[str]:
    counts = {queue: broker.message_count(queue) for queue in (QUEUE, *OUTPUTS, "DLQ")}
    return [f"Queue {queue} still has {count} messages." for queue, count in counts.items() if count]


def _table(received: Sequence[tuple[str, JmsMessage]]) -> str:
    received_by_number = {str(message.correlation_id): (queue, message) for queue, message in received}
    lines = [f"{'sent to ' + QUEUE:<45}  received from"]
    for order in ORDERS:
        sent = f"{order.number}  {order.quantity} x {order.price:>6}  {order.country}  {order.channel:<5}"
        sent += "  (a map)" if order.is_map else "" if order.valid else "  (not JSON)"
        queue, message = received_by_number.get(str(order.number), ("nowhere", None))
        total = message and message.properties.get("total")
        lines.append(f"{sent:<45}  {queue:<14}  {'total ' + total.value if total else '':<14}".rstrip())
    return "\n".join(lines)


def _describe_map(received: Sequence[tuple[str, JmsMessage]]) -> str:
    """Return the MapMessage as the Java application received it, without the properties that Artemis adds."""
    for queue, message in received:
        if isinstance(message.body, Mapping):
            properties = ", ".join(f"{name}={_java(message.properties.get(name))}" for name in _PROPERTIES)
            body = ", ".join(f"{name}={_java(value)}" for name, value in message.body.items())
            return (
                f"Order {message.correlation_id} in {queue}: {message.body_type} message, type {message.type}, priority"
                f" {message.priority},\nproperties {properties},\nbody {body}"
            )
    return ""


def _java(typed: Typed | None) -> str:
    """Return the value with its type: ``1.5 (float)``."""
    return "null" if typed is None else f"{typed.value} ({typed.type})"
