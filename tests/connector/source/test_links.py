import importlib
import inspect
import pkgutil
from typing import Protocol

import pytest

import pyspark_jms.sink
import pyspark_jms.source
from pyspark_jms.amqp.source import AmqpSource, AmqpSourceLink
from pyspark_jms.source.links import SourceLink, SourceProtocol
from pyspark_jms.stomp.source import StompSource, StompSourceLink
from pyspark_jms.tools.moving.amqp import AmqpMover
from pyspark_jms.tools.moving.engine import MovingLink
from pyspark_jms.tools.moving.stomp import StompMover

MOST_MEMBERS = 50


def own_members(port):
    return [name for name in {*vars(port), *inspect.get_annotations(port)} if not name.startswith("_")]


def missing(port, value):
    members = {name for each in port.__mro__ if each not in Protocol.__mro__ for name in own_members(each)}
    cls = value if inspect.isclass(value) else type(value)
    return members - {*dir(value)} - {name for each in cls.__mro__ for name in inspect.get_annotations(each)}


@pytest.mark.parametrize(
    ("port", "value"),
    [
        (SourceProtocol, StompSource()),
        (SourceProtocol, AmqpSource()),
        (SourceLink, StompSourceLink),
        (SourceLink, AmqpSourceLink),
        (MovingLink, StompMover),
        (MovingLink, AmqpMover),
    ],
)
def test_both_protocols_have_the_ports_for_reading(port, value):
    assert missing(port, value) == set()


def ports_of(*engines):
    """Every ``Protocol`` that a module of the engines defines."""
    found = set()
    for engine in engines:
        for module in pkgutil.walk_packages(engine.__path__, f"{engine.__name__}."):
            names = vars(importlib.import_module(module.name)).values()
            found.update(each for each in names if inspect.isclass(each) and each.__module__ == module.name)
    return {each for each in found if vars(each).get("_is_protocol", False)}


def test_the_ports_of_a_protocol_are_small():
    sizes = {port.__name__: len(own_members(port)) for port in ports_of(pyspark_jms.source, pyspark_jms.sink)}
    assert "SinkLink" in sizes
    assert "SourceLink" in sizes
    assert sum(sizes.values()) <= MOST_MEMBERS, (
        f"A new protocol must implement the members of all ports, and these are more than {MOST_MEMBERS}: {sizes}. What"
        " only one protocol has belongs to its own classes, which the engine of that feature imports. What an engine"
        " must know of a broker belongs to its dialect."
    )
