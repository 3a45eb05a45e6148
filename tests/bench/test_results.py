"""What was measured → the document: medians over the rounds that count, ratios inside a round."""

import pytest

from bench.job import Measured
from bench.results import cases_of, followed


def measured(per_second, *, compiling=0.0, **microseconds):
    """1,000 messages at that pace, and what each process spent on one."""
    cpu = {role: spent * 1000 / 1e6 for role, spent in microseconds.items()}
    notes = {"jvm_compiling_us_per_message": compiling}
    return Measured(messages=1000, seconds=1000 / per_second, cpu=cpu, notes=notes)


def rounds(*rates, **more):
    return [measured(rate, **more) for rate in rates]


MEASUREMENTS = {
    "read.raw": rounds(1, 100, 200, 400, broker=20, client=5),
    "read.jms": [
        measured(1, jvm=900, runner=90, workers=9, broker=50, compiling=500),
        *rounds(50, 160, 120, jvm=20, runner=5, workers=3, broker=50, compiling=10),
    ],
    "read.naive": rounds(1, 10, 80, 30),
    "read.journal": rounds(1, 40, 120, 30),
    "write.raw": rounds(1, 300, 300, 300),
    "write.jms": rounds(1, 150, 240, 300, jvm=10, workers=2),
}


def test_the_round_that_warms_up_is_in_no_median():
    cases = cases_of(MEASUREMENTS)
    assert cases["read.raw"]["messages_per_s"] == {"median": 200, "lowest": 100, "highest": 400}
    assert cases["read.jms"]["first_round"]["messages_per_s"] == 1
    assert cases["read.jms"]["first_round"]["cpu_us_per_message"]["jvm"] == pytest.approx(900)


def test_a_ratio_is_taken_inside_its_round():
    # the medians' own ratio would be 120 / 200
    assert followed(MEASUREMENTS)["read.ratio_to_raw"] == pytest.approx(0.5)  # of 0.5, 0.8, 0.3
    assert cases_of(MEASUREMENTS)["read.jms"]["ratio_to_raw"] == {"median": 0.5, "lowest": 0.3, "highest": 0.8}


def test_the_flat_keys():
    document = followed(MEASUREMENTS)
    assert document["read.ratio_to_stomp_py"] == 4  # of 5, 2, 4
    assert document["journal.ratio"] == 0.75  # of 0.8, 0.75, 0.25
    assert document["write.ratio_to_raw"] == 0.8  # of 0.5, 0.8, 1.0
    assert document["read.messages_per_s"] == pytest.approx(120)


def test_what_was_not_measured_has_no_key():
    assert not {key for key in followed(MEASUREMENTS) if "java" in key or "rate_source" in key or "listener" in key}
    assert set(followed({"read.raw": MEASUREMENTS["read.raw"]})) == set()


def test_spark_is_jvm_runner_and_workers_and_not_the_broker():
    document = followed(MEASUREMENTS)
    assert document["read.cpu_us_per_message"] == pytest.approx(28)
    assert document["read.cpu_us_per_message_first_round"] == pytest.approx(999)
    assert document["read.cpu_us_per_message_without_compiler"] == pytest.approx(18)
    assert document["write.cpu_us_per_message"] == pytest.approx(12)


def test_a_case_is_compared_with_the_raw_one_of_its_own_way():
    assert cases_of(MEASUREMENTS)["write.jms"]["ratio_to_raw"]["highest"] == 1
    assert cases_of(MEASUREMENTS)["read.raw"]["ratio_to_raw"] == {"median": 1, "lowest": 1, "highest": 1}
