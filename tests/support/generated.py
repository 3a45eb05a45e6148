"""How many cases a test generates, and lists of generated values for tests with a broker and Spark."""

import os

from hypothesis import HealthCheck, Phase, given, seed, settings


def examples(count):
    """Return ``count``, multiplied by the environment variable EXAMPLES.

    The default is 0.25. ``make test-deep`` sets 1, ``make test-all`` 4. Each run of a hypothesis test has other values.
    """
    return max(1, round(count * float(os.environ.get("EXAMPLES", "0.25"))))


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
