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
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pyspark_jms.amqp.dialects import DIALECTS as AMQP_DIALECTS
from pyspark_jms.amqp.dialects.base import Dialect as AmqpDialect
from pyspark_jms.errors import JMSError
from pyspark_jms.jms.dialect import BrokerDialect
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
    """The transient codes, and a section for each code: its heading is the anchor of the code."""
    errors = list(_raised(JMSError))
    transient = ", ".join(f"[`{error.code}`](#{error.code.lower()})" for error in errors if error.transient)
    sections = (_error_section(error, *_meaning(error)) for error in errors)
    return "\n\n".join([f"The transient codes are {transient}.", "## Every code", *sections])


def _error_section(error: type[JMSError], jms: str, meaning: str) -> str:
    text = ERROR_TEXTS[error.code]
    facts = [f"JMS: `{jms}`." if jms else "", "Transient." if error.transient else ""]
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


# --- brokers -------------------------------------------------------------------------------------------


def _read(dialect: BrokerDialect) -> str:
    if dialect.can(Feature.JOURNAL):
        return "at-least-once, or exactly-once with a journal"
    if dialect.can(Feature.REGISTER):
        return "at-least-once, or exactly-once with a staging queue"
    return "at-least-once" + ("; a stream exactly-once" if dialect.can(Feature.STREAMS) else "")


def _write(dialect: BrokerDialect) -> str:
    if dialect.can(Feature.EXACTLY_ONCE_WRITE):
        return "at-least-once, or exactly-once"
    return "at-least-once" if dialect.has_transactions else "at-least-once, row by row"


def _window(dialect: Dialect) -> str:
    most = f", at most {dialect.max_window:,}" if dialect.max_window < _UNBOUNDED else ""
    unit = "messages: one for each 4 KB of `windowBytes`" if dialect.window_unit is WindowUnit.MESSAGES else "bytes"
    return f"`{dialect.window_header}`, {unit}{most}"


def _credit(dialect: AmqpDialect) -> str:
    most = f", at most {dialect.max_unacknowledged} messages" if dialect.max_unacknowledged else ""
    return f"credit for `windowBytes`{most}"


def _delay(dialect: Dialect) -> str:
    return _yes(not {"delivery_delay", "JMSDeliveryTime"}.isdisjoint(dialect.send_headers), "refused")


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


def _selectors(dialect: Dialect) -> str:
    return "in Spark only" if dialect.selector_dialect is None else "evaluated by the broker"


def _amqp_selectors(dialect: AmqpDialect) -> str:
    return "in Spark only" if dialect.selector_dialect in {None, "amqp"} else "evaluated by the broker"


def _amqp_transactions(dialect: AmqpDialect) -> str:
    """An unknown broker shows it when the connector attaches to its coordinator."""
    return "if the broker has them" if dialect.name == "amqp" else _yes(dialect.has_transactions, "refused")


def _amqp_shared(dialect: AmqpDialect) -> str:
    """A broker offers the capability in its ``open``, so no dialect has it: what the tests of tests/brokers see."""
    if not dialect.can(Feature.TOPICS):
        return "refused"
    return {"artemis": "yes", "broker-j": "yes", "classic": "refused"}.get(dialect.name, "if it offers `SHARED-SUBS`")


def _amqp_stops(dialect: AmqpDialect) -> str:
    return "one for each message in flight" if dialect.name == "broker-j" else "none"


_UNBOUNDED = (1 << 31) - 1
_NO_DELIVERY_ID = "no: it is null, and dropping duplicates by it would keep only one row"

_CAPABILITIES: tuple[tuple[str, Callable[[Dialect], str], Callable[[AmqpDialect], str]], ...] = (
    ("tested versions", lambda d: d.tested_versions, lambda d: d.tested_versions),
    ("queue → Spark", _read, _read),
    (
        "redeliveries are recognised (`delivery_id`)",
        lambda d: _yes(d.can(Feature.JOURNAL), _NO_DELIVERY_ID),
        lambda _: "yes",
    ),
    ("`JMSMessageID`", _message_id, lambda _: "if the producer set one"),
    ("Spark → queue", _write, _write),
    (
        "one transaction for each task (`transaction=task`)",
        lambda d: _yes(d.has_transactions, "refused"),
        _amqp_transactions,
    ),
    (
        "receipts with `transaction=none`",
        lambda d: "one for each row" if d.confirms_single_messages else "one for all rows",
        lambda _: "one for each row",
    ),
    (
        "exactly-once writes (`deliveryGuarantee=exactly-once`)",
        *(lambda d: _yes(d.can(Feature.EXACTLY_ONCE_WRITE), "refused"),) * 2,
    ),
    ("topics, durable subscriptions", *(lambda d: _yes(d.can(Feature.TOPICS), "refused"),) * 2),
    (
        "shared durable subscriptions (`sharedSubscription`)",
        lambda d: _yes(d.can(Feature.SHARED), "refused"),
        _amqp_shared,
    ),
    ("selectors", _selectors, _amqp_selectors),
    ("prefetch window", _window, _credit),
    ("delivery attempts when a query stops", _stops, _amqp_stops),
    (
        "acknowledgements survive `kill -9` of the broker",
        lambda d: _yes(d.ack_receipts_are_durable),
        lambda d: _yes(d.has_transactions),
    ),
    (
        "`spark.read` costs no delivery attempt",
        lambda d: _yes(_reads_without_counting(d)),
        lambda d: _yes(d.browses),
    ),
    ("time to live", lambda d: _yes(not {"JMSExpiration", "time_to_live"}.isdisjoint(d.send_headers)), lambda _: "yes"),
    ("delivery delay", _delay, lambda d: _yes(d.send.delays_delivery, "refused")),
    (
        "maps, streams and objects of this sink",
        lambda d: "in envelopes" if d.envelopes else "no",
        lambda _: "as JMS has them",
    ),
    ("maps of Java producers", _maps, lambda _: "with their content"),
    ("management queries", *(lambda d: _yes(d.management is not None),) * 2),
)
"""Fact, and what it is over STOMP and over AMQP."""


_ONLY_OF_TESTED = {
    "redeliveries are recognised (`delivery_id`)",
    "`JMSMessageID`",
    "delivery attempts when a query stops",
    "acknowledgements survive `kill -9` of the broker",
    "`spark.read` costs no delivery attempt",
    "maps, streams and objects of this sink",
    "maps of Java producers",
}
"""Facts that no documentation of a broker states."""


def features_table(broker: str) -> str:
    """What a broker can do over each protocol."""
    stomp, amqp = DIALECTS[broker], AMQP_DIALECTS[broker]
    return _table(
        ("", "STOMP", "AMQP"),
        [(fact, over_stomp(stomp), over_amqp(amqp)) for fact, over_stomp, over_amqp in _CAPABILITIES],
    )


def other_features_table() -> str:
    """What the brokers can do that the connector reaches over AMQP only, as far as it is known of each of them."""
    dialects = [dialect for name, dialect in AMQP_DIALECTS.items() if name not in DIALECTS]
    rows = [
        (fact, *(over_amqp(dialect) for dialect in dialects))
        for fact, _, over_amqp in _CAPABILITIES
        if fact not in _ONLY_OF_TESTED
    ]
    return _table(("", *(f"`{dialect.name}`" for dialect in dialects)), rows)


def queue_facts_table() -> str:
    """What each fact of a queue means for each feature: nothing, a warning, or a refusal."""
    features = [each for each in Feature if any(each in rule.uses for rule in RULES)]
    rows = [(f"`{rule.name}`", *(_effect(rule.uses.get(each)) for each in features)) for rule in RULES]
    return _table(("", *(each.value for each in features)), rows)


def refusals_table(broker: str) -> str:
    """What the dialects of a broker cannot do: feature, protocol and refusal."""
    found: dict[tuple[str, str], list[str]] = {}
    for feature, (protocol, dialects) in itertools.product(Feature, _PROTOCOLS.items()):
        if (refusal := dialects[broker].cannot.get(feature)) is not None:
            found.setdefault((protocol, _refused(refusal)), []).append(feature.value)
    rows = [(", ".join(features), protocol, text) for (protocol, text), features in found.items()]
    return _table(("request", "over", "error (`[JMS_UNSUPPORTED]`) and alternative"), rows)


def other_refusals_table() -> str:
    """What the dialects of the other brokers cannot do."""
    found: dict[tuple[Feature, str], list[str]] = {}
    names = [name for name in AMQP_DIALECTS if name not in DIALECTS]
    for feature, name in itertools.product(Feature, names):
        if (refusal := AMQP_DIALECTS[name].cannot.get(feature)) is not None:
            found.setdefault((feature, _refused(refusal)), []).append(f"`{name}`")
    rows = [
        (feature.value, "all" if len(brokers) == len(names) else ", ".join(brokers), text)
        for (feature, text), brokers in found.items()
    ]
    return _table(("request", "`broker`", "error (`[JMS_UNSUPPORTED]`) and alternative"), rows)


_PROTOCOLS: dict[str, Mapping[str, BrokerDialect]] = {"STOMP": DIALECTS, "AMQP": AMQP_DIALECTS}


def _refused(refusal: Refusal) -> str:
    fact = refusal.fact.replace("{broker}", "the broker")
    begins_with_an_option = fact.partition("=")[0] in {option.name for option in OPTIONS}
    return f"{fact if begins_with_an_option else _start(fact)} {refusal.remedy}"


def _effect(use: Use | None) -> str:
    return "" if use is None else f"**{use.effect.value}**" if use.effect is Effect.REFUSE else use.effect.value


# --- the command line ----------------------------------------------------------------------------------


_ACCESS = {"broker_url", "user", "password_file", "password_env", "option"}
"""The arguments of every command that connects."""


def commands_text() -> str:
    """A section for each command, from the arguments of its parser. Those of a connection stand once, before them."""
    commands = list(_commands(command_line()))
    actions = dict(commands)["check"]._actions  # noqa: SLF001
    shared = [_argument_row(action) for action in actions if action.dest in _ACCESS]
    head = f"Every command that connects to a broker has these arguments:\n\n{_arguments_table(shared)}"
    return "\n\n".join([head, *(_command_section(*found, shared) for found in commands)])


def _commands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """The commands in order, each before its actions. argparse has no public way to list them."""
    for action in parser._actions:  # noqa: SLF001
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for name, command in action.choices.items():
                yield name, command
                yield from ((f"{name} {own}", parser) for own, parser in _commands(command))


def _command_section(name: str, parser: argparse.ArgumentParser, shared: Sequence[tuple[str, ...]]) -> str:
    actions = [action for action in parser._actions if action.help != argparse.SUPPRESS]  # noqa: SLF001
    rows = [_argument_row(action) for action in actions if action.dest not in {"help", "action"}]
    rows = [row for row in rows if row not in shared]
    parts = [f"### pyspark-jms {name}", parser.description or ""]
    parts += [_arguments_table(rows)] if rows else []
    return "\n\n".join([*parts, *([parser.epilog] if parser.epilog else [])])


def _arguments_table(rows: Sequence[tuple[str, ...]]) -> str:
    return _table(("argument", "default", "meaning"), rows)


def _argument_row(action: argparse.Action) -> tuple[str, ...]:
    value = "" if action.nargs == 0 else f" {action.metavar or action.dest.upper().replace('_', '-')}"
    names = ", ".join(f"`{name}{value}`" for name in action.option_strings) or f"`{action.dest}`"
    shown = "" if action.default in (None, False, [], argparse.SUPPRESS) else f"`{action.default}`"
    text = (action.help or "").replace(" (default: %(default)s)", "")
    return names, "required" if action.required else shown, text[:1].upper() + text[1:]


# --- compatibility -------------------------------------------------------------------------------------

TESTED = ROOT / "tests/tested"
"""What runs of tests used (``pytest --tested``): newest.json, yarn.json, and a file for each older release of Spark."""

_BROKERS = {"artemis": "Artemis", "classic": "Classic", "rabbitmq": "RabbitMQ", "broker-j": "Qpid Broker-J"}
_BROKERS |= {"hadoop": "YARN and HDFS"}
_COMMANDS = {"newest": "`make test test-deep`", "yarn": "`make test-yarn`"}


def compatibility_table() -> str:
    runs = [(path.stem, json.loads(path.read_text(encoding="utf-8"))) for path in TESTED.glob("*.json")]
    runs.sort(
        key=lambda run: ([int(number) for number in run[1]["PySpark"].split(".")], run[0] == "newest"), reverse=True
    )
    head = ("PySpark", "pyspark-jms", "Python", "Delta", "Iceberg", "brokers, cluster", "tests")
    return _table(head, [_compatibility_row(*run) for run in runs])


def _compatibility_row(name: str, used: dict[str, Any]) -> tuple[str, ...]:
    brokers = "; ".join(f"{title} {_versions(used, broker)}" for broker, title in _BROKERS.items() if broker in used)
    tests = _COMMANDS.get(name, "`make test-spark`")
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
    "docs/brokers/artemis.md": {
        BEGIN: partial(features_table, "artemis"),
        QUEUE_FACTS: queue_facts_table,
        REFUSALS: partial(refusals_table, "artemis"),
    },
    "docs/brokers/classic.md": {
        BEGIN: partial(features_table, "classic"),
        REFUSALS: partial(refusals_table, "classic"),
    },
    "docs/brokers/rabbitmq.md": {
        BEGIN: partial(features_table, "rabbitmq"),
        REFUSALS: partial(refusals_table, "rabbitmq"),
    },
    "docs/brokers/others.md": {BEGIN: other_features_table, REFUSALS: other_refusals_table},
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
