"""Wanted, measured, met or not."""

from bench.targets import TARGETS, Target, judged


def test_a_bound_is_met_at_the_bound():
    least, most = Target("a", "a", 0.8), Target("b", "b", 20, most=True)
    assert [least.met(value) for value in (0.79, 0.8, 0.9)] == [False, True, True]
    assert [most.met(value) for value in (19, 20, 21)] == [True, True, False]


def test_what_was_not_measured_is_not_judged():
    verdicts = judged({"read.ratio_to_raw": 0.7, "import.ms": 3, "other": 1})
    assert [(target.key, value, met) for target, value, met in verdicts] == [
        ("read.ratio_to_raw", 0.7, False),
        ("import.ms", 3, True),
    ]


def test_a_figure_has_one_target():
    keys = [target.key for target in TARGETS]
    assert len(keys) == len(set(keys))
