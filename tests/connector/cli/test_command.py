import dataclasses

import pytest

from pyspark_jms.cli import _COMMANDS


def test_names_are_unique_and_texts_are_sentences():
    names = [command.name for command in _COMMANDS]
    assert len(set(names)) == len(names)
    for command in _COMMANDS:
        assert command.help[0].islower()
        assert command.description.endswith(".")
        assert command.epilog is None or command.epilog.endswith(".")


def test_a_command_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        _COMMANDS[0].name = "other"
