from functools import partial

import pytest

from jms_selector.syntax import check
from jms_selector.syntax.check import Item, RuleError
from jms_selector.syntax.kinds import Kind
from jms_selector.syntax.tree import Call, Compare, Literal, Negative, Not, Property
from pyspark_jms.jms.headers import SELECTOR_SCHEMA

PROPERTY = Item(Property("a"), 3)
NUMBER = Item(Literal(1, Kind.INT), 3)
TEXT = Item(Literal("x", Kind.STRING), 3)
TRUTH = Item(Literal(True, Kind.BOOLEAN), 3)
NULL = Item(Literal(None, Kind.NULL), 3)
CONDITION = Item(Compare("=", Property("a"), Literal(1, Kind.INT)), 3)
CALCULATION = Item(Negative(Property("a")), 3)
BOOLEAN_CALL = Item(Call("REGEX", ()), 3)
VALUE_CALL = Item(Call("SPLIT", ()), 3)

RULES = [
    (
        check.require_condition,
        [PROPERTY, TRUTH, NULL, CONDITION, BOOLEAN_CALL],
        [NUMBER, TEXT, CALCULATION, VALUE_CALL],
    ),
    (check.require_number, [PROPERTY, NUMBER, CALCULATION, VALUE_CALL], [TEXT, TRUTH, NULL, CONDITION]),
    (partial(check.require_property, what="IN", bare=True), [PROPERTY], [NUMBER, TEXT, CALCULATION, CONDITION]),
    (check.require_value, [PROPERTY, NUMBER, TEXT, CALCULATION], [CONDITION, Item(Not(Property("a")), 3)]),
    (
        partial(check.require_numeric_value, schema=SELECTOR_SCHEMA),
        [PROPERTY, NUMBER, CALCULATION],
        [TEXT, TRUTH, CONDITION, Item(Property("JMSType"), 3)],
    ),
]


@pytest.mark.parametrize(("rule", "passed", "refused"), RULES)
def test_rules(rule, passed, refused):
    for item in passed:
        rule(item)
    for item in refused:
        with pytest.raises(RuleError) as caught:
            rule(item)
        assert caught.value.item is item


def test_literals_that_cannot_be_compared():
    check.require_comparable(NUMBER, TRUTH)
    check.require_comparable(TRUTH, PROPERTY)
    for left, right in [(NULL, NUMBER), (NUMBER, NULL), (TRUTH, NUMBER), (TRUTH, TEXT)]:
        with pytest.raises(RuleError):
            check.require_comparable(left, right)


def test_an_escape_is_one_character_or_one_utf_16_unit():
    check.require_one_character(TEXT, None, activemq=True)
    check.require_one_character(TEXT, "😀", activemq=False)
    for character, activemq in [("😀", True), ("", False), ("ab", False)]:
        with pytest.raises(RuleError):
            check.require_one_character(TEXT, character, activemq=activemq)


def test_strict_names():
    for name in ("JMSType", "JMSXGroupID", "JMS_IBM_Format", "jmspriority", "a"):
        check.require_specified_name(PROPERTY, name, SELECTOR_SCHEMA)
    for name in ("JMSDestination", "JMSRedelivered", "JMSfoo"):
        with pytest.raises(RuleError, match=name):
            check.require_specified_name(PROPERTY, name, SELECTOR_SCHEMA)
