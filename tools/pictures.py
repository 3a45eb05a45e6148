"""The pictures of the documentation, drawn from text: ``python tools/pictures.py`` writes docs/*.svg.

``--check`` only reports pictures that are out of date.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 920
NARROW = 380
"""Of pictures that read from top to bottom: as wide as the screen of a phone."""
_LINE = 18
_STYLE = """\
text { font: 13px system-ui, -apple-system, "Segoe UI", "Liberation Sans", sans-serif; fill: #1c2b33 }
.title { font-weight: 600; font-size: 13.5px }
.note { fill: #40545e; font-size: 12px }
.page { fill: #ffffff }
.box { fill: #eef5f5; stroke: #00796b; stroke-width: 1.5 }
.store { fill: #fdf3e3; stroke: #b26a00; stroke-width: 1.5 }
.frame { fill: none; stroke: #90a4ae; stroke-dasharray: 5 4 }
.arrow { fill: none; stroke: #37474f; stroke-width: 1.6; marker-end: url(#head) }
.back { fill: none; stroke: #b23c17; stroke-width: 1.6; stroke-dasharray: 6 4; marker-end: url(#back-head) }
.red { fill: #b23c17; font-size: 12px }"""
_HEADS = "".join(
    f'<marker id="{name}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
    f'<path d="M0 0L10 5L0 10z" fill="{colour}"/></marker>'
    for name, colour in (("head", "#37474f"), ("back-head", "#b23c17"))
)


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle with a title and lines of text; ``kind`` is box, store (data is kept there) or frame."""

    left: int
    top: int
    width: int
    height: int
    title: str
    lines: tuple[str, ...] = ()
    kind: str = "box"

    def svg(self) -> Iterator[str]:
        yield (
            f'<rect class="{self.kind}" x="{self.left}" y="{self.top}" width="{self.width}" height="{self.height}"'
            ' rx="6"/>'
        )
        yield Text(self.left + 12, self.top + 24, self.title, "title").svg
        for number, line in enumerate(self.lines, start=1):
            yield Text(self.left + 12, self.top + 26 + number * _LINE, line, "note").svg


@dataclass(frozen=True, slots=True)
class Text:
    left: int
    top: int
    text: str
    kind: str = "note"

    @property
    def svg(self) -> str:
        return f'<text class="{self.kind}" x="{self.left}" y="{self.top}">{escape(self.text)}</text>'


@dataclass(frozen=True, slots=True)
class Arrow:
    """A line through the points, with a head at its end; ``kind`` is arrow or back (a confirmation)."""

    points: tuple[tuple[int, int], ...]
    kind: str = "arrow"

    @property
    def svg(self) -> str:
        return f'<polyline class="{self.kind}" points="{" ".join(f"{x},{y}" for x, y in self.points)}"/>'


Item = Box | Text | Arrow


def drawn(title: str, height: int, items: tuple[Item, ...], width: int = WIDTH) -> str:
    parts = [part for item in items for part in (item.svg() if isinstance(item, Box) else (item.svg,))]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
            f"<title>{escape(title)}</title>",
            f"<style>{_STYLE}</style>",
            f"<defs>{_HEADS}</defs>",
            f'<rect class="page" width="{width}" height="{height}" rx="8"/>',
            *parts,
            "</svg>\n",
        ]
    )


def flow() -> str:
    return drawn(
        "Messages flow from a broker through the driver and the executors to files, tables or queues",
        300,
        (
            Text(20, 34, "Java, Python, …", "title"),
            Text(20, 54, "producers"),
            Arrow(((85, 66), (85, 115), (185, 115))),
            Box(185, 70, 150, 90, "Broker", ("queue orders", "STOMP or AMQP"), "store"),
            Arrow(((335, 100), (400, 100))),
            Text(338, 92, "deliver"),
            Arrow(((400, 135), (335, 135)), "back"),
            Text(338, 152, "ack", "red"),
            Box(390, 20, 510, 170, "Spark", (), "frame"),
            Box(
                402,
                50,
                190,
                120,
                "Driver: a receiver",
                ("has the prefetch window,", "makes the batches,", "may keep a journal"),
            ),
            Arrow(((592, 100), (652, 100))),
            Text(597, 92, "tasks"),
            Box(
                652,
                50,
                235,
                120,
                "Executors: tasks",
                ("decode messages to Arrow,", "run your transformations,", "write the rows"),
            ),
            Arrow(((720, 190), (720, 225))),
            Box(610, 225, 150, 60, "Files, tables", ("Parquet, Delta, JDBC",), "store"),
            Arrow(((830, 190), (830, 225))),
            Box(770, 225, 130, 60, "Queues, topics", ("in transactions",), "store"),
            Text(20, 225, "A message is acknowledged when Spark has finished its batch,", "red"),
            Text(20, 245, "or, with a journal, when it is durable on the driver's disk.", "red"),
        ),
    )


def acknowledge() -> str:
    return drawn(
        "When a message is acknowledged: after its batch, or with a journal as soon as it is durable",
        330,
        (
            Text(20, 34, "Without a journal: at-least-once", "title"),
            Box(20, 50, 150, 50, "received", ("in the window",)),
            Arrow(((170, 75), (210, 75))),
            Box(210, 50, 150, 50, "in a batch", ("offset log",)),
            Arrow(((360, 75), (400, 75))),
            Box(400, 50, 150, 50, "written", ("by Spark's sink",)),
            Arrow(((550, 75), (590, 75))),
            Box(590, 50, 150, 50, "batch done", ("commit log",)),
            Arrow(((740, 75), (780, 75)), "back"),
            Box(780, 50, 130, 50, "acknowledged", ("broker deletes",), "store"),
            Text(400, 124, "a crash before the ack: the broker redelivers, the rows are duplicates", "red"),
            Text(20, 184, "deliveryGuarantee=exactly-once: a journal", "title"),
            Box(20, 200, 150, 50, "received", ("in the window",)),
            Arrow(((170, 225), (210, 225))),
            Box(210, 200, 150, 50, "durable", ("in the journal",), "store"),
            Arrow(((360, 225), (400, 225)), "back"),
            Box(400, 200, 130, 50, "acknowledged", ("broker deletes",), "store"),
            Arrow(((285, 250), (285, 285), (400, 285))),
            Box(400, 262, 150, 50, "in a batch", ("recorded rows",)),
            Arrow(((550, 287), (590, 287))),
            Box(590, 262, 150, 50, "batch done", ("commit log",)),
            Arrow(((740, 287), (780, 287))),
            Box(780, 262, 130, 50, "deleted", ("from the journal",), "store"),
            Text(550, 220, "a crash: the journal gives the same batch again,", "red"),
            Text(550, 240, "with the same rows in the same partitions", "red"),
        ),
    )


def window() -> str:
    return drawn(
        "The prefetch window limits what the broker delivers; a batch is a part of it; a task reads a partition",
        250,
        (
            Box(20, 60, 190, 130, "Queue at the broker", ("messages that wait:", "depth"), "store"),
            Arrow(((210, 120), (260, 120))),
            Box(260, 30, 640, 200, "Prefetch window: delivered, not acknowledged; at most windowBytes", (), "frame"),
            Box(280, 75, 330, 135, "Batch: maxBytesPerTrigger (64 MB)", (), "box"),
            Box(296, 115, 140, 75, "Partition, task", ("partitionBytes", "(16 MB)"), "store"),
            Box(452, 115, 140, 75, "Partition, task", ("partitionBytes", "(16 MB)"), "store"),
            Box(630, 75, 250, 135, "Next batch", ("arrives while Spark works", "on this batch")),
        ),
    )


def register() -> str:
    return drawn(
        "The life of a register: each batch replaces the value of the one before in one transaction",
        330,
        (
            Text(20, 34, "Source queue", "title"),
            Box(20, 50, 150, 60, "orders", ("messages 1 to 9",), "store"),
            Text(20, 170, "Register of reader 0: one consumer, the lock", "title"),
            Box(20, 190, 200, 90, "made by the driver", ("token: batch 0", "no blocks"), "store"),
            Arrow(((220, 235), (330, 235))),
            Text(232, 226, "task of batch 1"),
            Box(330, 190, 220, 90, "value of batch 1", ("block: messages 1 to 5", "token: batch 1, 1 block"), "store"),
            Arrow(((550, 235), (660, 235))),
            Text(562, 226, "task of batch 2"),
            Box(660, 190, 240, 90, "value of batch 2", ("block: messages 6 to 9", "token: batch 2, 1 block"), "store"),
            Arrow(((170, 80), (400, 80), (400, 190))),
            Arrow(((170, 65), (740, 65), (740, 190))),
            Text(410, 110, "accepts 1 to 5 in", "note"),
            Text(410, 128, "the same transaction", "note"),
            Text(750, 110, "accepts 6 to 9, and", "note"),
            Text(750, 128, "the value of batch 1", "note"),
            Text(330, 306, "a second attempt of batch 1 browses", "red"),
            Text(660, 306, "a late task of batch 1 is fenced", "red"),
        ),
    )


def who_reads() -> str:
    return drawn(
        "Who reads where: the driver receives, or for exactly-once over AMQP the tasks do",
        450,
        (
            Text(20, 34, "At-least-once: the driver receives", "title"),
            Box(20, 50, 150, 80, "Broker", ("queue orders",), "store"),
            Arrow(((170, 90), (290, 90))),
            Text(182, 82, "all messages"),
            Box(290, 50, 190, 80, "Driver", ("one receiver,", "one connection")),
            Arrow(((480, 90), (620, 90))),
            Text(492, 82, "bytes in tasks"),
            Box(620, 50, 280, 80, "Executors: tasks", ("decode; as many as the batch", "has partitions")),
            Text(20, 172, "Exactly-once with a journal: the driver receives, and stores first", "title"),
            Box(20, 188, 150, 80, "Broker", ("queue orders",), "store"),
            Arrow(((170, 228), (290, 228))),
            Text(182, 220, "all messages"),
            Box(290, 188, 85, 80, "Driver", ("one", "receiver")),
            Arrow(((375, 228), (405, 228))),
            Box(405, 188, 95, 80, "Folder", ("journal-", "Location"), "store"),
            Arrow(((500, 228), (620, 228))),
            Text(506, 220, "bytes in tasks"),
            Box(
                620,
                188,
                280,
                80,
                "Executors: tasks",
                ("decode the same rows in the same", "partitions, also in a repeated batch"),
            ),
            Text(20, 310, "Exactly-once with a staging queue, over AMQP: the tasks receive", "title"),
            Box(20, 326, 150, 100, "Broker", ("queue orders,", "a register for", "each reader"), "store"),
            Arrow(((170, 351), (290, 351)), "back"),
            Text(182, 343, "anything there?", "red"),
            Box(290, 326, 190, 50, "Driver", ("sees no message",)),
            Arrow(((480, 351), (620, 351))),
            Text(492, 343, "a number"),
            Box(
                620,
                326,
                280,
                100,
                "Executors: a task for each reader",
                ("receive, replace the value of their", "register, decode; option readers", "sets their number"),
            ),
            Arrow(((170, 406), (620, 406))),
            Text(300, 398, "messages, a connection for each reader"),
        ),
    )


def _question(top: int, title: str, lines: tuple[str, ...], answer: Box, ways: tuple[str, str]) -> tuple[Item, ...]:
    """A question, its answer below, and the way past the answer to the next question. ``ways`` name both arrows."""
    below = top + 76
    return (
        Box(20, top, 340, 76, title, lines),
        Arrow(((235, below), (235, answer.top))),
        Text(245, below + 20, ways[0]),
        answer,
        Arrow(((60, below), (60, answer.top + answer.height + 30))),
        Text(70, below + 20, ways[1]),
    )


def choose() -> str:
    return drawn(
        "Which way to read a queue: at-least-once, with a staging queue, or with a journal",
        922,
        (
            *_question(
                20,
                "Do duplicates do no harm?",
                ("After a crash a few rows come twice. The sink", "drops them by a key, or they do not matter."),
                Box(110, 126, 250, 54, "At-least-once", ("no option",), "store"),
                ("yes", "no"),
            ),
            *_question(
                210,
                "Is a repeated batch written once?",
                ("By files, Delta, an exactly-once sink, or a", "foreachBatch that replaces its batch."),
                Box(
                    110,
                    316,
                    250,
                    72,
                    "Change the sink first",
                    ("no way to read makes such a sink", "exactly-once"),
                    "store",
                ),
                ("no", "yes"),
            ),
            *_question(
                418,
                "Is the broker an Artemis, with AMQP?",
                ("Other consumers of the queue are allowed.", "No disk is needed."),
                Box(
                    110,
                    524,
                    250,
                    72,
                    "Staging queue",
                    ("brokerUrl=amqp://…", "deliveryGuarantee=exactly-once"),
                    "store",
                ),
                ("yes", "no"),
            ),
            *_question(
                626,
                "Artemis or Classic over STOMP?",
                ("The driver needs a folder that outlives it,", "and the queue no other consumer."),
                Box(110, 732, 250, 72, "Journal", ("the same option, and", "journalLocation=/folder"), "store"),
                ("yes", "no"),
            ),
            Box(
                20,
                834,
                340,
                72,
                "At-least-once",
                ("Drop duplicates by a key of yours. Streams of", "RabbitMQ 4 repeat their batches."),
                "store",
            ),
        ),
        NARROW,
    )


def _one_of(top: int, title: str, kind: str, *cases: tuple[str, str, str]) -> tuple[Item, ...]:
    """A frame with three boxes, of which one applies."""
    boxes = (
        Box(32, top + 36 + 82 * n, 316, 74, name, (first, second), kind)
        for n, (name, first, second) in enumerate(cases)
    )
    return (Box(20, top, 340, 286, title, (), "frame"), *boxes)


def query_life() -> str:
    return drawn(
        "The life of a query: a stop, a kill and an error, and what its next start does",
        880,
        (
            Box(
                20,
                20,
                340,
                76,
                "The query runs",
                ("A batch: offset log, tasks, sink, commit log.", "Then its messages are acknowledged."),
            ),
            Arrow(((190, 96), (190, 122))),
            *_one_of(
                122,
                "It ends in one of three ways",
                "box",
                (
                    "query.stop(), SIGTERM",
                    "Messages in flight return to the broker.",
                    "On Artemis they lose no delivery attempt.",
                ),
                (
                    "kill -9, lost machine",
                    "The broker notices, and delivers again.",
                    "Each message in flight loses an attempt.",
                ),
                ("an error of a task", "The query ends. Nothing of the batch was", "acknowledged: as after a stop."),
            ),
            Arrow(((190, 408), (190, 434))),
            Box(
                20,
                434,
                340,
                76,
                "The next start, with the same checkpoint",
                ("Spark repeats the batch that is not in its", "commit log."),
            ),
            Arrow(((190, 510), (190, 536))),
            *_one_of(
                536,
                "The sink gets, by the way to read",
                "store",
                ("at-least-once", "an empty batch. Its messages come in", "later batches: duplicates."),
                ("with a journal", "the same rows, from the folder, and", "writes them once."),
                ("with a staging queue", "the same rows, from the staging queue, and", "writes them once."),
            ),
            Text(20, 846, "A lost connection ends no query: the source", "red"),
            Text(20, 864, "connects again.", "red"),
        ),
        NARROW,
    )


def subscriptions() -> str:
    return drawn(
        "A topic and its subscriptions: plain, durable, and shared",
        360,
        (
            Box(20, 140, 130, 70, "Producer", ("sends to", "topic prices")),
            Arrow(((150, 175), (200, 175))),
            Box(200, 140, 130, 70, "Topic prices", ("keeps nothing",), "store"),
            Arrow(((330, 160), (370, 65))),
            Arrow(((330, 175), (370, 175))),
            Arrow(((330, 190), (370, 285))),
            Box(
                370,
                30,
                250,
                80,
                "plain subscription",
                (
                    "no option. Gone with the",
                    "connection: nothing is kept",
                ),
            ),
            Box(
                370,
                135,
                250,
                80,
                "durable subscription daily",
                ("subscriptionName and clientId.", "The broker keeps each message"),
                "store",
            ),
            Box(
                370,
                240,
                250,
                80,
                "shared subscription team",
                ("sharedSubscription=true.", "The broker keeps each message"),
                "store",
            ),
            Arrow(((620, 70), (680, 70))),
            Arrow(((620, 175), (680, 175))),
            Arrow(((620, 265), (680, 250))),
            Arrow(((620, 295), (680, 315))),
            Box(680, 40, 220, 60, "Query A", ("what comes while it runs",)),
            Box(680, 145, 220, 60, "Query B", ("every message, also later",)),
            Box(680, 220, 220, 50, "Query C", ("some of the messages",)),
            Box(680, 290, 220, 50, "Query D", ("the others",)),
        ),
    )


PICTURES = {
    "docs/flow.svg": flow,
    "docs/acknowledge.svg": acknowledge,
    "docs/window.svg": window,
    "docs/register.svg": register,
    "docs/who-reads.svg": who_reads,
    "docs/choose-guarantee.svg": choose,
    "docs/query-life.svg": query_life,
    "docs/subscriptions.svg": subscriptions,
}


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(description="Draw the pictures of the documentation.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a picture is out of date")
    check = parser.parse_args(arguments).check
    new = {root / name: draw() for name, draw in PICTURES.items()}
    stale = [path for path, text in new.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in () if check else stale:
        path.write_text(new[path], encoding="utf-8")
    if check and stale:
        print(f"out of date: {', '.join(path.name for path in stale)}. Run python tools/pictures.py.")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
