"""The tables of the reference pages, written from the code: options from ``OPTIONS``, errors from the error tree.

``python tools/reference.py`` rewrites them between their markers; ``--check`` only reports what is out of date.
"""

import argparse
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from pyspark_jms.errors import JMSError
from pyspark_jms.options.table import OPTIONS, Option
from pyspark_jms.stomp.dialects import DIALECTS, Dialect
from pyspark_jms.stomp.dialects.base import BodyRule, WindowUnit

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- written by tools/reference.py: begin -->", "<!-- end -->"

_SCOPES = {"source": "read", "sink": "write", "both": "both"}
_JMS_NAME = re.compile(r"``(?P<name>\w+)``: ")


def options_table() -> str:
    return _table(("option", "for", "default", "meaning"), [_option_row(option) for option in OPTIONS])


def _option_row(option: Option) -> tuple[str, ...]:
    default = "" if option.default is None else f"`{option.default}`"
    return f"`{option.name}`", _SCOPES[option.scope], default, option.meaning


def errors_table() -> str:
    return _table(("code", "JMS name", "transient", "meaning"), [_error_row(error) for error in _raised(JMSError)])


def _raised(group: type[JMSError]) -> Iterator[type[JMSError]]:
    """The classes that a user can meet, in the order of the file, without those that are only bases of others."""
    for error in group.__subclasses__():
        if error.__doc__ or not error.__subclasses__():
            yield error
        yield from _raised(error)


def _error_row(error: type[JMSError]) -> tuple[str, ...]:
    text = (error.__doc__ or "").partition("\n\n")[0]
    name = _JMS_NAME.match(text)
    meaning = " ".join(text[name.end() if name else 0 :].split())
    shown = f"`{name['name']}`" if name else ""
    return f"`{error.code}`", shown, "yes" if error.transient else "", meaning[:1].upper() + meaning[1:]


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    cells = [[cell.replace("|", "\\|") for cell in row] for row in (head, ("---",) * len(head), *rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def _yes(flag: bool, otherwise: str = "no") -> str:  # noqa: FBT001 - a word for a flag
    return "yes" if flag else otherwise


def _guarantee(dialect: Dialect) -> str:
    return (
        "at-least-once, or exactly-once with a journal" if dialect.stable_id_separator is not None else "at-least-once"
    )


def _sink(dialect: Dialect) -> str:
    if dialect.duplicate_id_header is not None:
        return "at-least-once, or exactly-once"
    return "at-least-once" if dialect.transactions else "at-least-once, row by row"


def _selectors(dialect: Dialect) -> str:
    return "in Spark only" if dialect.selector_dialect is None else "evaluated by the broker"


def _window(dialect: Dialect) -> str:
    most = f", at most {dialect.max_window:,}" if dialect.max_window < _UNBOUNDED else ""
    unit = "messages: one for each 4 KB of `windowBytes`" if dialect.window_unit is WindowUnit.MESSAGES else "bytes"
    return f"`{dialect.window_header}`, {unit}{most}"


def _delay(dialect: Dialect) -> str:
    headers = dialect.send_headers
    return _yes(headers.delivery_delay is not None or headers.delivery_time is not None)


def _message_id(dialect: Dialect) -> str:
    given = "JMSMessageID" in dialect.message_headers.values()
    return _yes(dialect.message_id_is_jms, "if the producer set one" if given else "no")


def _maps(dialect: Dialect) -> str:
    if dialect.body_rule is BodyRule.CONTENT_TYPE:  # what it carries has no JMS type
        return "not tried"
    return "with their content" if dialect.transform_headers else "without their content"


def _reads_without_counting(dialect: Dialect) -> bool:
    return dialect.unsubscribe_keeps_delivery_count or dialect.browse_headers is not None


def _stops(dialect: Dialect) -> str:
    if dialect.unsubscribe_keeps_delivery_count:
        return "none"
    return "one for each message in flight" + ("" if dialect.limits_redelivery else "; the broker has no limit")


_UNBOUNDED = (1 << 31) - 1
_NO_DELIVERY_ID = "no: it is null, and dropping duplicates by it would keep only one row"

_CAPABILITIES: tuple[tuple[str, Callable[[Dialect], str]], ...] = (
    ("tested versions", lambda d: d.tested_versions),
    ("queue → Spark", _guarantee),
    ("redeliveries are recognised (`delivery_id`)", lambda d: _yes(d.stable_id_separator is not None, _NO_DELIVERY_ID)),
    ("`JMSMessageID`", _message_id),
    ("Spark → queue", _sink),
    ("one transaction for each task (`transaction=task`)", lambda d: _yes(d.transactions, "refused")),
    ("receipts with `transaction=none`", lambda d: "one for each row" if d.send_receipts else "one for all rows"),
    (
        "exactly-once writes (`deliveryGuarantee=exactly-once`)",
        lambda d: _yes(d.duplicate_id_header is not None, "refused"),
    ),
    ("selectors", _selectors),
    ("shared durable subscriptions (`sharedSubscription`)", lambda d: _yes(d.durable_subscriptions.shared, "refused")),
    ("prefetch window", _window),
    ("delivery attempts when a query stops", _stops),
    ("acknowledgements survive `kill -9` of the broker", lambda d: _yes(d.ack_receipts_are_durable)),
    ("`spark.read` costs no delivery attempt", lambda d: _yes(_reads_without_counting(d))),
    ("time to live", lambda d: _yes(bool(d.send_headers.expiration or d.send_headers.time_to_live))),
    ("delivery delay", _delay),
    ("maps, streams and objects of this sink", lambda d: "in envelopes" if d.envelopes else "no"),
    ("maps of Java producers", _maps),
    ("management queries", lambda d: _yes(d.management is not None)),
)


def brokers_table() -> str:
    dialects = list(DIALECTS.values())
    rows = [(fact, *(describe(dialect) for dialect in dialects)) for fact, describe in _CAPABILITIES]
    return _table(("", *(f"`{dialect.name}`" for dialect in dialects)), rows)


PAGES = {"docs/options.md": options_table, "docs/errors.md": errors_table, "docs/brokers.md": brokers_table}


def rewritten(page: str, table: str) -> str:
    """The page with the table between its markers; a ``ValueError`` when it has none."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"no {BEGIN} … {END}")
    return f"{before}{begin}\n\n{table}\n\n{end}{after}"


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(description="Write the tables of the reference pages from the code.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a page is out of date")
    check = parser.parse_args(arguments).check
    stale = []
    for name, table in PAGES.items():
        old = (root / name).read_text(encoding="utf-8")
        new = rewritten(old, table())
        if new != old:
            stale.append(name)
            if not check:
                (root / name).write_text(new, encoding="utf-8")
    if check and stale:
        print(f"out of date: {', '.join(stale)}. Run python tools/reference.py.")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
