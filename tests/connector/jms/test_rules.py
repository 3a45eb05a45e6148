import re

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typed_texts import FITTING, WRONG

from pyspark_jms.jms.conversions import ValueType
from pyspark_jms.jms.model import BODY_MARKER, TYPES_MARKER
from pyspark_jms.jms.rules import (
    PROPERTY_TYPES,
    SET_BY_PROVIDER,
    TEXTS,
    element_value_problem,
    property_name_problem,
    property_value_problem,
    sent_name_problem,
    shown_name,
)

GOOD_NAMES = ["a", "_", "$", "a1", "_AMQ_X", "größe", "名前", "nota", "JMS_IBM_Format", "JMSXGroupID", "JMSXGroupSeq"]
NO_IDENTIFIERS = [
    ("NOT", "reserved word"),
    ("between", "reserved word"),
    ("Null", "reserved word"),
    ("1a", "Java identifier"),
    ("a-b", "Java identifier"),
    ("a.b", "Java identifier"),
    ("a b", "Java identifier"),
    ("a:b", "Java identifier"),
    ("a\nb", "Java identifier"),
    ("a\r", "Java identifier"),
    ("€-", "Java identifier"),
    ("💰", "Java identifier"),
]
RESERVED_NAMES = [
    (None, "is empty"),
    ("", "is empty"),
    (BODY_MARKER, "spark_jms_"),
    (TYPES_MARKER, "spark_jms_"),
    ("spark_jms_", "spark_jms_"),
    ("JMSXMine", "JMSX"),
    ("JMSXgroupID", "JMSX"),
    ("JMSType", "headers"),
    ("JMSnew", "headers"),
    ("JMS", "headers"),
]


@pytest.mark.parametrize("name", [*GOOD_NAMES, *sorted(SET_BY_PROVIDER)])
def test_names_that_a_client_can_set_or_write_back(name):
    assert property_name_problem(name) is None


@pytest.mark.parametrize(("name", "problem"), NO_IDENTIFIERS)
def test_names_that_no_jms_client_can_set_are_written_back(name, problem):
    assert problem in property_name_problem(name)
    assert sent_name_problem(name) is None


@pytest.mark.parametrize(("name", "problem"), RESERVED_NAMES)
def test_names_that_are_refused(name, problem):
    assert problem in property_name_problem(name)
    assert problem in sent_name_problem(name)


def cells(table):
    return [(type_, text) for type_, texts in table.items() for text in texts]


@pytest.mark.parametrize(("type_", "text"), cells(FITTING))
def test_values_that_fit_their_type(type_, text):
    assert element_value_problem(type_, text) is None
    if type_ in PROPERTY_TYPES:
        assert property_value_problem(type_, text) is None


@pytest.mark.parametrize(("type_", "text"), cells(WRONG))
def test_values_that_do_not_fit_their_type(type_, text):
    assert element_value_problem(type_, text) == f"is not {TEXTS[type_].words}"
    if type_ in PROPERTY_TYPES:
        assert property_value_problem(type_, text) == f"is not {TEXTS[type_].words}"


@pytest.mark.parametrize("type_", ["char", "bytes"])
def test_properties_are_neither_char_nor_bytes(type_):
    assert f"has the type {type_}" in property_value_problem(type_, "AAAA")
    assert property_value_problem(type_, None) is None


def test_types_that_jms_does_not_have():
    for problem in (property_value_problem, element_value_problem):
        assert problem("Integer", "1") is not None
        assert problem("", "1") == problem("Integer", "1")


def test_without_a_type_a_value_is_a_string_and_null_fits_every_type():
    for problem in (property_value_problem, element_value_problem):
        assert problem(None, "anything") is None
        assert {problem(type_, None) for type_ in [*ValueType, None, "what"]} == {None}


def test_a_problem_never_shows_the_value():
    assert {"secret" in element_value_problem(type_, "my secret") for type_ in {*ValueType} - {"string"}} == {False}


@given(st.sampled_from([*ValueType]), st.one_of(st.text(), st.sampled_from([t for _, t in cells(FITTING)])))
def test_arrow_reads_the_patterns_alike(type_, text):
    pattern = TEXTS[type_].pattern
    in_arrow = pc.match_substring_regex(pa.array([text]), rf"\A(?:{pattern})\z")[0].as_py()
    assert in_arrow == bool(re.fullmatch(pattern, text))


def test_what_matches_an_integer_fits_into_64_bits_without_a_sign():
    pattern = re.compile(TEXTS[ValueType.LONG].pattern)
    assert pattern.fullmatch("9" * 19)
    assert not pattern.fullmatch("1" + "0" * 19)
    assert int("9" * 19) < 2**64


@pytest.mark.parametrize("name", ["spark_jms_error", "spark_jms_source", "spark_jms_message_id"])
def test_a_dead_letter_can_be_written_as_it_was_read(name):
    assert property_name_problem(name) is None
    assert "spark_jms_" in property_name_problem(name + "s")


@pytest.mark.parametrize("name", ["a", "content-length", "JMSXGroupID", "世", "x" * 60])
def test_a_usual_name_is_shown(name):
    assert shown_name(name, 3) == repr(name)


@pytest.mark.parametrize("name", ["", "my secret", "1a", "a\n", "a\0", "x" * 61, '{"card": 1}', "not"])
def test_what_is_no_name_may_be_content_and_is_counted(name):
    assert shown_name(name, 3) == "number 3"
