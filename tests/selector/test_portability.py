import json

import engine_table
import pytest
import selector_strategies
from engine_cases import CASES
from generated import examples
from hypothesis import HealthCheck, given, settings

from jms_selector import evaluate, parse
from jms_selector.portability import DATA, DIFFERENCES, ENGINES, portable


def keys(found):
    names = {difference: key for key, difference in DIFFERENCES.items()}
    return {names[each] for each in found}


@pytest.mark.parametrize(("key", "text"), [(key, text) for key, (texts, _) in CASES.items() for text in texts])
def test_each_class_is_found_in_what_the_engines_were_asked(key, text):
    assert key in keys(portable(text).differences)


@pytest.mark.parametrize("key", DIFFERENCES)
def test_the_engines_were_asked_what_differs_for_example(key):
    assert DIFFERENCES[key].example in CASES[key][0]
    assert set(DIFFERENCES[key].engines) <= ENGINES.keys()


PORTABLE = [
    ("NOT a = 1", "a IS NOT NULL AND NOT (a = 1)"),
    ("NOT NOT b", "b"),
    ("m <> 'a' AND n = 1", "m IS NOT NULL AND m <> 'a' AND n = 1"),
    ("NOT (m IN ('a') OR n > 1)", "m IS NOT NULL AND NOT (m IN ('a')) AND n IS NOT NULL AND NOT (n > 1)"),
    ("5 = x", "x = 5"),
    ("t > -0.5 AND s = '-0.5'", "t > - 0.5 AND s = '-0.5'"),
    ("i = 010 OR i = 0x10", "i = 8 OR i = 16"),
    ("JMSPriority <> 4", "JMSPriority <> 4"),
    ("i = 5 /* c */", "i = 5"),
    ("10 - a - 2 = 3", "(10 - a) - 2 = 3"),
    ("a + b + 1 = 3", "a + b + 1 = 3"),
    ("i = 5L OR d = 0.5f", "i = 5 OR d = 0.5"),
    ("d > 1e10 OR d < 1.5E-7 OR s = '1E10'", "d > 10000000000.0 OR d < 0.00000015 OR s = '1E10'"),
    ("s LIKE 'a!x%%' ESCAPE '!'", "s LIKE 'a!x%'"),
    ("z <> 0.0 AND z <> -0.0", "z IS NOT NULL AND z <> 0.0 AND z <> - 0.0"),
]


@pytest.mark.parametrize(("text", "wanted"), PORTABLE)
def test_the_portable_text(text, wanted):
    found = portable(text)
    assert found.text == wanted
    avoided = {
        "not",
        "not-not",
        "small-minus",
        "sign",
        "number",
        "exponent",
        "comment",
        "grouping",
        "percent",
        "escape",
    }
    assert not keys(found.remaining) & avoided


@pytest.mark.parametrize("text", ["color = 'red' AND weight > 2500.5", "x IS NOT NULL", "flag", "JMSPriority > 4", ""])
def test_nothing_is_found_in_a_portable_text(text):
    assert portable(text).differences == ()


@settings(max_examples=examples(200), suppress_health_check=[HealthCheck.too_slow])
@given(selector_strategies.selectors(), selector_strategies.messages(20))
def test_the_portable_text_selects_the_same_messages(text, messages):
    written = portable(text).text
    for message in messages:
        assert (evaluate(written, message) is True) == (evaluate(parse(text), message) is True), written


def test_what_a_text_cannot_avoid_remains():
    assert keys(portable("NOT a / 2 = 3").differences) >= {"not", "division", "calculation", "missing"}
    assert keys(portable("NOT a / 2 = 3").remaining) == {"division", "calculation"}


def test_the_page_has_the_table_of_the_data_that_the_warnings_come_from():
    data = json.loads(DATA.read_text())
    page = engine_table.PAGE.read_text()
    assert engine_table.with_table(page, data) == page
    assert {key: tuple(found) for key, found in data["classes"].items()} == {
        key: each.engines for key, each in DIFFERENCES.items()
    }
