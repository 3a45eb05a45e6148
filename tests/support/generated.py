"""Lists of values of a hypothesis strategy, for tests that send thousands of values through a broker and Spark."""

from hypothesis import HealthCheck, Phase, given, seed, settings


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
