"""Connections over AMQP to the session's broker, and messages that a bare AMQP client sends."""

import contextlib

import pytest
from amqp_sending import put, settings_of, subscription_to

from pyspark_jms.amqp.link.consumer import Consumer


@pytest.fixture
def settings_for():
    return settings_of


@pytest.fixture(name="put")
def _put():
    return put


@pytest.fixture(name="subscription_to")
def _subscription_to():
    return subscription_to


@pytest.fixture
def opened():
    """``opened(link)`` closes it at the end of the test."""
    with contextlib.ExitStack() as stack:

        def open_link(link):
            stack.callback(link.close)
            return link

        yield open_link


@pytest.fixture
def consume(settings_for, opened):
    """``consume(broker, subscription)``: a consumer that is subscribed, closed at the end."""

    def consumer(broker, subscription, **options):
        link = opened(Consumer(settings_for(broker, **options)))
        link.subscribe(subscription)
        return link

    return consumer
