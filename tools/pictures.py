"""The pictures of the documentation, drawn from text: ``python tools/pictures.py`` writes docs/*.svg.

Each picture reads from top to bottom and is as wide as the text of a page on a phone. ``--check`` only reports
pictures that are out of date.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 360
_MARGIN = 10
_PADDING = 12
"""From the edge of a box to its texts."""
_LINE = 17
_GAP = 10
_ARROW = 26
"""How far boxes with an arrow between them are apart."""
_AT = 24
"""Where an arrow starts, from the left edge of its box. Its label has the room to the right."""
_STYLE = """\
text { font: 12px system-ui, -apple-system, "Segoe UI", "Liberation Sans", sans-serif }
.title { font-weight: 600; font-size: 13px; fill: #1c2b33 }
.note { fill: #40545e }
.red { fill: #b23c17 }
.page { fill: #ffffff }
.box { fill: #eef5f5; stroke: #00796b; stroke-width: 1.5 }
.store { fill: #fdf3e3; stroke: #b26a00; stroke-width: 1.5 }
.frame { fill: none; stroke: #90a4ae; stroke-dasharray: 5 4 }
.arrow { fill: none; stroke: #37474f; stroke-width: 1.6; marker-end: url(#head) }
.back { fill: none; stroke: #b23c17; stroke-width: 1.6; stroke-dasharray: 6 4; marker-end: url(#back-head) }"""
_HEADS = "".join(
    f'<marker id="{name}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
    f'<path d="M0 0L10 5L0 10z" fill="{colour}"/></marker>'
    for name, colour in (("head", "#37474f"), ("back-head", "#b23c17"))
)


@dataclass(frozen=True, slots=True)
class Place:
    left: int
    top: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Item:
    """A part of a picture: the height that it needs, and its SVG at a place that is at least as high."""

    height: int
    svg: Callable[[Place], Iterator[str]]


def gap(height: int = _GAP) -> Item:
    return Item(height, lambda _: iter(()))


def words(*lines: str, kind: str = "red") -> Item:
    return Item(len(lines) * _LINE, lambda place: _texts(place.left, place.top + 13, lines, kind))


def box(title: str, *lines: str, kind: str = "box", red: tuple[str, ...] = (), inside: tuple[Item, ...] = ()) -> Item:
    """A rectangle with a title, lines of text and items; ``kind`` is box, store (data is kept there) or frame."""
    texts = 30 + _LINE * len(lines + red)
    content = column(*inside)

    def svg(place: Place) -> Iterator[str]:
        yield (
            f'<rect class="{kind}" x="{place.left}" y="{place.top}" width="{place.width}" height="{place.height}"'
            ' rx="6"/>'
        )
        left, first = place.left + _PADDING, place.top + 20
        yield from _texts(left, first, (title,), "title")
        yield from _texts(left, first + _LINE, lines, "note")
        yield from _texts(left, first + _LINE * (1 + len(lines)), red, "red")
        yield from content.svg(Place(place.left + _GAP, place.top + texts, place.width - 2 * _GAP, content.height))

    return Item(texts + content.height + (_GAP if inside else 0), svg)


def arrow(*label: str, kind: str = "arrow", up: bool = False) -> Item:
    """An arrow over the whole height; ``kind`` is arrow, or back: what goes back to the broker."""

    def svg(place: Place) -> Iterator[str]:
        ends = (place.left + _AT, place.top), (place.left + _AT, place.top + place.height)
        yield _line(kind, *(reversed(ends) if up else ends))
        first = place.top + (place.height - len(label) * _LINE) // 2 + 13
        yield from _texts(place.left + _AT + 10, first, label, "red" if kind == "back" else "note")

    return Item(max(_ARROW, len(label) * _LINE + 8), svg)


def column(*items: Item) -> Item:
    def svg(place: Place) -> Iterator[str]:
        top = place.top
        for item in items:
            yield from item.svg(Place(place.left, top, place.width, item.height))
            top += item.height

    return Item(sum(item.height for item in items), svg)


def chain(*items: Item) -> Item:
    """Items with an arrow from each one to the next one."""
    return column(items[0], *(part for item in items[1:] for part in (arrow(), item)))


def row(*items: Item, shares: tuple[int, ...] | None = None) -> Item:
    """Items beside each other, equally high; ``shares`` are the parts of the width that they get."""
    parts = shares or (1,) * len(items)

    def svg(place: Place) -> Iterator[str]:
        room = place.width + _GAP
        edges = [room * sum(parts[:n]) // sum(parts) for n in range(len(parts) + 1)]
        for item, left, right in zip(items, edges, edges[1:], strict=False):
            yield from item.svg(Place(place.left + left, place.top, right - left - _GAP, place.height))

    return Item(max(item.height for item in items), svg)


def fork(to: Item, side: Item, past: Item, after: Item | None = None, *, indent: int = 90) -> Item:
    """An arrow ``to`` an indented item, and one ``past`` it to what comes next. ``after`` may lead there too."""
    branch = column(to, side, after or gap(_ARROW))

    def svg(place: Place) -> Iterator[str]:
        yield from past.svg(place)
        yield from branch.svg(Place(place.left + indent, place.top, place.width - indent, branch.height))

    return Item(branch.height, svg)


def branches(*items: Item) -> Item:
    """Arrows from above to each of the indented items."""

    def svg(place: Place) -> Iterator[str]:
        trunk, left, start, top = place.left + 14, place.left + 40, place.top, place.top
        for item in items:
            top += _ARROW
            yield _line("arrow", (trunk, start), (trunk, top + 24), (left, top + 24))
            yield from item.svg(Place(left, top, place.width - 40, item.height))
            start, top = top + 24, top + item.height

    return Item(sum(_ARROW + item.height for item in items), svg)


def _texts(left: int, top: int, lines: tuple[str, ...], kind: str) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield f'<text class="{kind}" x="{left}" y="{top + number * _LINE}">{escape(line)}</text>'


def _line(kind: str, *points: tuple[int, int]) -> str:
    return f'<polyline class="{kind}" points="{" ".join(f"{x},{y}" for x, y in points)}"/>'


def drawn(title: str, *items: Item) -> str:
    content = column(*items)
    height = content.height + 2 * _MARGIN
    size = f'width="{WIDTH}" height="{height}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {WIDTH} {height}" role="img">',
            f"<title>{escape(title)}</title>",
            f"<style>{_STYLE}</style>",
            f"<defs>{_HEADS}</defs>",
            f'<rect class="page" {size} rx="8"/>',
            *content.svg(Place(_MARGIN, _MARGIN, WIDTH - 2 * _MARGIN, content.height)),
            "</svg>\n",
        ]
    )


def flow() -> str:
    return drawn(
        "Messages flow from a broker through executors, or a receiver on the driver, to files, tables or queues",
        words("Java, Python, … producers", kind="title"),
        arrow(),
        box(
            "Broker",
            "queue orders, over AMQP or STOMP",
            "exactly-once over AMQP: also a staging queue",
            kind="store",
        ),
        gap(),
        row(
            column(
                words("Recommended: AMQP,", "exactly-once", kind="title"),
                arrow("the tasks receive"),
            ),
            column(
                words("At-least-once, or a", "journal over STOMP", kind="title"),
                arrow("the driver receives"),
            ),
        ),
        box(
            "Spark",
            kind="frame",
            inside=(
                row(
                    box("Executors: tasks", "receive and stage in", "one transaction;", "write the rows"),
                    box("Driver: a receiver", "window, batches,", "maybe a journal"),
                ),
                row(arrow("batch numbers", up=True), arrow("tasks")),
                row(
                    box("Driver", "plans batches, and", "sees no message"),
                    box("Executors: tasks", "decode messages,", "transform, write rows"),
                ),
            ),
        ),
        row(arrow(), arrow()),
        row(
            box("Files, tables", "Parquet, Delta, JDBC", kind="store"),
            box("Queues, topics", "in transactions", kind="store"),
        ),
    )


def acknowledge() -> str:
    received, done = box("received", "in the window"), box("batch done", "commit log")
    acknowledged = box("acknowledged", "broker deletes", kind="store")
    return drawn(
        "When a message is acknowledged: when it is staged, after its batch, or when a journal has it",
        words("Exactly-once: a staging queue, over AMQP", kind="title"),
        gap(),
        chain(
            box("Spark plans batch 1", "offset log"),
            box(
                "A task: one transaction of the broker",
                "receives messages, acknowledges them, and",
                "stores them in the staging queue",
                kind="store",
            ),
            box("written by Spark's sink, batch done", "commit log"),
            box("Batch 2: the same step", "its transaction deletes batch 1", kind="store"),
        ),
        gap(),
        words("A crash: the staging queue gives the batch again,", "with the same rows in the same partitions."),
        gap(24),
        row(
            column(
                words("At-least-once:", "no option", kind="title"),
                gap(),
                chain(received, box("in a batch", "offset log"), box("written", "by Spark's sink"), done),
                arrow(kind="back"),
                acknowledged,
                gap(),
                words("A crash before the ack:", "the broker redelivers,", "rows can be duplicates."),
            ),
            column(
                words("Exactly-once:", "a journal, over STOMP", kind="title"),
                gap(),
                chain(received, box("durable", "in the journal", kind="store")),
                fork(arrow(kind="back"), acknowledged, arrow(), indent=36),
                chain(box("in a batch", "recorded rows"), done, box("deleted", "from the journal", kind="store")),
                gap(),
                words(
                    "A crash: the journal", "gives the batch again,", "with the same rows in", "the same partitions."
                ),
            ),
        ),
    )


def window() -> str:
    partition = box("Partition, task", "partitionBytes", "(16 MB)", kind="store")
    return drawn(
        "The prefetch window limits what the broker delivers; a batch is a part of it; a task reads a partition",
        chain(
            box("Queue at the broker", "messages that wait: depth", kind="store"),
            box(
                "Prefetch window: at most windowBytes",
                "delivered, not acknowledged",
                kind="frame",
                inside=(
                    box("Batch: maxBytesPerTrigger (64 MB)", inside=(row(partition, partition),)),
                    gap(),
                    box("Next batch", "arrives while Spark works on this batch"),
                ),
            ),
        ),
    )


def register() -> str:
    def state(queue: str, title: str, *lines: str, red: tuple[str, ...] = ()) -> Item:
        return row(box("orders", queue, kind="store"), box(title, *lines, red=red, kind="store"), shares=(2, 3))

    def transaction(batch: int, messages: str) -> tuple[Item, ...]:
        arrows = row(arrow(), arrow(), shares=(2, 3))
        task = box(
            f"Task of batch {batch}: one transaction",
            f"accepts messages {messages} and the value of batch {batch - 1},",
            f"sends the value of batch {batch}",
        )
        return arrows, task, arrows

    return drawn(
        "The life of a register: each batch replaces the value of the one before in one transaction",
        row(
            words("Source queue", kind="title"),
            words("Register of reader 0: one", "consumer, the lock", kind="title"),
            shares=(2, 3),
        ),
        gap(),
        state("messages 1 to 9", "made by the driver", "token: batch 0", "no blocks"),
        *transaction(1, "1 to 5"),
        state(
            "messages 6 to 9",
            "value of batch 1",
            "block: messages 1 to 5",
            "token: batch 1, 1 block",
            red=("a second attempt of", "batch 1 browses"),
        ),
        *transaction(2, "6 to 9"),
        state(
            "no message",
            "value of batch 2",
            "block: messages 6 to 9",
            "token: batch 2, 1 block",
            red=("a late task of batch 1", "is fenced"),
        ),
    )


def who_reads() -> str:
    return drawn(
        "Who reads where: the driver receives, or for exactly-once over AMQP the tasks do",
        row(
            words("At-least-once:", "the driver receives", kind="title"),
            words("Exactly-once, journal:", "the driver receives,", "and stores first", kind="title"),
        ),
        gap(),
        row(
            column(
                box("Broker", "queue orders", kind="store"),
                arrow("all messages"),
                box("Driver", "one receiver,", "one connection"),
                arrow("bytes in tasks"),
                box("Executors: tasks", "decode; as many as", "the batch has", "partitions"),
            ),
            column(
                box("Broker", "queue orders", kind="store"),
                arrow("all messages"),
                box("Driver", "one receiver"),
                arrow(),
                box("Folder", "journalLocation", kind="store"),
                arrow("bytes in tasks"),
                box("Executors: tasks", "decode the same rows", "in the same partitions,", "also when repeated"),
            ),
        ),
        gap(24),
        words("Exactly-once, staging queue, over AMQP:", "the tasks receive", kind="title"),
        gap(),
        box("Broker", "queue orders, a register for each reader", kind="store"),
        fork(
            arrow("anything there?", kind="back", up=True),
            box("Driver", "sees no message"),
            arrow("messages,", "a connection", "for each reader"),
            arrow("a number"),
            indent=160,
        ),
        box(
            "Executors: a task for each reader",
            "receive, replace the value of their register,",
            "decode; option readers sets their number",
        ),
    )


def _question(title: str, lines: tuple[str, str], ways: tuple[str, str], answer: Item) -> tuple[Item, ...]:
    """A question, its answer below, and the way past the answer to the next question. ``ways`` name both arrows."""
    return box(title, *lines), fork(arrow(ways[0]), answer, arrow(ways[1]))


def choose() -> str:
    return drawn(
        "Which way to read a queue: at-least-once, with a staging queue, or with a journal",
        *_question(
            "Do duplicates do no harm?",
            ("After a crash a few rows come twice. The sink", "drops them by a key, or they do not matter."),
            ("yes", "no"),
            box("At-least-once", "no option", kind="store"),
        ),
        *_question(
            "Is a repeated batch written once?",
            ("By files, Delta, an exactly-once sink, or a", "foreachBatch that replaces its batch."),
            ("no", "yes"),
            box("Change the sink first", "no way to read makes such a sink", "exactly-once", kind="store"),
        ),
        *_question(
            "Is the broker an Artemis, with AMQP?",
            ("Other consumers of the queue are allowed.", "No disk is needed."),
            ("yes", "no"),
            box("Staging queue", "brokerUrl=amqp://…", "deliveryGuarantee=exactly-once", kind="store"),
        ),
        *_question(
            "Artemis or Classic over STOMP?",
            ("The driver needs a folder that outlives it,", "and the queue no other consumer."),
            ("yes", "no"),
            box("Journal", "the same option, and", "journalLocation=/folder", kind="store"),
        ),
        box(
            "At-least-once",
            "Drop duplicates by a key of yours. Streams of",
            "RabbitMQ 4 repeat their batches.",
            kind="store",
        ),
    )


def _one_of(title: str, kind: str, *cases: tuple[str, str, str]) -> Item:
    """A frame with boxes, of which one applies."""
    spaced = [part for case in cases for part in (gap(), box(*case, kind=kind))]
    return box(title, kind="frame", inside=tuple(spaced[1:]))


def query_life() -> str:
    return drawn(
        "The life of a query: a stop, a kill and an error, and what its next start does",
        chain(
            box(
                "The query runs", "A batch: offset log, tasks, sink, commit log.", "Then its messages are acknowledged."
            ),
            _one_of(
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
            box(
                "The next start, with the same checkpoint", "Spark repeats the batch that is not in its", "commit log."
            ),
            _one_of(
                "The sink gets, by the way to read",
                "store",
                ("at-least-once", "an empty batch. Its messages come in", "later batches: duplicates."),
                ("with a journal", "the same rows, from the folder, and", "writes them once."),
                ("with a staging queue", "the same rows, from the staging queue, and", "writes them once."),
            ),
        ),
        gap(),
        words("A lost connection ends no query: the source", "connects again."),
    )


def subscriptions() -> str:
    keeps = "The broker keeps each message"
    return drawn(
        "A topic and its subscriptions: plain, durable, and shared",
        chain(box("Producer", "sends to topic prices"), box("Topic prices", "keeps nothing", kind="store")),
        branches(
            chain(
                box("plain subscription", "no option. Gone with the connection:", "nothing is kept"),
                box("Query A", "what comes while it runs"),
            ),
            chain(
                box("durable subscription daily", "subscriptionName and clientId.", keeps, kind="store"),
                box("Query B", "every message, also later"),
            ),
            column(
                box("shared subscription team", "sharedSubscription=true.", keeps, kind="store"),
                row(arrow(), arrow()),
                row(box("Query C", "some messages"), box("Query D", "the others")),
            ),
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
