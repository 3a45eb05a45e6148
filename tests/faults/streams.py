"""What goes in and what comes out: a queue or files, a folder of batches or a queue. Counted by identity."""

import itertools
import json
import time
from collections import Counter

import pyarrow as pa
from amqp_messages import TRUE, application_properties, block_of, list_, properties, section, string, timestamp
from broker_rows import access_over, write_batch
from rawstomp import RawStomp
from streaming import access, journal_in

from pyspark_jms.amqp.link.producer import Producer
from pyspark_jms.amqp.wire.types import Target
from pyspark_jms.options.source import SourceOptions

COPIES = 2
"""So many messages, one after the other, are equal to each other: number, text, times, and the id that they have."""
_NUMBERS_OF_AN_ID = 5
"""So many numbers have one message-id, where a producer gives the id."""
_FROM_A_CLIENT = 100
"""So many messages come from one client, the next ones from the other."""
_FILE_LINES = 100
FILES_A_BATCH = 2


def number_of(index):
    """The number of the message that is sent as the ``index``-th: it is what the messages are counted by."""
    return index // COPIES


def expected(sent):
    """How often each number must come out."""
    return Counter(map(number_of, range(sent)))


def has_id(number):
    """Return whether the messages of this number come from the client that gives ids, where there are two."""
    return number * COPIES // _FROM_A_CLIENT % 2 == 1


class QueueInput:
    """Messages with their number as property ``n``, read by format jms; ``journal``: a folder, or None.

    Every second hundred comes from an AMQP client, the others from STOMP, without ids. The AMQP client's ids are not
    unique: equal messages have the same one, and so have some others.
    """

    def __init__(self, broker, proxy, queue, journal):
        self._broker, self._proxy, self.queue, self.journal = broker, proxy, queue, journal
        self.sent = 0

    def send(self, count):
        numbers = map(number_of, range(self.sent, self.sent + count))
        for with_ids, these in itertools.groupby(numbers, has_id):
            (self._send_with_ids if with_ids else self._send_without)(these)
        self.sent += count

    def _send_without(self, numbers):
        with RawStomp(self._broker) as client:
            client.send(self.queue, [([("n", str(n))], f"message {n} of {self.queue}") for n in numbers])

    def _send_with_ids(self, numbers):
        given = access(self._broker) | {"brokerUrl": self._broker.amqp_url, "queue": self.queue}
        with Producer(SourceOptions.parse(given).connection) as producer:
            producer.open(Target(address=self.queue, capabilities=("queue",)))
            now_ms = int(time.time() * 1000)
            producer.send(block_of([_message(n, self.queue, now_ms) for n in numbers]))
            producer.commit()

    def source(self, **options):
        where = access(self._broker) | {"brokerUrl": self._proxy.url, "queue": self.queue, "idleTimeout": "500ms"}
        where |= {"partitionBytes": "64k"} | (journal_in(self.journal) if self.journal else {})
        return {
            "format": "jms_with_breakpoints",
            "options": where | {name: str(value) for name, value in options.items()},
        }

    columns = ("properties.n n", "text", "map('n', properties.n) properties")

    def left(self):
        return self._broker.message_count(self.queue)

    def in_delivery(self):
        return self._broker.delivering_count(self.queue)

    def consumers(self):
        return self._broker.consumer_count(self.queue)

    # --- what the journal's folder shows -----------------------------------------------------------

    def started(self):
        return (self.journal / "log").exists()

    def segments(self):
        return sorted(int(path.name[8:]) for path in self.journal.glob("segment-*") if path.suffix != ".tmp")

    def confirmed(self):
        """First sequences of segments whose receipt is written down."""
        entries = [json.loads(line[33:]) for line in (self.journal / "log").read_text().splitlines()]
        return {entry["acknowledged"] for entry in entries if "acknowledged" in entry}


class ReadersInput(QueueInput):
    """Received exactly once, by tasks."""

    def source(self, **options):
        return super().source(**{"deliveryGuarantee": "exactly-once", "readers": 2} | options)


def _message(number, queue, now_ms):
    shared = string(f"ID:{queue}:{number // _NUMBERS_OF_AN_ID}")
    return (
        section(0x70, list_(TRUE))
        + properties(message_id=shared, creation_time=timestamp(now_ms))
        + application_properties(n=string(str(number)))
        + section(0x77, string(f"message {number} of {queue}"))
    )


class RabbitInput(QueueInput):
    """A quorum queue of RabbitMQ, filled by the sink: its acceptance of a row is a confirmation."""

    def __init__(self, broker, proxy, queue):
        super().__init__(broker, proxy, queue, None)
        broker.create_queue(queue, {"x-queue-type": "quorum"})

    def send(self, count):
        numbers = [number_of(index) for index in range(self.sent, self.sent + count)]
        texts = [f"message {n} of {self.queue}" for n in numbers]
        properties = pa.array([[("n", str(n))] for n in numbers], pa.map_(pa.string(), pa.string()))
        batch = pa.RecordBatch.from_pydict({"text": texts, "properties": properties})
        write_batch(access_over(self._broker, "amqp"), self.queue, batch)
        self.sent += count

    def left(self):
        return self._broker.counts(self.queue)["messages"]

    def in_delivery(self):
        return self._broker.counts(self.queue)["messages_unacknowledged"]


class FilesInput:
    """Lines with a number each, in files that Spark reads two a batch: what any process reads again as it was."""

    def __init__(self, folder):
        self._folder = folder
        self._names = itertools.count()
        self.sent = 0
        folder.mkdir()

    def send(self, count):
        for first in range(self.sent, self.sent + count, _FILE_LINES):
            draft = self._folder / ".draft"
            draft.write_text("\n".join(str(number_of(index)) for index in range(first, first + _FILE_LINES)))
            draft.replace(self._folder / f"{next(self._names):06d}.txt")
            self.sent += _FILE_LINES

    def source(self, **_):
        return {"format": "text", "options": {"maxFilesPerTrigger": FILES_A_BATCH}, "path": str(self._folder)}

    columns = ("value n", "concat('line ', value) text", "map('n', value) properties")

    def left(self):
        return 0

    def read(self, checkpoint):
        """How many lines are in files that Spark has given to batches."""
        logs = (checkpoint / "sources" / "0").glob("[0-9]*")
        entries = {line for path in logs for line in path.read_text().splitlines() if line.startswith("{")}
        return _FILE_LINES * len({json.loads(entry)["path"] for entry in entries})


class FolderOutput:
    """Batches that ``foreachBatch`` writes, each again when it is repeated."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()

    def sink(self, columns, **_):
        return {"folder": str(self.folder), "columns": columns[:2]}

    def has(self, batch):
        return (self.folder / f"batch-{batch}").exists()

    def counted(self):
        return Counter(int(row["n"]) for path in self.folder.glob("batch-*") for row in json.loads(path.read_text()))

    def size(self):
        """How many messages have come out. Duplicates do not count: no number has more than its copies."""
        return sum(min(count, COPIES) for count in self.counted().values())


class QueueOutput:
    """A queue that format jms writes to; ``counted`` empties it after all writers have ended."""

    def __init__(self, broker, proxy, queue, guarantee):
        self._broker, self._proxy, self.queue, self._guarantee = broker, proxy, queue, guarantee
        self._seen = Counter()

    def sink(self, columns, **options):
        where = access(self._broker) | {"brokerUrl": self._proxy.url, "queue": self.queue}
        options = {name: str(value) for name, value in options.items()} | {"deliveryGuarantee": self._guarantee}
        return {"options": where | options, "columns": columns[1:]}

    def counted(self):
        while self._broker.message_count(self.queue):
            with RawStomp(self._broker) as client:
                self._seen.update(int(message.headers["n"]) for message in client.read(self.queue, quiet=0.5))
        return self._seen

    def size(self):
        return self._broker.message_count(self.queue)
