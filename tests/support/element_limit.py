"""A lower limit of elements, so that a small message is above it."""

from pyspark_jms.amqp.columns import one_message, walk
from pyspark_jms.columns import envelope
from pyspark_jms.jms import subscription
from pyspark_jms.stomp.columns import decode, frames

__all__ = ["limit_elements"]


def limit_elements(monkeypatch, most):
    """In the place of 100,000, in every decoder."""
    for module in (subscription, walk, one_message, envelope, decode, frames):
        monkeypatch.setattr(module, "MAX_ELEMENTS", most)
