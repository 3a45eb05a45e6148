"""The worlds that the tests explore to their end, and those in which each broken rule is found.

A row of a table is: what the world has, and the world. ``docs/internals-exactly-once.md`` has these rows too.
"""

import sink_protocol
from sink_world import Budget, SinkWorld

_REFUSED = ("mismatch", "missing", "fenced")

SINK = {
    "two attempts, a closed connection": lambda **how: SinkWorld(
        layouts=(("1",),), budget=Budget(closed=1, speculations=1), may_refuse=_REFUSED, **how
    ),
    "two attempts, a lost answer": lambda **how: SinkWorld(
        layouts=(("1",),), budget=Budget(lost_answers=1, speculations=1), may_refuse=_REFUSED, **how
    ),
    "two runs of the driver, a closed connection": lambda **how: SinkWorld(
        layouts=(("1",),), budget=Budget(driver_deaths=1, closed=1), may_refuse=_REFUSED, **how
    ),
    "two runs, a task's death, a broker's restart": lambda **how: SinkWorld(
        layouts=(("1",),), budget=Budget(driver_deaths=1, task_deaths=1, restarts=1), may_refuse=_REFUSED, **how
    ),
    "two runs, the second one with other partitions": lambda **how: SinkWorld(
        layouts=(("1", "2"), ("12",)), batches=1, budget=Budget(driver_deaths=1), may_refuse=_REFUSED, **how
    ),
    "two runs, the second one with an empty partition less": lambda **how: SinkWorld(
        layouts=(("1", "", "2"), ("1", "2")), batches=1, budget=Budget(driver_deaths=1), may_refuse=_REFUSED, **how
    ),
    "two runs, the second one with other rows": lambda **how: SinkWorld(
        layouts=(("1", "2"), ("1", "3")), batches=1, budget=Budget(driver_deaths=1), may_refuse=_REFUSED, **how
    ),
    "the same, onReplayMismatch=send": lambda **how: SinkWorld(
        layouts=(("1", "2"), ("12",)), batches=1, budget=Budget(driver_deaths=1), send_on_mismatch=True, **how
    ),
    "from batch 5 on: two runs, a deleted token": lambda **how: SinkWorld(
        layouts=(("1",),), first_batch=5, budget=Budget(driver_deaths=1, lost_tokens=1), may_refuse=_REFUSED, **how
    ),
    "redelivery-delay: two attempts, a closed connection": lambda **how: SinkWorld(
        layouts=(("1",),), delays=True, budget=Budget(closed=1, speculations=1), may_refuse=_REFUSED, **how
    ),
}

SINK_MUTANTS = {
    "the lock excludes": ("two attempts, a closed connection", {"excludes": False}),
    "absence lasts": ("two attempts, a closed connection", {"patient": False}),
    "a transaction accepts the token": ("two attempts, a closed connection", {"protocol": sink_protocol.NeverTakes}),
    "a committed partition is not sent again": (
        "two attempts, a closed connection",
        {"protocol": sink_protocol.SendsAgain},
    ),
    "a task commits in its own execution only": (
        "two runs, the second one with other partitions",
        {"protocol": sink_protocol.NeverHolds},
    ),
    "the driver compares all partitions": (
        "two runs, the second one with other partitions",
        {"protocol": sink_protocol.NeverCompares},
    ),
    "the driver's commits have its own execution": (
        "two runs, the second one with an empty partition less",
        {"protocol": sink_protocol.KeepsExecution},
    ),
    "an earlier batch cannot commit": (
        "two runs of the driver, a closed connection",
        {"protocol": sink_protocol.GoesBack},
    ),
    "a missing token is an error": (
        "from batch 5 on: two runs, a deleted token",
        {"protocol": sink_protocol.AlwaysCreates},
    ),
    "nothing is assumed": ("two attempts, a lost answer", {"protocol": sink_protocol.AssumesSuccess}),
}
"""The rule → the world, and what breaks the rule in it."""
