"""``pyspark-jms staging``: the staging queues of exactly-once reads over AMQP, for operators."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pyspark_jms.errors import InvalidDestinationError, UnsupportedError
from pyspark_jms.sentences import counted
from pyspark_jms.tools.cli.command import Commands, add_access, source_options

if TYPE_CHECKING:
    from pyspark_jms.amqp.link.read_register import RegisterName
    from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["add_command"]

_DEFAULT_PREFIX = "pyspark-jms.staging."


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "staging",
        help="list, show or delete the staging queues of exactly-once reads over AMQP",
        description="Staging queues of exactly-once reads over AMQP: list them, show what one has, or delete one.",
        epilog="The staging queue of a deleted checkpoint stays on the broker until an operator deletes it. While a "
        "query uses a staging queue, the broker refuses to delete it.",
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, run, text in (
        (
            "list",
            _list,
            "list the staging queues of a broker, and whether a query uses them; needs the permission manage",
        ),
        ("show", _show, "show what a staging queue has, by browsing"),
        ("drop", _drop, "delete a staging queue, its messages and its token"),
    ):
        own = actions.add_parser(name, help=text, description=text.capitalize() + ".")
        own.set_defaults(run=run)
        add_access(own)
        add = own.add_argument
        add("--json", action="store_true", help="print JSON")
        if name == "list":
            add(
                "--prefix",
                default=_DEFAULT_PREFIX,
                metavar="TEXT",
                help="beginning of the names of staging queues (default: %(default)s)",
            )
        else:
            add(
                "--queue",
                required=True,
                metavar="NAME",
                help="the staging queue, as list names it; without its number, those of all readers of the query",
            )
            add("--client-id", metavar="ID", help="the query's option clientId, if it reads a durable subscription")
        if name == "drop":
            add("--yes", action="store_true", help="delete it: without this option nothing is deleted")


def _settings(options: argparse.Namespace) -> "ConnectionSettings":
    settings = source_options(options, queue="pyspark-jms.staging").connection
    if settings.protocol != "amqp":
        raise UnsupportedError(
            "A staging queue is reached over AMQP, and this is another protocol.", "Give amqp://HOST:5672."
        )
    return settings


def _list(options: argparse.Namespace) -> int:
    from pyspark_jms.tools.registers import list_registers

    found = list_registers(_settings(options), options.prefix)
    if options.json:
        print(json.dumps([asdict(each) for each in found], indent=2))
        return 0
    if not found:
        print(f"no staging queue begins with {options.prefix}")
    for each in found:
        state = "in use" if each.owned else "no query uses it"
        of = f"stream {each.stream}, reader {each.reader}, batch {each.batch}"
        held = [counted(each.messages), counted(each.blocks, "block"), counted(each.tokens, "token")]
        print(f"{each.name}  {of}: {', '.join(held)}, {state}")
    return 0


def _registers(options: argparse.Namespace, settings: "ConnectionSettings") -> list["RegisterName"]:
    from pyspark_jms.tools.registers import names_of_registers

    if names := names_of_registers(settings, options.queue, options.client_id):
        return names
    raise InvalidDestinationError(
        f"There is no staging queue {options.queue} on this broker.",
        "pyspark-jms staging list shows the staging queues. That of a durable subscription needs --client-id.",
    )


def _show(options: argparse.Namespace) -> int:
    from pyspark_jms.tools.registers import show_register

    settings = _settings(options)
    shown = [asdict(show_register(settings, each)) for each in _registers(options, settings)]
    printed = shown if len(shown) > 1 else shown[0]
    print(json.dumps(printed, indent=2) if options.json else "\n\n".join(map(_lines, shown)))
    return 0


def _lines(shown: dict[str, Any]) -> str:
    texts = {name: _text(value) for name, value in shown.items()}
    return "\n".join(f"{name.replace('_', ' '):<15} {text}" for name, text in texts.items())


def _text(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(str, value)) or "-"
    return str(value)


def _drop(options: argparse.Namespace) -> int:
    from pyspark_jms.tools.registers import drop_registers, require_registers, show_register

    settings = _settings(options)
    registers = _registers(options, settings)
    shown = [show_register(settings, each) for each in registers]
    (drop_registers if options.yes else require_registers)(settings, registers)
    if options.json:
        print(json.dumps([asdict(each) | {"dropped": options.yes} for each in shown], indent=2))
        return 0 if options.yes else 1
    for each in shown:
        what = f"{counted(each.messages)} in {counted(each.blocks, 'block')}"
        print(f"{each.name}: deleted, with {what}" if options.yes else f"{each.name} has {what}. --yes deletes them")
    return 0 if options.yes else 1
