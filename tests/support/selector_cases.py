"""Files of test cases for selectors, one JSON object a line: a selector with a message and the expected result, or with
the text that is pushed for it.

Two texts for a broker agree if the broker parses both into the same tree, or delivers the same messages for both. The
second check uses every typed value that can distinguish the texts, and skips messages on which the broker would throw
an exception for the stated text.
"""

import json
from itertools import islice, product
from pathlib import Path

from selector_schema import message_of, parse, push

from jms_selector.errors import EvaluationError, InvalidSelectorError
from jms_selector.meaning.conversions import readings
from jms_selector.meaning.evaluate import Message, evaluate
from jms_selector.syntax.dialects import DIALECTS
from jms_selector.syntax.kinds import BITS, NULL, Kind, Value, in_range, to_float
from jms_selector.syntax.tree import In, Like, Literal, names, postorder

DATA = Path(__file__).parents[1] / "selector" / "data"

VERDICT_KEYS = ("artemis", "classic", "lenient")
"""Keys of a case that hold the expected result of one dialect; ``expect`` holds the result for the case's dialect."""

MAX_MESSAGES = 20_000
"""Maximum number of messages on which one pair of texts is compared."""

PUSHED_KEYS = {"artemis": "artemis_stomp", "classic": "classic_stomp"}


def cases(name):
    return [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text().splitlines() if line.strip()]


def wrong_verdicts(found_cases, only=None):
    """How many expected results were compared, and what differs: case, dialect, expected and found result."""
    compared = [(case, name, expected) for case in found_cases for name, expected in verdicts(case, only)]
    wrong = []
    for case, dialect, expected in compared:
        found = verdict(case, dialect)
        same = type(found) is type(expected) and found == expected
        if not same and not (_is_live_case(case) and expected is False and found is None):
            wrong.append((case.get("id"), dialect, case["selector"], expected, found))
    return len(compared), wrong


def wrong_texts(found_cases):
    """How many texts were compared, and the cases with another text."""
    compared = [(case, name) for case in found_cases for name, key in PUSHED_KEYS.items() if key in case]
    return len(compared), [(case, name) for case, name in compared if not _is_pushed_as_stated(case, name)]


def verdicts(case, only):
    """(dialect, expected result) of a case. With ``only``, a broker without a key has the specification's result."""
    owner = case.get("spec_or_broker", "spec")
    if only is None:
        yield owner, case["expect"]
        yield from ((key, case[key]) for key in VERDICT_KEYS if key in case and key != owner)
    elif only in case and only in VERDICT_KEYS:
        yield only, case[only]
    elif only == owner or (owner == "spec" and only in VERDICT_KEYS):
        # A case has a key for a broker only if that broker's result differs from `expect`.
        yield only, case["expect"]


def _is_live_case(case):
    """Return whether the case was observed on a running broker, where unknown and false look the same: no delivery."""
    return str(case.get("source", "")).startswith("live ")


def verdict(case, dialect):
    """Evaluate a case: a truth value, ``error`` for an invalid selector, or ``exception`` for an evaluation error."""
    broker = dialect in {"artemis", "classic"}
    # Live cases of Classic were sent over STOMP, where the broker adds the prefix itself.
    convert = True if dialect == "classic" and _is_live_case(case) else None
    try:
        selector = parse(case["selector"], strict=dialect == "spec", dialect=dialect if broker else "spec")
        rules = "spec" if dialect == "lenient" else dialect
        return evaluate(selector, parse_message(case.get("message", {})), rules, convert=convert)
    except InvalidSelectorError:
        return "error"
    except EvaluationError:
        return "exception"


def parse_message(stated):
    """``{"headers": {name: value}, "properties": {name: {"type": …, "value": …}}}`` as a message."""
    headers = message_of(stated.get("headers", {})).headers
    properties = {
        name: _value(Kind(entry["type"]), entry["value"]) for name, entry in stated.get("properties", {}).items()
    }
    return Message(headers, properties)


def _value(kind: Kind, value):
    """A value of a case. Numbers that JSON cannot represent ("NaN", "-0.0") are strings."""
    if kind in {Kind.FLOAT, Kind.DOUBLE}:
        number = float(value)
        return Value(kind, to_float(number) if kind is Kind.FLOAT else number)
    return Value(kind, value)


def _is_pushed_as_stated(case, dialect):
    expected = case[PUSHED_KEYS[dialect]]
    try:
        pushed = push(case["selector"], dialect)
    except InvalidSelectorError:
        return False
    if expected is None:
        # The case states no text, so no text may be pushed. For "rewrite", a text without residual agrees, too.
        return pushed.text is None or (case["push"] == "rewrite" and pushed.residual is None)
    whole = pushed.text is not None and pushed.residual is None
    return whole and deliver_the_same_messages(pushed.text, expected, DIALECTS[dialect])


def deliver_the_same_messages(text, other, dialect):
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


def _is_delivered(selector, message, dialect):
    try:
        convert = dialect.always_converts or selector.convert
        return evaluate(selector, message, dialect, convert=convert) is True
    except EvaluationError:
        return None


def _generate_messages(first, second, dialect):
    used = sorted({*names(first.root), *names(second.root)})
    values = list(_generate_values(first, second))
    own = [dialect.aliases.get(name, name) for name in used]
    for chosen in product(values, repeat=len(own)):
        yield Message({}, {n: v for n, v in zip(own, chosen, strict=True) if v is not NULL})


def _generate_values(*selectors):
    """NULL, both booleans, every typed value of the literals' texts, and the numbers at and next to each literal."""
    texts = {"", "x"}
    numbers = {0.0}
    for selector in selectors:
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
