"""The plan of a soak is its seed, and its first line repeats it."""

import shlex

import pytest
from deaths import WEIGHTS
from soak import RANDOM_FAULTS, SINGLE_DEATHS, arguments, parser, plan

LINE = ["--kills", "7", "--seed", "3", "--deaths", "--mode", "amqp", "--mode", "amqp-once", "--option", "readers=3"]


@pytest.mark.parametrize("kind", [RANDOM_FAULTS, SINGLE_DEATHS])
def test_a_seed_is_a_plan(kind):
    modes = ["amqp", "amqp-sink", "amqp-once"]
    plans = [plan(seed, 200, modes, kind) for seed in (1, 1, 2)]
    assert plans[0] == plans[1] != plans[2]
    assert sum(len(leg.hits) for leg in plans[0]) == 200
    faults = {hit.fault for leg in plans[0] for hit in leg.hits}
    assert faults == set(WEIGHTS) if kind is SINGLE_DEATHS else not faults & set(WEIGHTS)
    from_files = {hit.fault for leg in plans[0] for hit in leg.hits if hit.mode == "amqp-sink"}
    assert from_files
    assert not from_files & {"runner-dies", "kill-runner"}


def test_the_first_line_repeats_every_argument():
    given = parser().parse_args(LINE)
    again = [*LINE[:4], *shlex.split(" ".join(arguments(given, given.mode)))]
    assert again == LINE
    assert parser().parse_args(again) == given
