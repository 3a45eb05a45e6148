"""``pyspark-jms send``: one message from the command line or a file, or many from lines of JSON."""

import argparse
import json
import sys
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from pyspark_jms.errors import InvalidOptionError, MissingOptionError
from pyspark_jms.sentences import counted
from pyspark_jms.tools.cli.command import Commands, ProgressLine, add_access, sink_options

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["add_command"]


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "send",
        help="send a text, a file, or lines of JSON to a queue or topic",
        description="Send messages in one transaction, all of them or none, where the broker has transactions. A "
        'line of --json-lines is an object with the columns of the sink, as {"text": "hello", "properties": {"id": '
        '5}, "JMSType": "order"}; bytes are base64. A line may name its destination as queue://NAME if neither '
        "--queue nor --topic is given. `peek --json` prints such lines.",
        epilog="For many messages, --option transaction=10000 commits every 10,000: after an error, the messages of "
        "earlier transactions stay sent.",
    )
    parser.set_defaults(run=_run)
    add_access(parser, side="sink")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--queue", metavar="NAME", help="queue to send to")
    where.add_argument("--topic", metavar="NAME", help="topic to send to")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--text", metavar="TEXT", help="send this text")
    what.add_argument("--file", metavar="FILE", help="send the content of the file as a text; - is standard input")
    what.add_argument("--json-lines", metavar="FILE", help="send a message for each line; - is standard input")
    add = parser.add_argument
    add("--bytes", action="store_true", help="with --file: send bytes and not a text")
    for name, form, text in (
        ("--header", "NAME=VALUE", "a header, as JMSType=order; see docs/schema.md"),
        ("--property", "NAME[:TYPE]=VALUE", "a property, as id:int=5; the type is string by default"),
    ):
        add(name, action="append", default=[], type=_pair, metavar=form, help=f"with --text or --file: {text}")
    add("--json", action="store_true", help="print JSON")


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def _run(options: argparse.Namespace) -> int:
    from pyspark_jms.sink.sending import send_at_least_once
    from pyspark_jms.spark.protocols import connect_sink
    from pyspark_jms.tools.cli.json_rows import batches_of

    _require_consistent(options)
    parsed = sink_options(options, queue=options.queue, topic=options.topic)
    has_default = parsed.destination is not None
    with ProgressLine("encoded") as progress:
        rows = _rows(options, has_default=has_default)
        batches = _shown(batches_of(rows, has_default=has_default), progress)
        sent = send_at_least_once(connect_sink(parsed), parsed, batches)
    target = str(parsed.destination) if has_default else None
    if options.json:
        print(json.dumps({"sent": sent.rows, "dropped": sent.dropped, "destination": target}))
    else:
        print(f"sent {counted(sent.rows)} to {target or 'the destinations of their lines'}")
    return 0


def _require_consistent(options: argparse.Namespace) -> None:
    if options.json_lines is not None and (options.header or options.property):
        raise InvalidOptionError(
            "--header and --property are given with --json-lines.", "Write headers and properties into each line."
        )
    if options.bytes and options.file is None:
        raise InvalidOptionError("--bytes is given without --file.", "Give the bytes in a file, or remove --bytes.")
    if options.json_lines is None and options.queue is None and options.topic is None:
        raise MissingOptionError("Neither --queue nor --topic is given.", "Name where the message goes.")


def _shown(batches: "Iterator[pa.RecordBatch]", progress: ProgressLine) -> "Iterator[pa.RecordBatch]":
    rows = 0
    for batch in batches:
        yield batch
        rows += batch.num_rows
        progress.show(rows)


def _rows(options: argparse.Namespace, *, has_default: bool) -> Iterator[dict[str, Any]]:
    from pyspark_jms.tools.cli.json_rows import read_lines, row_of

    if options.json_lines is None:
        row = row_of(_message(options), "The message")
        return iter([row if options.file is None else row | _body(options)])
    return read_lines(_lines(options.json_lines), has_default=has_default)


def _lines(name: str) -> Iterator[str]:
    try:
        if name == "-":  # its bytes: the text layer has the encoding of the terminal
            yield from TextIOWrapper(_standard_input(), encoding="utf-8")
        else:
            with Path(name).open(encoding="utf-8") as lines:
                yield from lines
    except OSError as error:
        raise _unreadable(name, error) from None
    except UnicodeDecodeError:
        raise InvalidOptionError(f"File {name} is not UTF-8.", "JSON is UTF-8: convert the file.") from None


def _standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise InvalidOptionError("Standard input is closed.", "Give the name of a file, or a pipe.")
    return sys.stdin.buffer


def _message(options: argparse.Namespace) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for given, value in options.property:
        name, _, kind = given.partition(":")
        properties[name] = {"type": kind, "value": value} if kind else value
    headers: dict[str, Any] = {name: int(value) if value.isdigit() else value for name, value in options.header}
    return {"text": options.text, "properties": properties or None, **headers}


def _body(options: argparse.Namespace) -> dict[str, Any]:
    try:
        content = _standard_input().read() if options.file == "-" else Path(options.file).read_bytes()
    except OSError as error:
        raise _unreadable(options.file, error) from None
    if options.bytes:
        return {"bytes": content}
    try:
        return {"text": content.decode()}
    except UnicodeDecodeError:
        raise InvalidOptionError(f"File {options.file} is not UTF-8.", "Send it as bytes with --bytes.") from None


def _unreadable(name: str, error: OSError) -> InvalidOptionError:
    return InvalidOptionError(f"File {name} cannot be read: {error.strerror}.", "Check its name and permissions.")
