import pytest

from jms_selector.meaning.evaluate import Message, evaluate, typed
from jms_selector.meaning.functions import call
from jms_selector.syntax.kinds import NULL, Kind
from jms_selector.syntax.parse import parse


def called(function, *arguments):
    return call(function, [typed(argument) for argument in arguments])


@pytest.mark.parametrize(
    ("function", "arguments", "result"),
    [
        ("REGEX", ("^x", "xy"), True),
        ("REGEX", ("x", "yxy"), True),
        ("REGEX", ("^y", "xy"), False),
        ("REGEX", ("5", 15), True),
        ("REGEX", ("x", NULL), False),
        ("REPLACE", ("1,2/3", "[,/]", ";"), "1;2;3"),
        ("REPLACE", ("ab", "(a)(b)", "$2$1"), "ba"),
    ],
)
def test_results(function, arguments, result):
    assert called(function, *arguments).value == result


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("a,b,,", ","), ["a", "b"]),
        ((",a", ","), ["", "a"]),
        (("a,b,c", ",", 2), ["a", "b,c"]),
        (("a,b", ",", 1), ["a,b"]),
    ],
)
def test_split(arguments, parts):
    assert [part.value for part in called("SPLIT", *arguments).value] == parts


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("SPLIT", (NULL, ",")),
        ("SPLIT", (5, ",")),
        ("SPLIT", ("a", ",", "x")),
        ("SPLIT", ("a", "(")),
        ("REPLACE", ("a", "b", NULL)),
        ("REPLACE", ("a", "(", "b")),
        ("REGEX", ("(", "a")),
        ("INLIST", ("a", "a")),
    ],
)
def test_arguments_on_which_java_throws(function, arguments):
    assert called(function, *arguments).kind is Kind.FAULT


def test_in_a_selector():
    message = Message.of(s="x", n=5)
    for text, expected in [
        ("INLIST(SPLIT('Tom,x', ','), s)", True),
        ("INLIST(MAKELIST('5', 5), n)", True),
        ("INLIST(MAKELIST('5'), n)", False),
        ("NOT REGEX('^y', s)", True),
        ("REPLACE(s, 'x', 'z') = 'z'", True),
    ]:
        assert evaluate(parse(text, dialect="classic"), message, "classic") is expected
