"""``pyspark-jms move``: dead letters back to the queues that they came from, or messages to another queue."""

import argparse
import json
import sys
from typing import TYPE_CHECKING

from pyspark_jms.errors import InvalidDestinationError, InvalidOptionError, JMSSecurityError, UnsupportedError
from pyspark_jms.sentences import counted
from pyspark_jms.tools.cli.command import Commands, ProgressLine, add_access, is_ascii_json, source_options

if TYPE_CHECKING:
    from pyspark_jms.network.settings import ConnectionSettings
    from pyspark_jms.options.source import SourceOptions
    from pyspark_jms.source.links import Reading
    from pyspark_jms.tools.moving.engine import ConnectMover, Moved

__all__ = ["add_command"]

_OVER_AMQP = "Move them over AMQP, which carries every body: --broker-url amqp://HOST:5672."


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "move",
        help="move dead letters back to their queue, or messages to another queue",
        description="Move messages from a queue to the queues that they came from, as Artemis and Classic note them "
        "in dead letters, or to the queue --to. Dead letters of this connector name their queue in the property "
        "spark_jms_source, which any producer can set: the command prints the queues and their counts, and with "
        "--yes it moves these messages. Body, headers and properties stay; JMSMessageID and JMSTimestamp are new, "
        "and the messages do not expire. No message is lost; over STOMP a lost connection may leave messages on both "
        "queues. Messages that cannot be moved stay, with the reason, and the exit code is 1.",
    )
    parser.set_defaults(run=_run)
    add = parser.add_argument
    add_access(parser)
    add("--queue", required=True, metavar="NAME", help="queue to take the messages from, usually a dead-letter queue")
    add("--to", metavar="NAME", help="queue to send them to; without it, each goes to the queue that it came from")
    add(
        "--yes",
        action="store_true",
        help="where the broker does not note the queue, follow property spark_jms_source, which any producer can set",
    )
    add("--selector", metavar="TEXT", help="move only messages that match this JMS selector")
    add("--max", type=int, metavar="N", help="maximum messages to move; without it, all")
    add(
        "--only-text-and-bytes",
        action="store_true",
        help="over STOMP: do not ask the broker whether the queue has maps, streams or objects",
    )
    add("--json", action="store_true", help="print JSON")


def connect_mover(options: "SourceOptions") -> "ConnectMover":
    """Return what opens the link that receives from one queue and sends to the other."""
    if options.connection.addresses[0].protocol == "amqp":
        from pyspark_jms.tools.moving.amqp import AmqpMover

        return AmqpMover
    from pyspark_jms.tools.moving.stomp import StompMover

    return StompMover


def _run(options: argparse.Namespace) -> int:
    from pyspark_jms.jms.model import Destination, DestinationKind
    from pyspark_jms.spark.protocols import reading_of
    from pyspark_jms.tools.moving.engine import look_for_targets, move

    if options.max is not None and options.max < 1:
        raise InvalidOptionError(f"--max is {options.max}.", "Give at least 1.")
    if options.to == options.queue:
        raise InvalidOptionError("--to and --queue name the same queue.", "Name another queue.")
    parsed = source_options(options, queue=options.queue, selector=options.selector)
    _require_one_queue(parsed)
    reading = reading_of(parsed)
    waiting = _messages_of(reading, options.queue)
    if parsed.connection.protocol != "amqp" and not options.only_text_and_bytes:
        _require_carried(parsed.connection, options.queue)
    to = None if options.to is None else Destination(DestinationKind.QUEUE, options.to)
    if to is not None:
        reading.require_destination(to)
    targets = None
    if to is None:
        targets = look_for_targets(reading, connect_mover(parsed), limit=options.max, accept_claims=options.yes)
        for target, count in [] if targets is None else targets.most_common():
            print(f"{options.queue} has {counted(count)} for {target}", file=sys.stderr, flush=True)
    with ProgressLine("moved") as progress:
        moved = move(
            reading,
            connect_mover(parsed),
            to=to,
            limit=options.max,
            on_moved=progress.show,
            accept_claims=options.yes,
            targets=targets,
        )
    _print(moved, options, waiting)
    return int(bool(moved.left))


def _require_one_queue(parsed: "SourceOptions") -> None:
    if len(parsed.destinations) > 1 or set(parsed.destinations[0].name) & set("*#>"):
        raise InvalidOptionError("--queue is not one plain name.", "Run the command once for each queue.")


def _messages_of(reading: "Reading", queue: str) -> int | None:
    """Return how many messages the queue has, or None if it is not known. A missing queue is refused, and so not
    created.
    """
    found = reading.look_up([queue]).get(queue)
    if found is None:
        return None
    if not found.exists:
        raise InvalidDestinationError(
            f"There is no queue {queue} on this broker.",
            "Check the name. The broker may also have deleted the queue when it was empty: then there is nothing to"
            " move.",
        )
    return found.messages


def _require_carried(settings: "ConnectionSettings", queue: str) -> None:
    """Over STOMP some brokers deliver a map, stream or object as a text without its content: it would be lost."""
    from pyspark_jms.stomp.link.connection import connect
    from pyspark_jms.stomp.link.management import StompManagementLink
    from pyspark_jms.tools.check.queue import Queue, count_kinds, describe_losses

    connection = connect(settings)
    connection.close()
    management = connection.dialect.management
    if management is None or not management.losses:
        return
    try:
        with StompManagementLink(settings) as link:
            inspected = Queue(link, queue)
            depth, messages = inspected.facts().messages or 0, inspected.list_messages()
    except InvalidDestinationError:
        return
    except (JMSSecurityError, UnsupportedError) as error:
        raise UnsupportedError(
            f"The broker does not say whether queue {queue} has maps, streams or objects: {error.fact}",
            f"{_OVER_AMQP} Or give --only-text-and-bytes if you know that it has none.",
        ) from None
    losses = describe_losses(count_kinds(messages), management.losses)
    if losses:
        raise UnsupportedError(f"Queue {queue} has messages that STOMP does not carry. {' '.join(losses)}", _OVER_AMQP)
    if len(messages) < depth:
        raise UnsupportedError(
            f"The broker lists the bodies of {len(messages):,} of the {depth:,} messages of queue {queue}.",
            f"{_OVER_AMQP} Or give --only-text-and-bytes if you know that it has no maps, streams or objects.",
        )


def _print(moved: "Moved", options: argparse.Namespace, waiting: int | None) -> None:
    """``waiting``: how many messages the queue had at the beginning; None if it is not known."""
    if options.json:
        found = {
            "moved": moved.messages,
            "targets": dict(moved.targets),
            "left": dict(moved.left),
            "guarantee": moved.guarantee,
        }
        print(json.dumps(found, ensure_ascii=is_ascii_json()))
        return
    if not moved.messages:
        print(f"moved nothing from {options.queue}: {_why_nothing(moved, options, waiting)}")
    else:
        print(_described(moved, options))
    for reason, count in moved.left.most_common():
        print(f"left {count:,} on {options.queue}: {reason}", file=sys.stderr)


def _why_nothing(moved: "Moved", options: argparse.Namespace, waiting: int | None) -> str:
    if moved.left:
        return "its messages stay there"
    if waiting == 0:
        return "the queue is empty"
    if options.selector is not None:
        return "it has no message that matches the selector and that no other consumer has"
    if waiting is None:
        return "it has no message that no other consumer has"
    return (
        f"the broker delivered none of its {counted(waiting)}: another consumer has them, they are scheduled for later,"
        " or the queue is paused"
    )


def _described(moved: "Moved", options: argparse.Namespace) -> str:
    how = (
        "each was acknowledged and sent in one transaction"
        if moved.guarantee == "exactly-once"
        else "at-least-once: if the connection had been lost, some would be on both queues"
    )
    lines = [f"moved {counted(moved.messages)} from {options.queue} to {options.to or 'where they came from'} ({how})"]
    if options.to is None:
        lines += [f"  {count:,} to {queue}" for queue, count in moved.targets.most_common()]
    return "\n".join(lines)
