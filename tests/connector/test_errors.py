"""Each error has a code of its own, as docs/errors.md, and survives the way from an executor to the driver."""

import inspect
import pickle
import re

import pytest

from pyspark_jms import errors
from pyspark_jms.errors import JMSError

CLASSES = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, JMSError)]


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
