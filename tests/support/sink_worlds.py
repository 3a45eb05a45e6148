"""The worlds that the tests explore to their end, and those in which each broken rule is found.

A row of a table is: what the world has, and the world. ``tests/models.md`` has these rows too.
"""

import sink_mutants as mutants
from sink_world import Budget, SinkWorld

from pyspark_jms.delivery.commit_token import CommitToken, LedgerOwner

_REFUSED = ("mismatch", "fenced")


def world(**rules):
    return lambda **how: SinkWorld(**{"layouts": (("1",),), "may_refuse": _REFUSED} | rules | how)


_BEGUN = {"first_batch": 5, "begun": CommitToken(owner="query:q", batch=4)}
"""Batches before have written."""

SINK = {
    "two attempts, a closed connection": world(budget=Budget(closed=1, speculations=1)),
    "two attempts, a lost answer": world(budget=Budget(lost_answers=1, speculations=1)),
    "the same, each task looks before it sends": world(looks=True, budget=Budget(lost_answers=1, speculations=1)),
    "two tasks make the register at the same moment": world(
        layouts=(("1", "2"),), first_batch=5, batches=1, races=True, recovers=False, may_refuse=()
    ),
    "batch 0 has no rows, a death": world(empty=(0,), may_refuse=(), budget=Budget(task_deaths=1)),
    "the query begins with a later batch, a death": world(first_batch=5, may_refuse=(), budget=Budget(task_deaths=1)),
    "a closed second connection": world(batches=1, may_refuse=(), budget=Budget(closed=2)),
    "a token to renew, each task looks, a closed connection": world(
        **_BEGUN, wear=3, batches=1, looks=True, budget=Budget(closed=1)
    ),
    "three deaths cost the token deliveries": world(
        **_BEGUN, batches=1, looks=True, counts=True, budget=Budget(task_deaths=3)
    ),
    "two runs of the driver, a closed connection": world(budget=Budget(driver_deaths=1, closed=1)),
    "two runs, a task's death, a broker's restart": world(budget=Budget(driver_deaths=1, task_deaths=1, restarts=1)),
    "two runs, the second one with other partitions": world(
        **_BEGUN, layouts=(("1", "2"), ("12",)), batches=1, budget=Budget(driver_deaths=1)
    ),
    "two runs, the second one with an empty partition less": world(
        **_BEGUN, layouts=(("1", "", "2"), ("1", "2")), batches=1, budget=Budget(driver_deaths=1)
    ),
    "two runs, the second one with other rows": world(
        **_BEGUN, layouts=(("1", "2"), ("1", "3")), batches=1, budget=Budget(driver_deaths=1)
    ),
    "the same, onReplayMismatch=send": world(
        **_BEGUN,
        layouts=(("1", "2"), ("12",)),
        batches=1,
        may_refuse=(),
        budget=Budget(driver_deaths=1),
        send_on_mismatch=True,
    ),
    "batch 0: two runs, a deleted token": world(budget=Budget(driver_deaths=1, lost_tokens=1)),
    "a later batch: two runs, a deleted token": world(**_BEGUN, budget=Budget(driver_deaths=1, lost_tokens=1)),
    "redelivery-delay: two attempts, a closed connection": world(delays=True, budget=Budget(closed=1, speculations=1)),
    "a job: two runs, a second attempt": world(
        owner=LedgerOwner("job", "q"), looks=True, batches=1, budget=Budget(driver_deaths=1, speculations=1)
    ),
    "the token of another owner": world(
        begun=CommitToken(owner="query:other", batch=9), recovers=False, may_refuse=("other owner",)
    ),
}

SINK_MUTANTS = {
    "the lock excludes": (
        "two attempts, a closed connection",
        {"excludes": False},
    ),
    "absence lasts": (
        "two attempts, a closed connection",
        {"patient": False},
    ),
    "a transaction accepts the token": ("two attempts, a closed connection", {"machine": mutants.NeverAccepts}),
    "a committed partition is not sent again": (
        "two attempts, a closed connection",
        {"admission": mutants.sends_again},
    ),
    "a task commits in its own execution only": (
        "two runs, the second one with other partitions",
        {"admission": mutants.never_holds},
    ),
    "a finished write takes no more rows": (
        "a job: two runs, a second attempt",
        {"admission": mutants.never_holds},
    ),
    "the driver compares all partitions": (
        "two runs, the second one with other partitions",
        {"admission": mutants.never_compares},
    ),
    "the driver's commits have its own execution": (
        "two runs, the second one with an empty partition less",
        {"machine": mutants.KeepsExecution},
    ),
    "an earlier batch cannot commit": (
        "two runs of the driver, a closed connection",
        {"machine": mutants.NeverFenced},
    ),
    "the first token is sent once": ("two attempts, a closed connection", {"machine": mutants.SendsOften}),
    "a connection without rows makes the register": (
        "two tasks make the register at the same moment",
        {"machine": mutants.MakesWithRows},
    ),
    "the second connection may be lost": (
        "two tasks make the register at the same moment",
        {"machine": mutants.FailsWithTheSecond},
    ),
    "the token names its owner": ("the token of another owner", {"machine": mutants.TakesOthers}),
    "nothing is assumed": ("two attempts, a lost answer", {"machine": mutants.Assumes}),
}
"""The rule → the world, and what breaks the rule in it."""
