from enum import Enum

import pytest
from state_diagrams import mermaid

from pyspark_jms.delivery.state_table import StateTable
from pyspark_jms.errors import IllegalStateError


class Light(Enum):
    RED = "red"
    GREEN = "deep green"


class Press:
    pass


class Wait:
    pass


LIGHT = StateTable("a light", {Light.RED: {Press: (Light.GREEN, Light.RED), Wait: (Light.RED,)}, Light.GREEN: {}})


def test_the_table_refuses_what_it_does_not_have():
    LIGHT.require(Light.RED, Press())
    LIGHT.require_move(Light.RED, Press(), Light.GREEN)
    with pytest.raises(IllegalStateError, match="Event Press for a light that is 'deep green'"):
        LIGHT.require(Light.GREEN, Press())
    with pytest.raises(IllegalStateError, match="Event Wait led a light from 'red' to 'deep green'"):
        LIGHT.require_move(Light.RED, Wait(), Light.GREEN)


def test_the_table_cannot_be_changed():
    with pytest.raises(TypeError):
        LIGHT.moves[Light.GREEN] = {}
    with pytest.raises(TypeError):
        LIGHT.moves[Light.RED][Press] = ()


def test_the_table_is_drawn():
    assert mermaid(LIGHT).splitlines() == [
        "stateDiagram-v2",
        "    %% a light",
        "    red --> deep_green: Press",
        "    red --> red: Press, Wait",
    ]
