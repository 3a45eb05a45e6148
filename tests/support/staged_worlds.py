"""The worlds that the tests explore to their end, and those in which each broken rule is found.

A row of a table is: what the world has, and the world. ``docs/internals-exactly-once.md`` has these rows too.
"""

import sink_protocol
import staged_mutants as mutants
from sink_world import Budget as SinkBudget
from sink_world import SinkWorld
from staged_world import Budget, StagedWorld

from pyspark_jms.delivery.staging.owner_table import Shared

SOURCE = {
    "a message, two runs, a closed connection": lambda **how: StagedWorld(
        messages=1, drivers=2, budget=Budget(closed=1), **how
    ),
    "a message, a death, a closed connection, a lost answer, a broker's restart": lambda **how: StagedWorld(
        messages=1, budget=Budget(deaths=1, closed=1, lost_answers=1, restarts=1), **how
    ),
    "two messages, two runs, a death": lambda **how: StagedWorld(
        messages=2, drivers=2, per_batch=1, budget=Budget(deaths=1), **how
    ),
    "two messages, two runs, a lost answer": lambda **how: StagedWorld(
        messages=2, drivers=2, budget=Budget(lost_answers=1), **how
    ),
    "two messages, a death, a lost answer, another consumer": lambda **how: StagedWorld(
        messages=2, budget=Budget(deaths=1, lost_answers=1, rivals=1), **how
    ),
    "two messages in one partition, a death": lambda **how: StagedWorld(
        messages=2, budget=Budget(deaths=1), cuts=False, **how
    ),
    "two messages, one of them later, two runs, a deleted token": lambda **how: StagedWorld(
        messages=2, late=1, drivers=2, per_batch=1, budget=Budget(lost_tokens=1), **how
    ),
    "two messages, two runs, a deleted token": lambda **how: StagedWorld(
        messages=2, drivers=2, per_batch=1, budget=Budget(lost_tokens=1), **how
    ),
    "a message, two runs, a closed connection, a deleted token": lambda **how: StagedWorld(
        messages=1, drivers=2, budget=Budget(closed=1, lost_tokens=1), **how
    ),
    "two messages, a death, a deleted block": lambda **how: StagedWorld(
        messages=2, budget=Budget(deaths=1, lost_blocks=1), **how
    ),
    "the same, failOnDataLoss=false": lambda **how: StagedWorld(
        messages=2, budget=Budget(deaths=1, lost_blocks=1), fail_on_data_loss=False, **how
    ),
    "redelivery-delay: a message, two runs, a closed connection": lambda **how: StagedWorld(
        messages=1, drivers=2, budget=Budget(closed=1), delays=True, **how
    ),
    "a durable subscription: a message, two runs, a closed connection": lambda **how: StagedWorld(
        messages=1, drivers=2, budget=Budget(closed=1), durable_source=True, **how
    ),
    "two sources: three messages, a death": lambda **how: StagedWorld(
        messages=3, queues=2, budget=Budget(deaths=1), **how
    ),
    "two sources in order: four messages, a death": lambda **how: StagedWorld(
        **{"messages": 4, "queues": 2, "halves": False, "ordered": True, "budget": Budget(deaths=1)} | how
    ),
    "two queries, one stagingQueue: two messages, a death": lambda **how: StagedWorld(
        messages=2, queries=2, budget=Budget(deaths=1), shared_name=True, may_stop=(Shared,), **how
    ),
    "a commit log that lags: two messages, two runs, a death": lambda **how: StagedWorld(
        messages=2, drivers=2, per_batch=1, lags=True, budget=Budget(deaths=1), **how
    ),
}

LARGER = {
    "two messages, two runs, a closed connection": lambda **how: StagedWorld(
        messages=2, drivers=2, per_batch=1, budget=Budget(closed=1), **how
    ),
    "a message, two runs, a death, a closed connection": lambda **how: StagedWorld(
        messages=1, drivers=2, budget=Budget(deaths=1, closed=1), **how
    ),
    "two sources: two messages, two runs, a closed connection": lambda **how: StagedWorld(
        messages=2, queues=2, drivers=2, per_batch=1, budget=Budget(closed=1), **how
    ),
    "two sources: three messages, a death, a lost answer, another consumer": lambda **how: StagedWorld(
        messages=3, queues=2, budget=Budget(deaths=1, lost_answers=1, rivals=1), **how
    ),
    "two sources in order: four messages, two runs, a closed connection": lambda **how: StagedWorld(
        messages=4, queues=2, drivers=2, halves=False, ordered=True, budget=Budget(closed=1), **how
    ),
}
"""Explored by the slow tests."""

SOURCE_MUTANTS = {
    "R1 the lock excludes": ("two messages, two runs, a death", {"excludes": False}),
    "R2 nothing moves before the log has the stream": (
        "two messages, a death, a lost answer, another consumer",
        {"owner": mutants.MovesAtOnce},
    ),
    "R3 a token is used when the log names it": (
        "two messages, one of them later, two runs, a deleted token",
        {"owner": mutants.UsesAnyToken},
    ),
    "R3 a new token counts what is staged": (
        "two messages, two runs, a deleted token",
        {"owner": mutants.ForgetsStaged},
    ),
    "R3 absence lasts": ("a message, two runs, a closed connection", {"patient": False}),
    "R4 a transaction accepts the token": ("a message, two runs, a closed connection", {"owner": mutants.NeverFences}),
    "R4 it is the token that was read": (
        "two messages, two runs, a closed connection",
        {"owner": mutants.NeverCompares},
    ),
    "R5 one transaction": ("two messages, a death, a lost answer, another consumer", {"atomic": False}),
    "R6 blocks are deleted after the commit": (
        "two messages, a death, a lost answer, another consumer",
        {"owner": mutants.RetiresEarly},
    ),
    "R7 a batch is whole": ("a message, two runs, a closed connection", {"owner": mutants.AcceptsParts}),
    "R7 the offset has the cuts": ("two messages in one partition, a death", {"owner": mutants.CutsAgain}),
    "R8 the floor fences": ("two messages, two runs, a death", {"owner": mutants.NoFloor}),
    "R8 the floor is read again": ("two messages, two runs, a closed connection", {"owner": mutants.AsksFloorOnce}),
    "R9 nothing is assumed": (
        "two messages, a death, a lost answer, another consumer",
        {"owner": mutants.Assumes},
    ),
    "R11 a queue has one query": (
        "two queries, one stagingQueue: two messages, a death",
        {"owner": mutants.SharesQueues},
    ),
}
"""The rule → the world, and what breaks the rule in it."""

_REFUSED = ("mismatch", "missing", "fenced")

SINK = {
    "two attempts, a closed connection": lambda **how: SinkWorld(
        layouts=(("1",),), budget=SinkBudget(closed=1, speculations=1), may_refuse=_REFUSED, **how
    ),
    "two attempts, a lost answer": lambda **how: SinkWorld(
        layouts=(("1",),), budget=SinkBudget(lost_answers=1, speculations=1), may_refuse=_REFUSED, **how
    ),
    "two runs of the driver, a closed connection": lambda **how: SinkWorld(
        layouts=(("1",),), budget=SinkBudget(driver_deaths=1, closed=1), may_refuse=_REFUSED, **how
    ),
    "two runs, a task's death, a broker's restart": lambda **how: SinkWorld(
        layouts=(("1",),), budget=SinkBudget(driver_deaths=1, task_deaths=1, restarts=1), may_refuse=_REFUSED, **how
    ),
    "two runs, the second one with other partitions": lambda **how: SinkWorld(
        layouts=(("1", "2"), ("12",)), batches=1, budget=SinkBudget(driver_deaths=1), may_refuse=_REFUSED, **how
    ),
    "two runs, the second one with an empty partition less": lambda **how: SinkWorld(
        layouts=(("1", "", "2"), ("1", "2")), batches=1, budget=SinkBudget(driver_deaths=1), may_refuse=_REFUSED, **how
    ),
    "two runs, the second one with other rows": lambda **how: SinkWorld(
        layouts=(("1", "2"), ("1", "3")), batches=1, budget=SinkBudget(driver_deaths=1), may_refuse=_REFUSED, **how
    ),
    "the same, onReplayMismatch=send": lambda **how: SinkWorld(
        layouts=(("1", "2"), ("12",)), batches=1, budget=SinkBudget(driver_deaths=1), send_on_mismatch=True, **how
    ),
    "from batch 5 on: two runs, a deleted token": lambda **how: SinkWorld(
        layouts=(("1",),), first_batch=5, budget=SinkBudget(driver_deaths=1, lost_tokens=1), may_refuse=_REFUSED, **how
    ),
    "redelivery-delay: two attempts, a closed connection": lambda **how: SinkWorld(
        layouts=(("1",),), delays=True, budget=SinkBudget(closed=1, speculations=1), may_refuse=_REFUSED, **how
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
