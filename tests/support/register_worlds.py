"""The worlds of a read whose tasks receive, and those in which each broken rule is found.

A row of a table is: what the world has, and the world.
"""

import register_mutants as mutants
from register_world import Budget, RegisterWorld

from pyspark_jms.delivery.register.outcomes import OtherPlace, PoisonLoop, SharedRegister, TokenMissing


def world(**rules):
    return lambda **how: RegisterWorld(**rules | how)


READERS = {
    "a message, a death, a lost answer": world(messages=1, budget=Budget(deaths=1, answers=1)),
    "a message, a closed connection, a lost answer": world(messages=1, budget=Budget(closed=1, answers=1)),
    "two messages, a death, a second attempt": world(messages=2, batches=3, budget=Budget(deaths=1, extra=1)),
    "two messages, one of them later, a second attempt": world(messages=2, late=1, budget=Budget(extra=1)),
    "two messages a task, a death, a broker's restart": world(messages=2, quota=2, budget=Budget(deaths=1, restarts=1)),
    "two messages, a reader that is not read, a second attempt": world(
        messages=2, batches=3, budget=Budget(skips=1, extra=1)
    ),
    "two messages, a deleted token, a second attempt": world(messages=2, budget=Budget(tokens=1, extra=1)),
    "two messages, a death, a deleted block": world(messages=2, budget=Budget(deaths=1, blocks=1)),
    "two messages, a deleted token, a second attempt, failOnDataLoss=false": world(
        messages=2, budget=Budget(tokens=1, extra=1), fail_on_data_loss=False
    ),
    "two readers: a message, a second attempt": world(messages=1, readers=2, budget=Budget(extra=1)),
    "readers vary: two messages": world(messages=2, readers=2, vary=True),
    "two queries, one stagingQueue: a message": world(messages=1, queries=2, may_stop=(SharedRegister,)),
    "two addresses, one checkpoint: two messages, a death": world(
        messages=2, addresses=2, budget=Budget(deaths=1), may_stop=(OtherPlace,)
    ),
    "two brokers, one checkpoint: two messages, a death": world(
        messages=2, brokers=2, budget=Budget(deaths=1), may_stop=(OtherPlace, TokenMissing)
    ),
    "the same, the brokers do not tell who they are": world(
        messages=2, brokers=2, tells=False, budget=Budget(deaths=1), may_stop=(OtherPlace, TokenMissing)
    ),
    "the broker takes no messages: a message, a lost answer": world(
        messages=1, polite=False, counts=True, budget=Budget(full=1, answers=1)
    ),
    "a message that kills its task, and another one": world(
        messages=2, quota=2, poison=1, counts=True, may_stop=(PoisonLoop,)
    ),
    "a producer that writes a delivery-count of 7: two messages, a second attempt": world(
        messages=2, quota=2, claims=7, counts=True, budget=Budget(extra=1)
    ),
    "equal messages with growing delivery-counts of their producer: two messages, a second attempt": world(
        messages=2, quota=2, claims=7, equal=True, counts=True, budget=Budget(extra=1)
    ),
}

LARGER = {
    "a message, a death, a closed connection, a lost answer": world(
        messages=1, budget=Budget(deaths=1, closed=1, answers=1)
    ),
    "a message, two runs, a death": world(messages=1, drivers=2, budget=Budget(deaths=1)),
    "a message, two runs, a closed connection": world(messages=1, drivers=2, budget=Budget(closed=1)),
    "two messages, one of them later, a death, a closed connection": world(
        messages=2, late=1, budget=Budget(deaths=1, closed=1)
    ),
    "two messages, two attempts, a closed connection": world(
        messages=2, late=1, batches=3, budget=Budget(extra=1, closed=1)
    ),
    "two readers: two messages, a death": world(messages=2, readers=2, budget=Budget(deaths=1)),
    "two readers: two messages, a second attempt": world(messages=2, readers=2, budget=Budget(extra=1)),
    "readers vary: two messages, a death": world(messages=2, readers=2, vary=True, budget=Budget(deaths=1)),
    "two messages, two runs, a deleted token, failOnDataLoss=false": world(
        messages=2, drivers=2, budget=Budget(tokens=1), fail_on_data_loss=False
    ),
    "two messages, a deleted token, two more attempts, failOnDataLoss=false": world(
        messages=2, budget=Budget(tokens=1, extra=2), fail_on_data_loss=False
    ),
}
"""Explored by the slow tests."""

READER_MUTANTS = {
    "L1 tasks run after the log": ("two messages, a death, a second attempt", {"log_first": False}),
    "L2 the value of this batch is the answer": (
        "two messages, a death, a second attempt",
        {"reader": mutants.ReceivesAgain},
    ),
    "L2 a later token fences": ("two messages, a death, a second attempt", {"reader": mutants.NeverFenced}),
    "L3 one transaction": ("a message, a death, a lost answer", {"atomic": False}),
    "L4 the transaction accepts the value": (
        "a message, a closed connection, a lost answer",
        {"reader": mutants.NeverAccepts},
    ),
    "L5 an empty answer is fixed": (
        "two messages, one of them later, a second attempt",
        {"reader": mutants.ForgetsEmpty},
    ),
    "L6 nothing is assumed": ("a message, a death, a lost answer", {"reader": mutants.Assumes}),
    "L7 a value is whole": ("two messages, a death, a deleted block", {"reader": mutants.AcceptsParts}),
    "L8 the lock excludes": ("two messages, a death, a second attempt", {"excludes": False}),
    "L8 absence lasts": ("a message, a closed connection, a lost answer", {"patient": False}),
    "L8 a loss is reported with the lock": (
        "two messages, two attempts, a closed connection",
        {"reader": mutants.NeverProves},
    ),
    "L9 a token counts if the log names it": (
        "a message, a death, a lost answer",
        {"reader": mutants.UsesAnyToken},
    ),
    "L9 a task makes no token": (
        "two messages, a deleted token, a second attempt, failOnDataLoss=false",
        {"reader": mutants.MakesTokens},
    ),
    "L10 a reader that nobody read is closed": (
        "two messages, a reader that is not read, a second attempt",
        {"keeper": mutants.NeverCloses},
    ),
    "L12 planned after the commit": ("two messages, a death, a second attempt", {"commit_first": False}),
    "L13 a suspected message is received alone": (
        "a message that kills its task, and another one",
        {"reader": mutants.ReceivesOn},
    ),
    "L13 only an attempt with it alone stops the query": (
        "a producer that writes a delivery-count of 7: two messages, a second attempt",
        {"reader": mutants.StopsAtOnce},
    ),
    "L14 a register has one stream": (
        "two queries, one stagingQueue: a message",
        {"reader": mutants.SharesQueues, "keeper": mutants.SharingKeeper},
    ),
    "L16 the place is that of the log": (
        "two addresses, one checkpoint: two messages, a death",
        {"plan": mutants.AnyPlace},
    ),
    "L17 first room at the broker, then messages": (
        "the broker takes no messages: a message, a lost answer",
        {"reader": mutants.ReceivesFirst},
    ),
}
"""The rule → the world, and what breaks the rule in it."""
