"""Reads whose tasks receive, without Spark: the planner, and its tasks as functions."""

import contextlib

import amqp_sending
import pytest
from registers import ReaderQuery


@pytest.fixture
def query(broker, queue):
    """``query(**options)`` starts a query of the queue."""
    with contextlib.ExitStack() as stack:

        def start(**options):
            query = ReaderQuery(broker, **{"queue": queue} | options)
            stack.callback(lambda running=query: running.source.stop())
            return query

        yield start


@pytest.fixture
def put():
    return amqp_sending.put
