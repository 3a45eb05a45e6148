import re

import pytest

from pyspark_jms.options.names import unknown_option
from pyspark_jms.options.table import GROUPS, KAFKA, OPTIONS


def test_no_two_options_differ_by_case_only():
    assert len({option.name.lower() for option in OPTIONS}) == len(OPTIONS)


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_every_default_is_a_value_and_every_row_says_what_it_means(option):
    if option.default is not None:
        option.parse(option.default)
    assert option.meaning
    assert option.scope in {"source", "sink", "both"}


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_what_cannot_be_parsed_is_a_value_error_that_says_what_would_do(option):
    if option.secret:
        assert option.parse("any \n text") == "any \n text"
        return
    with pytest.raises(ValueError, match=r"\w") as caught:
        option.parse("")
    assert "invalid literal" not in str(caught.value)


def test_a_password_is_a_secret_and_a_file_name_is_not():
    assert {option.name for option in OPTIONS if option.secret} == {"password", "sslKeyPassword"}


# --- how the reference sorts the options -------------------------------------------------------------

NAMES = [option.name for option in OPTIONS]


def test_every_option_is_in_one_group():
    """A new option needs a place in the reference."""
    assert sorted(name for group in GROUPS for name in group.options) == sorted(NAMES)


@pytest.mark.parametrize("name", sorted({kafka for names in KAFKA.values() for kafka in names.split(", ")}))
def test_a_name_of_kafka_is_an_option_of_both_or_refused_as_one_of_kafka(name):
    assert name in NAMES or re.search("option of format kafka", unknown_option(name, "source").fact)


def test_names_of_kafka_stand_beside_options():
    assert not KAFKA.keys() - set(NAMES)
