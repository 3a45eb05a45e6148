"""The reference pages, written from the code: options from ``OPTIONS``, errors from their tree, commands from argparse.

Groups of options come from options.toml, symptoms and remedies of errors from errors.toml, and the compatibility matrix
from the files in tests/tested.

``python tools/reference.py`` rewrites them between their markers; ``--check`` only reports what is out of date.
"""

import argparse
import itertools
import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pyspark_jms.amqp.dialects import DIALECTS as AMQP_DIALECTS
from pyspark_jms.errors import JMSError
from pyspark_jms.jms.features import Feature, Refusal
from pyspark_jms.management.queue_rules import RULES, Effect, Use
from pyspark_jms.options.names import _KAFKA as KAFKA_OPTIONS
from pyspark_jms.options.names import unknown_option
from pyspark_jms.options.table import OPTIONS, Option
from pyspark_jms.stomp.dialects import DIALECTS, Dialect
from pyspark_jms.stomp.dialects.base import BodyRule, WindowUnit
from pyspark_jms.tools.cli import _parser as command_line

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- written by tools/reference.py: begin -->", "<!-- end -->"

_SCOPES = {"source": "read", "sink": "write", "both": "both"}
ERROR_TEXTS: dict[str, dict[str, str]] = tomllib.loads((ROOT / "tools/errors.toml").read_text(encoding="utf-8"))
"""Code -> symptom and remedy."""
_OPTION_TEXTS: dict[str, Any] = tomllib.loads((ROOT / "tools/options.toml").read_text(encoding="utf-8"))
GROUPS: list[dict[str, Any]] = _OPTION_TEXTS["group"]
KAFKA: dict[str, str] = _OPTION_TEXTS["kafka"]
"""Option -> the option of Spark's Kafka source or sink with the same purpose."""

_JMS_NAME = re.compile(r"``(?P<name>\w+)``: ")


def options_tables() -> str:
    by_name = {option.name: option for option in OPTIONS}
    head = ("option", "for", "default", "meaning", "Kafka")
    return "\n\n".join(
        f"### {group['title']}\n\n{group['text']}\n\n"
        + _table(head, [_option_row(by_name[name]) for name in group["options"]])
        for group in GROUPS
    )


def _option_row(option: Option) -> tuple[str, ...]:
    default = "" if option.default is None else f"`{option.default}`"
    kafka = ", ".join(f"`{name}`" for name in KAFKA.get(option.name, "").split(", ") if name)
    return f'<a id="{option.name.lower()}"></a>`{option.name}`', _SCOPES[option.scope], default, option.meaning, kafka


def kafka_table() -> str:
    """What the error of each option of Kafka answers."""
    answers: dict[str, list[str]] = {}
    for name in KAFKA_OPTIONS:
        answers.setdefault(unknown_option(name, "source").remedy, []).append(f"`{name}`")
    rows = [(", ".join(names), answer) for answer, names in answers.items()]
    return _table(("option of Kafka", "here"), [("`failOnDataLoss`", "The same name."), *rows])


def errors_text() -> str:
    """An overview with links, and a section for each code: its heading is the anchor of the code."""
    errors = list(_raised(JMSError))
    rows = [
        (f"[`{error.code}`](#{error.code.lower()})", _yes(error.transient, ""), _meaning(error)[1]) for error in errors
    ]
    sections = (_error_section(error, *_meaning(error)) for error in errors)
    return "\n\n".join([_table(("code", "transient", "cause"), rows), "## Every code", *sections])


def _error_section(error: type[JMSError], jms: str, meaning: str) -> str:
    text = ERROR_TEXTS[error.code]
    facts = [f"JMS: `{jms}`." if jms else "", "Transient: a retry may pass." if error.transient else ""]
    return "\n".join(
        [
            f"### {error.code}\n",
            *([" ".join(filter(None, facts)) + "\n"] if any(facts) else []),
            f"- **Symptom:** {text['symptom']}",
            f"- **Cause:** {meaning}",
            f"- **Remedy:** {text['remedy']}",
        ]
    )


def _raised(group: type[JMSError]) -> Iterator[type[JMSError]]:
    """The classes that a user can meet, in the order of the file, without those that are only bases of others."""
    for error in group.__subclasses__():
        if error.__doc__ or not error.__subclasses__():
            yield error
        yield from _raised(error)


def _meaning(error: type[JMSError]) -> tuple[str, str]:
    """The name in JMS, if there is one, and the meaning."""
    text = (error.__doc__ or "").partition("\n\n")[0]
    name = _JMS_NAME.match(text)
    meaning = " ".join(text[name.end() if name else 0 :].split())
    return name["name"] if name else "", _start(meaning)


def _start(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    cells = [[cell.replace("|", "\\|") for cell in row] for row in (head, ("---",) * len(head), *rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def _yes(flag: bool, otherwise: str = "no") -> str:  # noqa: FBT001 - a word for a flag
    return "yes" if flag else otherwise


def _guarantee(dialect: Dialect) -> str:
    return "at-least-once, or exactly-once with a journal" if dialect.can(Feature.JOURNAL) else "at-least-once"


def _sink(dialect: Dialect) -> str:
    return "at-least-once" if dialect.has_transactions else "at-least-once, row by row"


def _selectors(dialect: Dialect) -> str:
    return "in Spark only" if dialect.selector_dialect is None else "evaluated by the broker"


def _window(dialect: Dialect) -> str:
    most = f", at most {dialect.max_window:,}" if dialect.max_window < _UNBOUNDED else ""
    unit = "messages: one for each 4 KB of `windowBytes`" if dialect.window_unit is WindowUnit.MESSAGES else "bytes"
    return f"`{dialect.window_header}`, {unit}{most}"


def _delay(dialect: Dialect) -> str:
    return _yes(not {"delivery_delay", "JMSDeliveryTime"}.isdisjoint(dialect.send_headers))


def _message_id(dialect: Dialect) -> str:
    given = "JMSMessageID" in dialect.message_headers.values()
    return _yes(dialect.message_id_is_jms, "if the producer set one" if given else "no")


def _maps(dialect: Dialect) -> str:
    if dialect.body_rule is BodyRule.CONTENT_TYPE:  # what it carries has no JMS type
        return "not tried"
    return "with their content" if dialect.transform_headers else "without their content"


def _reads_without_counting(dialect: Dialect) -> bool:
    return dialect.unsubscribe_keeps_delivery_count or dialect.browses


def _stops(dialect: Dialect) -> str:
    if dialect.unsubscribe_keeps_delivery_count:
        return "none"
    return "one for each message in flight" + ("" if dialect.limits_redelivery else "; the broker has no limit")


_UNBOUNDED = (1 << 31) - 1
_NO_DELIVERY_ID = "no: it is null, and dropping duplicates by it would keep only one row"

_CAPABILITIES: tuple[tuple[str, Callable[[Dialect], str]], ...] = (
    ("tested versions", lambda d: d.tested_versions),
    ("queue → Spark", _guarantee),
    ("redeliveries are recognised (`delivery_id`)", lambda d: _yes(d.can(Feature.JOURNAL), _NO_DELIVERY_ID)),
    ("`JMSMessageID`", _message_id),
    ("Spark → queue", _sink),
    ("one transaction for each task (`transaction=task`)", lambda d: _yes(d.has_transactions, "refused")),
    (
        "receipts with `transaction=none`",
        lambda d: "one for each row" if d.confirms_single_messages else "one for all rows",
    ),
    ("exactly-once writes (`deliveryGuarantee=exactly-once`)", lambda _: "refused: they need AMQP"),
    ("selectors", _selectors),
    ("shared durable subscriptions (`sharedSubscription`)", lambda d: _yes(d.can(Feature.SHARED), "refused")),
    ("prefetch window", _window),
    ("delivery attempts when a query stops", _stops),
    ("acknowledgements survive `kill -9` of the broker", lambda d: _yes(d.ack_receipts_are_durable)),
    ("`spark.read` costs no delivery attempt", lambda d: _yes(_reads_without_counting(d))),
    ("time to live", lambda d: _yes(not {"JMSExpiration", "time_to_live"}.isdisjoint(d.send_headers))),
    ("delivery delay", _delay),
    ("maps, streams and objects of this sink", lambda d: "in envelopes" if d.envelopes else "no"),
    ("maps of Java producers", _maps),
    ("management queries", lambda d: _yes(d.management is not None)),
)


def brokers_table() -> str:
    dialects = list(DIALECTS.values())
    rows = [(fact, *(describe(dialect) for dialect in dialects)) for fact, describe in _CAPABILITIES]
    return _table(("", *(f"`{dialect.name}`" for dialect in dialects)), rows)


# --- the command line ----------------------------------------------------------------------------------


def queue_facts_table() -> str:
    """What each fact of a queue means for each feature: nothing, a warning, or a refusal."""
    features = [each for each in Feature if any(each in rule.uses for rule in RULES)]
    rows = [(f"`{rule.name}`", *(_effect(rule.uses.get(each)) for each in features)) for rule in RULES]
    return _table(("", *(each.value for each in features)), rows)


def refusals_table() -> str:
    """What the dialects cannot do: feature, protocol and refusal, with the brokers that have it."""
    found: dict[tuple[Feature, str, Refusal], list[str]] = {}
    every: dict[str, dict[str, Any]] = {"STOMP": {**DIALECTS}, "AMQP": {**AMQP_DIALECTS}}
    for feature, protocol in itertools.product(Feature, every):
        for dialect in every[protocol].values():
            if (refusal := dialect.cannot.get(feature)) is not None:
                found.setdefault((feature, protocol, refusal), []).append(f"`{dialect.name}`")
    rows = [
        (
            feature.value,
            protocol,
            "all" if len(names) == len(every[protocol]) else ", ".join(names),
            f"{_start(refusal.fact.replace('{broker}', 'the broker'))} {refusal.remedy}",
        )
        for (feature, protocol, refusal), names in found.items()
    ]
    return _table(("request", "over", "`broker`", "error (`[JMS_UNSUPPORTED]`) and alternative"), rows)


def _effect(use: Use | None) -> str:
    return "" if use is None else f"**{use.effect.value}**" if use.effect is Effect.REFUSE else use.effect.value


def commands_text() -> str:
    """A section for each command, from the arguments of its parser."""
    return "\n\n".join(_command_section(*found) for found in _commands(command_line()))


def _commands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """The commands in order, each before its actions. argparse has no public way to list them."""
    for action in parser._actions:  # noqa: SLF001
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for name, command in action.choices.items():
                yield name, command
                yield from ((f"{name} {own}", parser) for own, parser in _commands(command))


def _command_section(name: str, parser: argparse.ArgumentParser) -> str:
    actions = [action for action in parser._actions if action.help != argparse.SUPPRESS]  # noqa: SLF001
    rows = [_argument_row(action) for action in actions if action.dest not in {"help", "action"}]
    parts = [f"### pyspark-jms {name}", parser.description or ""]
    parts += [_table(("argument", "default", "meaning"), rows)] if rows else []
    return "\n\n".join([*parts, *([parser.epilog] if parser.epilog else [])])


def _argument_row(action: argparse.Action) -> tuple[str, ...]:
    value = "" if action.nargs == 0 else f" {action.metavar or action.dest.upper().replace('_', '-')}"
    names = ", ".join(f"`{name}{value}`" for name in action.option_strings) or f"`{action.dest}`"
    shown = "" if action.default in (None, False, [], argparse.SUPPRESS) else f"`{action.default}`"
    text = (action.help or "").replace(" (default: %(default)s)", "")
    return names, "required" if action.required else shown, text[:1].upper() + text[1:]


# --- compatibility -------------------------------------------------------------------------------------

TESTED = ROOT / "tests/tested"
"""What runs of tests used (``pytest --tested``): newest.json, and a file for each older release of Spark."""

_BROKERS = {"artemis": "Artemis", "classic": "Classic", "rabbitmq": "RabbitMQ", "broker-j": "Qpid Broker-J"}


def compatibility_table() -> str:
    runs = [(path.stem, json.loads(path.read_text(encoding="utf-8"))) for path in TESTED.glob("*.json")]
    runs.sort(key=lambda run: [int(number) for number in run[1]["PySpark"].split(".")], reverse=True)
    head = ("PySpark", "pyspark-jms", "Python", "Delta", "Iceberg", "brokers", "tests")
    return _table(head, [_compatibility_row(*run) for run in runs])


def _compatibility_row(name: str, used: dict[str, Any]) -> tuple[str, ...]:
    brokers = "; ".join(f"{title} {_versions(used, broker)}" for broker, title in _BROKERS.items() if broker in used)
    tests = "`make test test-deep`" if name == "newest" else "`make test-spark`"
    tables = [_versions(used, table) or "not tried" for table in ("Delta", "Iceberg")]
    return used["PySpark"], used["pyspark-jms"], used["Python"], *tables, brokers, tests


def _versions(used: dict[str, Any], name: str) -> str:
    return ", ".join(used.get(name, []))


REFUSALS = "<!-- written by tools/reference.py, refusals: begin -->"
QUEUE_FACTS = "<!-- written by tools/reference.py, queue facts: begin -->"

PAGES: dict[str, dict[str, Callable[[], str]]] = {
    "README.md": {BEGIN: compatibility_table},
    "docs/deployment.md": {BEGIN: compatibility_table},
    "docs/options.md": {BEGIN: options_tables},
    "docs/errors.md": {BEGIN: errors_text},
    "docs/brokers.md": {BEGIN: brokers_table, QUEUE_FACTS: queue_facts_table, REFUSALS: refusals_table},
    "docs/coming-from.md": {BEGIN: kafka_table},
    "docs/cli.md": {BEGIN: commands_text},
}
"""Page → marker → what stands after it."""


def rewritten(page: str, table: str, marker: str = BEGIN) -> str:
    """The page with the table between its markers; a ``ValueError`` when it has none."""
    before, begin, rest = page.partition(marker)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"no {marker} … {END}")
    return f"{before}{begin}\n\n{table}\n\n{end}{after}"


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(description="Write the tables of the reference pages from the code.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a page is out of date")
    check = parser.parse_args(arguments).check
    stale = []
    for name, tables in PAGES.items():
        old = new = (root / name).read_text(encoding="utf-8")
        for marker, table in tables.items():
            new = rewritten(new, table(), marker)
        if new != old:
            stale.append(name)
            if not check:
                (root / name).write_text(new, encoding="utf-8")
    if check and stale:
        print(f"out of date: {', '.join(stale)}. Run python tools/reference.py.")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
