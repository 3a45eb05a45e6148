"""Test cases: a selector and the text to push for it. ``jms-selector conformance --pushdown FILE`` runs them.

Two texts agree if the broker parses both into the same tree, or delivers the same messages for both. The second check
uses every typed value that can distinguish the texts, and skips messages on which the broker would throw an
exception for the stated text.
"""

from collections.abc import Iterator, Mapping
from itertools import islice, product
from pathlib import Path
from typing import Any

from jms_selector.conformance.cases import Failure, Report, cases, report
from jms_selector.errors import EvaluationError, InvalidSelectorError
from jms_selector.meaning.conversions import readings
from jms_selector.meaning.evaluate import evaluate
from jms_selector.meaning.message import Message
from jms_selector.pushdown.push import push
from jms_selector.syntax.dialects import DIALECTS, Dialect
from jms_selector.syntax.kinds import BITS, NULL, Kind, Value, in_range, to_float
from jms_selector.syntax.parse import parse
from jms_selector.syntax.tree import In, Like, Literal, Selector, names, postorder

__all__ = ["run"]

MAX_MESSAGES = 20_000
"""Maximum number of messages on which one pair of texts is compared."""

_KEYS = {"artemis": "artemis_stomp", "classic": "classic_stomp"}


def run(path: str | Path, dialect: str | None = None) -> Report:
    chosen = [dialect] if dialect in _KEYS else list(_KEYS)
    return report(_check_case(case, name) for case in cases(path) for name in chosen if _KEYS[name] in case)


def _check_case(case: Mapping[str, Any], dialect: str) -> Failure | None:
    expected = case[_KEYS[dialect]]
    try:
        pushed = push(case["selector"], dialect)
    except InvalidSelectorError:
        return Failure(case["id"], dialect, case["selector"], expected, "error")
    found = pushed.text
    if expected is None:
        # The case states no text, so no text may be pushed. For "rewrite", a text without residual agrees, too.
        agreed = found is None or (case["push"] == "rewrite" and pushed.residual is None)
    else:
        whole = found is not None and pushed.residual is None
        agreed = whole and deliver_the_same_messages(str(found), expected, DIALECTS[dialect])
    return None if agreed else Failure(case["id"], dialect, case["selector"], expected, found)


def deliver_the_same_messages(text: str, other: str, dialect: Dialect) -> bool:
    """Return whether the broker delivers the same messages for both texts."""
    ours, theirs = parse(text, dialect=dialect), parse(other, dialect=dialect)
    if (ours.root, ours.convert) == (theirs.root, theirs.convert):
        return True
    if not ours.root or not theirs.root or ours.convert != theirs.convert:
        return False
    for message in islice(_generate_messages(ours, theirs, dialect), MAX_MESSAGES):
        stated = _is_delivered(theirs, message, dialect)
        if stated is not None and stated != _is_delivered(ours, message, dialect):
            return False
    return True


def _is_delivered(selector: Selector, message: Message, dialect: Dialect) -> bool | None:
    try:
        convert = dialect.always_converts or selector.convert
        return evaluate(selector, message, dialect, convert=convert) is True
    except EvaluationError:
        return None


def _generate_messages(first: Selector, second: Selector, dialect: Dialect) -> Iterator[Message]:
    assert first.root is not None
    assert second.root is not None
    used = sorted({*names(first.root), *names(second.root)})
    values = list(_generate_values(first, second))
    own = [dialect.aliases.get(name, name) for name in used]
    for chosen in product(values, repeat=len(own)):
        yield Message({}, {n: v for n, v in zip(own, chosen, strict=True) if v is not NULL})


def _generate_values(*selectors: Selector) -> Iterator[Value]:
    """NULL, both booleans, every typed value of the literals' texts, and the numbers at and next to each literal."""
    texts = {"", "x"}
    numbers = {0.0}
    for selector in selectors:
        assert selector.root is not None
        for node in postorder(selector.root):
            if isinstance(node, Literal) and isinstance(node.value, int | float) and node.kind in {*BITS, Kind.DOUBLE}:
                numbers.add(node.value)
            elif isinstance(node, Literal | Like | In):
                texts |= {str(fact) for fact in node.facts if isinstance(fact, str) and not isinstance(fact, Kind)}
                texts |= set(node.values) if isinstance(node, In) else set()
    texts |= {str(int(number)) for number in numbers} | {"5.5", "true", "PERSISTENT", "DURABLE", "NON_DURABLE"}
    yield NULL
    yield from (Value(Kind.BOOLEAN, truth) for truth in (True, False))
    yield from (value for text in sorted(texts) for value in readings(text))
    for number in sorted(numbers):
        for near in (number - 1, number, number + 1):
            yield from (Value(k, int(near)) for k in BITS if in_range(int(near), k))
            yield Value(Kind.FLOAT, to_float(near))
            yield Value(Kind.DOUBLE, float(near))
