"""How many values a hypothesis test generates, and lists of them for tests with a broker and Spark."""

import os

from hypothesis import HealthCheck, Phase, given, seed, settings


def examples(count):
    """``count``, multiplied by the environment variable EXAMPLES (default 1), which ``make test-all`` sets."""
    return count * int(os.environ.get("EXAMPLES", "1"))


def generated(strategy, count, number):
    """``count`` values; the same for the same ``number``, within one version of hypothesis."""
    found = []

    @seed(number)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(value):
        found.append(value)

    collect()
    assert len(found) >= count, f"{len(found)} of {count} values: the strategy has no more"
    return found[:count]
