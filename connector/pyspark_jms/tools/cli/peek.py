"""``pyspark-jms peek``: shows messages of a queue, and leaves them there."""

import argparse
import json
from collections.abc import Iterator, Mapping
from typing import Any

from pyspark_jms.tools.cli.command import Commands, add_access, is_ascii_json, source_options

__all__ = ["add_command"]

_SHOWN_CHARACTERS = 200
_BODIES = ("text", "bytes", "map", "stream")


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "peek",
        help="show the first messages of a queue; they stay there",
        description="Show messages with their headers, properties and bodies. They stay on the queue. While the "
        "command runs, other consumers may not see them.",
        epilog="What --json prints can be sent again: pyspark-jms send --json-lines.",
    )
    parser.set_defaults(run=_run)
    add = parser.add_argument
    add_access(parser)
    add("--queue", required=True, metavar="NAME", help="queue to look at")
    add("--selector", metavar="TEXT", help="show only messages that match this JMS selector")
    add("--max", default=10, type=int, metavar="N", help="maximum messages to show (default: %(default)s)")
    add("--json", action="store_true", help="print a line of JSON for each message, with all of its content")


def _run(options: argparse.Namespace) -> int:
    shown = 0
    for row in _rows(options):
        shown += 1
        print(json.dumps(row, ensure_ascii=is_ascii_json()) if options.json else _described(shown, row), flush=True)
    if not shown and not options.json:
        print(f"queue://{options.queue} shows no message")
    return 0


def _rows(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    from pyspark_jms.source.unmatched import peek_or_tell
    from pyspark_jms.spark.protocols import reading_of
    from pyspark_jms.tools.cli.json_rows import json_of

    most = str(options.max)
    parsed = source_options(options, queue=options.queue, selector=options.selector, maxMessagesPerTrigger=most)
    for batch in peek_or_tell(reading_of(parsed), limits="--max"):
        yield from map(json_of, batch.to_pylist())


def _described(number: int, row: Mapping[str, Any]) -> str:
    """Return a line for the headers, one for each property, and one for the body, cut after some characters."""
    known = [str(row[name]) for name in ("JMSTimestamp", "JMSMessageID", "JMSType") if name in row]
    lines = [f"{number}. {row['body_type']}  {'  '.join(known)}{'  redelivered' if row.get('JMSRedelivered') else ''}"]
    types = row.get("property_types", {})
    lines += [
        f"   {name}{f':{types[name]}' if name in types else ''} = {_cut(str(value))}"
        for name, value in row.get("properties", {}).items()
    ]
    lines += [f"   {_cut(_one_line(row[name]))}" for name in (*_BODIES, "body_error") if name in row]
    return "\n".join(lines)


def _one_line(body: object) -> str:
    return repr(body)[1:-1] if isinstance(body, str) else json.dumps(body, ensure_ascii=False)


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}… ({len(text):,} characters)"
