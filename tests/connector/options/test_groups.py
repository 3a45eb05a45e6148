import re

import pytest

from pyspark_jms.options.groups import GROUPS, KAFKA
from pyspark_jms.options.names import unknown_option
from pyspark_jms.options.table import OPTIONS

NAMES = [option.name for option in OPTIONS]


def test_every_option_is_in_one_group():
    """A new option needs a place in the reference."""
    assert sorted(name for group in GROUPS for name in group.options) == sorted(NAMES)


@pytest.mark.parametrize("name", sorted({kafka for names in KAFKA.values() for kafka in names.split(", ")}))
def test_a_name_of_kafka_is_an_option_of_both_or_refused_as_one_of_kafka(name):
    assert name in NAMES or re.search("option of format kafka", unknown_option(name, "source").fact)


def test_names_of_kafka_stand_beside_options():
    assert not KAFKA.keys() - set(NAMES)
