import math

import pytest

from jms_selector.meaning.calculate import calculate, compare
from jms_selector.syntax.kinds import Kind

INT, LONG, FLOAT, DOUBLE = Kind.INT, Kind.LONG, Kind.FLOAT, Kind.DOUBLE
NAN = math.nan

CALCULATIONS = [
    ("+", 2147483647, 1, INT, -2147483648),
    ("*", 2147483647, 2147483647, INT, 1),
    ("+", (1 << 63) - 1, 1, LONG, -(1 << 63)),
    ("/", 7, 2, INT, 3),
    ("/", -7, 2, INT, -3),
    ("%", -7, 2, INT, -1),
    ("/", -(1 << 63), -1, LONG, -(1 << 63)),
    ("/", 5, 0, INT, None),
    ("%", 5, 0, LONG, None),
    ("/", 7, 2, DOUBLE, 3.5),
    ("/", -1.0, 0.0, DOUBLE, -math.inf),
    ("/", 1.0, -0.0, DOUBLE, -math.inf),
    ("/", 0.0, 0.0, DOUBLE, NAN),
    ("%", -7.5, 2.0, DOUBLE, -1.5),
    ("%", 1.0, 0.0, DOUBLE, NAN),
    ("%", math.inf, 2.0, DOUBLE, NAN),
    ("*", 1e308, 10.0, DOUBLE, math.inf),
    ("+", 0.1, 0.2, FLOAT, 0.30000001192092896),
    ("-", 1.0, 2.0, DOUBLE, -1.0),
]


@pytest.mark.parametrize(("operator", "left", "right", "kind", "result"), CALCULATIONS)
def test_calculations(operator, left, right, kind, result):
    found = calculate(operator, left, right, kind)
    assert found == result or (math.isnan(found) and math.isnan(result))
    assert type(found) is type(result)


ORDERS = [  # left, right, (< = >) by IEEE, (< = >) by compareTo
    (1.0, 2.0, (1, 0, 0), (1, 0, 0)),
    (NAN, NAN, (0, 0, 0), (0, 1, 0)),
    (NAN, 1.0, (0, 0, 0), (0, 0, 1)),
    (math.inf, NAN, (0, 0, 0), (1, 0, 0)),
    (-0.0, 0.0, (0, 1, 0), (1, 0, 0)),
    (0.0, -0.0, (0, 1, 0), (0, 0, 1)),
]


@pytest.mark.parametrize(("left", "right", "ieee", "total"), ORDERS)
def test_orders_of_floats(left, right, ieee, total):
    for total_order, expected in ((False, ieee), (True, total)):
        found = tuple(compare(o, left, right, DOUBLE, total_order=total_order) for o in "<=>")
        assert found == tuple(map(bool, expected))
        assert compare("<>", left, right, DOUBLE, total_order=total_order) is not found[1]
        if total_order:
            assert compare("<=", left, right, DOUBLE, total_order=True) == (found[0] or found[1])


def test_strings_are_ordered_by_utf_16():
    assert compare("<", "😀", "\ue000", Kind.STRING, total_order=True)
    assert compare("<", "10", "9", Kind.STRING, total_order=True)
    assert not compare("=", "😀", "\ue000", Kind.STRING, total_order=True)
