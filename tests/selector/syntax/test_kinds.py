import math

from jms_selector.syntax.kinds import Kind, integer_kind, to_float


def test_floats_round_once_and_an_integer_has_the_smallest_possible_kind():
    assert to_float(16777217) == 16777216.0
    assert to_float(1e300) == math.inf
    # Through double this long would round up at the second step.
    assert to_float((1 << 60) + (1 << 36) + 1) == float((1 << 60) + (1 << 37))
    assert [integer_kind(n) for n in (1, 1 << 31, 1 << 63)] == [Kind.INT, Kind.LONG, Kind.BIG]
