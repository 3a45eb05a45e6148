"""The tree in the docstring is the tree, and every error survives the way from an executor to the driver."""

import inspect
import pickle
import re

import pytest

from pyspark_jms import errors
from pyspark_jms.errors import JMSError

CLASSES = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, JMSError)]
_ROW = re.compile(r"^    ([│├└─ ]*)(\w+Error)\b(?:\s+\[(\w+)\])?([^\n]*)$", re.MULTILINE)


def drawn():
    """Class name -> (parent, code, transient), from the drawing."""
    found, above = {}, {}
    for lines, name, code, rest in _ROW.findall(errors.__doc__):
        depth = len(lines) // 4
        above[depth] = name
        found[name] = (above[depth - 1] if depth else "Exception", code, "transient" in rest)
    return found


def test_every_error_is_drawn_where_it_stands():
    tree = {c.__name__: c.__base__.__name__ for c in CLASSES}
    assert {name: parent for name, (parent, _, _) in drawn().items()} == tree


@pytest.mark.parametrize("error", CLASSES)
def test_code_and_transience_are_as_drawn(error):
    _, code, transient = drawn()[error.__name__]
    assert error.transient is transient
    if code:
        assert error.code == code


def test_codes_are_stable_and_unique():
    codes = [error.code for error in CLASSES]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"JMS(_[A-Z]+)+", code) for code in codes)


@pytest.mark.parametrize("error", CLASSES)
def test_reads_code_fact_remedy(error):
    assert str(error("It broke.", "Mend it.")) == f"[{error.code}] It broke. Mend it."
    assert str(error("It broke.", "")) == f"[{error.code}] It broke."


def test_a_sentence_of_a_broker_inside_has_no_second_full_stop():
    assert str(JMSError("The broker refused: no..", "Why?.")) == "[JMS_ERROR] The broker refused: no. Why?"


@pytest.mark.parametrize("error", CLASSES)
def test_travels(error):
    copy = pickle.loads(pickle.dumps(error("It broke.", "Mend it.")))
    assert (type(copy), copy.fact, copy.remedy) == (error, "It broke.", "Mend it.")
